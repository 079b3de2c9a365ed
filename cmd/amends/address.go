package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/migrations"
	stores "github.com/amends-dev/amends/store"
)

// store is an open ledger with both its sides.
type store interface {
	ledger.Ledger
}

// address names a ledger.
type address struct {
	dialect migrations.Dialect
	place   string // a file, or a URL
}

const nameLedger = "say --db FILE or --db postgres://…, or set AMENDS_DB"

func parseAddress(name string) (address, error) {
	scheme, rest, isURL := strings.Cut(name, "://")
	switch {
	case name == "":
		return address{}, usage(nameLedger, "no ledger is named")
	case strings.HasPrefix(name, "sqlite:"):
		path := strings.TrimPrefix(strings.TrimPrefix(name, "sqlite:"), "//")
		if path == "" {
			return address{}, usage(nameLedger, "sqlite: names no file")
		}
		return address{migrations.SQLite, path}, nil
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		u, err := url.Parse(name)
		switch {
		case err != nil || rest == "":
			// The error of url.Parse shows the address, and with it the password.
			return address{}, usage("it looks like postgres://user:password@host:5432/database; %-encode special characters in the password",
				"the address of the Postgres database cannot be read")
		case strings.Contains(u.Host, ",") && u.Port() != "": // it would be taken for one host of that name
			return address{}, usage("with several hosts the ports go to the end: postgres://a,b/database?port=5432,5433",
				"the address of the Postgres database has several hosts and a port among them")
		}
		return address{migrations.Postgres, name}, nil
	case isURL:
		return address{}, usage(nameLedger, fmt.Sprintf("amends knows no database %s://", scheme))
	}
	return address{migrations.SQLite, name}, nil
}

// String names the ledger without a password.
func (ad address) String() string {
	if ad.dialect != migrations.Postgres {
		return ad.place
	}
	u, err := url.Parse(ad.place)
	if err != nil {
		return "the Postgres database"
	}
	q := u.Query()
	if q.Has("password") {
		q.Set("password", "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

// secret reports whether the address carries a password.
func (ad address) secret() bool { return ad.dialect == migrations.Postgres && ad.String() != ad.place }

// open opens the database for reading and for posting signals. It creates nothing, migrates nothing
// and takes no coordinator's lock.
func (ad address) open(ctx context.Context) (stores.DB, error) {
	if ad.dialect == migrations.Postgres {
		return stores.Open(ctx, ad.place, nil)
	}
	if err := ad.isLedger(ctx); err != nil {
		return nil, err
	}
	return stores.Open(ctx, "file:"+ad.place, nil)
}

// reconciler is everything in the ledger's database that is not the ledger: what was heard, jobs,
// plans and drift.
type reconciler interface {
	intake.Reader
	desk
}

// reconciling opens it for fn.
func (a *app) reconciling(ctx context.Context, fn func(reconciler) error) error {
	return a.database(ctx, func(db stores.DB) error { return fn(db) })
}

// database opens the database for fn.
func (a *app) database(ctx context.Context, fn func(stores.DB) error) error {
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
	f, err := os.Open(ad.place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &failure{
			exit: exitFailed, what: fmt.Sprintf("there is no file %s", ad.full()),
			next: "reading a ledger never creates one: look at --db and AMENDS_DB; a coordinator creates the file when it first opens it",
		}
	case err != nil:
		return err
	}
	defer func() { _ = f.Close() }() // nothing was read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return &failure{exit: exitFailed, what: ad.full() + " is a directory", next: "name the ledger's file in it"}
	}
	return nil
}

// readable says why a file with that schema is not opened: opening it would migrate it.
func (ad address) readable(version, latest int64) error {
	switch {
	case version == 0:
		return &failure{
			exit: exitFailed, what: ad.full() + " holds no ledger",
			next: "look at --db and AMENDS_DB; to make a ledger of it: amends migrate --db " + quote(ad.place),
		}
	case version < latest:
		return &failure{
			exit: exitFailed, err: fmt.Errorf("%w: %s has version %d, this program needs %d", ledger.ErrSchema, ad.full(), version, latest),
			next: "stop the programs that still use the older version, then: amends migrate --db " + quote(ad.place),
		}
	}
	return nil // of a newer schema the ledger itself says so
}

// connect opens the database by itself, to read its schema only. On SQLite the connection cannot
// write.
func (ad address) connect() (*sql.DB, error) {
	if ad.dialect == migrations.Postgres {
		return sql.Open("postgres", ad.patient())
	}
	path := (&url.URL{Path: ad.full()}).EscapedPath()
	return sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
}

// full is the whole path of a SQLite file: an error that says "ledger.db" leaves open which.
func (ad address) full() string {
	if abs, err := filepath.Abs(ad.place); err == nil {
		return abs
	}
	return ad.place
}

// patient is the URL of a Postgres database with a bound on connecting: without one a wrong address
// hangs.
func (ad address) patient() string {
	u, err := url.Parse(ad.place)
	if err != nil {
		return ad.place
	}
	q := u.Query()
	if !q.Has("connect_timeout") && os.Getenv("PGCONNECT_TIMEOUT") == "" {
		q.Set("connect_timeout", "10")
		u.RawQuery = q.Encode()
	}
	return u.String()
}
