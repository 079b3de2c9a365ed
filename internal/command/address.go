package command

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	addresses "github.com/amends-dev/amends/internal/address"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/migrations"
	stores "github.com/amends-dev/amends/store"
)

// address names a ledger.
type address struct {
	*addresses.Address

	dialect migrations.Dialect
	named   string // as it was named, with its password
}

const nameLedger = "say --db FILE or --db postgres://…, or set AMENDS_DB"

// parseAddress reads an address as the library does.
func parseAddress(name string) (address, error) {
	if name == "" {
		return address{}, usage(nameLedger, "no ledger is named")
	}
	a, err := addresses.Parse(name)
	switch {
	case err != nil:
		return address{}, usage("", err.Error())
	case a.Postgres != nil:
		return address{a, migrations.Postgres, name}, nil
	}
	return address{a, migrations.SQLite, name}, nil
}

// open opens the database for reading and for posting signals. It creates nothing, migrates nothing
// and takes no coordinator's lock.
func (ad address) open(ctx context.Context) (stores.DB, error) {
	if ad.dialect == migrations.Postgres {
		return stores.Open(ctx, ad.named, nil)
	}
	if err := ad.isLedger(ctx); err != nil {
		return nil, err
	}
	return stores.Open(ctx, ad.URI(), nil)
}

// at opens the database, and its desk for fn.
func (a *app) at(ctx context.Context, fn func(*desk.Desk) error) error {
	return a.database(ctx, func(db stores.DB) error { return fn(desk.New(db, dbFlag(a.db))) })
}

// dbFlag repeats a --db that was given, unless there is a password in it.
func dbFlag(db string) string {
	if ad, err := parseAddress(db); err != nil || ad.Secret() {
		return ""
	}
	return " --db " + quote(db)
}

// database opens the database for fn.
func (a *app) database(ctx context.Context, fn func(stores.DB) error) error {
	if a.given.DB != nil {
		return fn(a.given.DB)
	}
	ad, err := a.address()
	if err != nil {
		return err
	}
	db, err := ad.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // whatever was stored is durable already
	return fn(db)
}

// isLedger checks that a SQLite file is a ledger, through a connection that cannot write. Opening a
// ledger would create the file, or turn the database of another program into a ledger.
func (ad address) isLedger(ctx context.Context) error {
	if err := ad.isFile(); err != nil {
		return err
	}
	db, err := ad.connect()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	version, err := migrations.Version(ctx, db, migrations.SQLite)
	if err != nil {
		return fmt.Errorf("read %s: %w", ad.full(), err)
	}
	return ad.readable(version, migrations.Latest(migrations.SQLite))
}

// isFile says why there is no file to be read.
func (ad address) isFile() error {
	f, err := os.Open(ad.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &desk.Failure{
			Code: desk.Failed, What: fmt.Sprintf("there is no file %s", ad.full()),
			Next: "reading a ledger never creates one: look at --db and AMENDS_DB; a coordinator creates the file when it first opens it",
		}
	case err != nil:
		return err
	}
	defer func() { _ = f.Close() }() // nothing was read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return &desk.Failure{Code: desk.Failed, What: ad.full() + " is a directory", Next: "name the ledger's file in it"}
	}
	return nil
}

// readable says why a file with that schema is not opened: opening it would migrate it.
func (ad address) readable(version, latest int64) error {
	switch {
	case version == 0:
		return &desk.Failure{
			Code: desk.Failed, What: ad.full() + " holds no ledger",
			Next: "look at --db and AMENDS_DB; to make a ledger of it: amends migrate --db " + quote(ad.String()),
		}
	case version < latest:
		return &desk.Failure{
			Code: desk.Failed, Why: fmt.Errorf("%w: %s has version %d, this program needs %d", ledger.ErrSchema, ad.full(), version, latest),
			Next: "stop the programs that still use the older version, then: amends migrate --db " + quote(ad.String()),
		}
	}
	return nil // of a newer schema the ledger itself says so
}

// connect opens a SQLite file by itself, to read its schema only: the connection cannot write.
func (ad address) connect() (*sql.DB, error) {
	path := (&url.URL{Path: ad.full()}).EscapedPath()
	return sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
}

// full is the whole path of a SQLite file: an error that says "ledger.db" leaves open which.
func (ad address) full() string {
	if abs, err := filepath.Abs(ad.File); err == nil {
		return abs
	}
	return ad.File
}
