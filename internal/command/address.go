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
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
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
func (ad address) open(ctx context.Context, keys stores.Keys) (stores.DB, error) {
	if ad.dialect == migrations.Postgres {
		return stores.Open(ctx, ad.named, &stores.Options{Keys: keys})
	}
	if err := ad.isLedger(ctx); err != nil {
		return nil, err
	}
	return stores.Open(ctx, ad.URI(), &stores.Options{Keys: keys})
}

// keys are those that AMENDS_KEYS names. No command seals a ledger: programs without keys could not go on.
func (a *app) keys() (stores.Keys, error) {
	file := a.env("AMENDS_KEYS")
	if file == "" {
		return nil, nil //nolint:nilnil // there are none
	}
	keys, err := stores.KeysIn(file)
	return ledger.OfSealed{Keys: keys}, err
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
	keys, err := a.keys()
	if err != nil {
		return err
	}
	db, err := ad.open(ctx, keys)
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
	version, err := ad.ask(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", ad.full(), err)
	}
	return ad.readable(version, migrations.Latest(migrations.SQLite))
}

// noLedger is the error of an address at which no ledger is.
func noLedger(what, next string) error {
	return &desk.Failure{Code: desk.Failed, What: what, Next: next}
}

// isFile says why there is no file to be read.
func (ad address) isFile() error {
	f, err := os.Open(ad.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noLedger("there is no file "+ad.full(), "reading a ledger never creates one: look at --db and AMENDS_DB; a coordinator creates the file when it first opens it")
	case err != nil:
		return err
	}
	defer func() { _ = f.Close() }() // nothing was read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return noLedger(ad.full()+" is a directory", "name the ledger's file in it")
	}
	return nil
}

// readable says why a file with that schema is not opened: opening it would migrate it.
func (ad address) readable(version, latest int64) error {
	switch {
	case version == 0:
		return noLedger(ad.full()+" holds no ledger", "look at --db and AMENDS_DB; to make a ledger of it: amends migrate --db "+quote(ad.String()))
	case version < latest:
		return &desk.Failure{
			Code: desk.Failed, Why: fmt.Errorf("%w: %s has version %d, this program needs %d", ledger.ErrSchema, ad.full(), version, latest),
			Next: "stop the programs that still use the older version, then: amends migrate --db " + quote(ad.String()),
		}
	}
	return nil // of a newer schema the ledger itself says so
}

// full is the whole path of a SQLite file: an error that says "ledger.db" leaves open which.
func (ad address) full() string {
	if abs, err := filepath.Abs(ad.File); err == nil {
		return abs
	}
	return ad.File
}

var migrateVerb = migrating("migrate", migrating("up"), verb[desk.Nothing, schema]{
	name: "status", args: noArguments, free: true, by: (*app).schema, print: (*app).printSchema, alarm: "end with 6 when the schema is not up to date",
})

// migrating is a verb that brings a schema up to date.
func migrating(name string, verbs ...maker) maker {
	return verb[desk.Nothing, migrated]{name: name, args: noArguments, free: true, by: (*app).migrateUp, print: (*app).printMigrated, verbs: verbs}
}

// schema is the state of a schema.
type schema struct {
	Ledger   string             `json:"ledger"`
	Database migrations.Dialect `json:"database"`
	Version  int64              `json:"version"` // 0: there is none
	Latest   int64              `json:"latest"`  // what this program needs
	UpToDate bool               `json:"upToDate"`
}

func (a *app) schema(_ *desk.Desk, ctx context.Context, _ *desk.Nothing) (*schema, error) {
	ad, err := a.address()
	if err != nil {
		return nil, err
	}
	version, err := ad.version(ctx)
	if err != nil {
		return nil, err
	}
	latest := migrations.Latest(ad.dialect)
	return &schema{ad.String(), ad.dialect, version, latest, version == latest}, nil
}

// Alarm is the finding that it is not up to date, or nil.
func (s *schema) Alarm() error {
	return desk.Either[error](s.UpToDate, nil, &desk.Failure{Code: desk.Findings, What: "the schema is not up to date", Next: s.next()})
}

func (a *app) printSchema(_ *desk.Nothing, s *schema) {
	a.fields("ledger", s.Ledger, "database", string(s.Database),
		"schema", fmt.Sprintf("version %d; this program needs %d", s.Version, s.Latest), "next", s.next())
}

func (s *schema) next() string {
	switch {
	case s.UpToDate:
		return "nothing, it is up to date"
	case s.Version > s.Latest:
		return "use a newer amends: this one cannot read the ledger safely"
	default:
		return "amends migrate"
	}
}

// version is the version of the schema; it only reads. A SQLite file that is not there has version
// 0.
func (ad address) version(ctx context.Context) (int64, error) {
	if ad.dialect == migrations.SQLite {
		if _, err := os.Stat(ad.File); errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
	}
	version, err := ad.ask(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the schema version of %s: %w", ad, err)
	}
	return version, nil
}

// ask reads the version of the schema. A SQLite file it opens by itself, with a connection that cannot write.
func (ad address) ask(ctx context.Context) (int64, error) {
	if ad.dialect == migrations.Postgres {
		return postgres.Version(ctx, ad.named)
	}
	path := (&url.URL{Path: ad.full()}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }() // only read
	return migrations.Version(ctx, db, ad.dialect)
}

// migrated is what became of a schema.
type migrated struct {
	Ledger   string             `json:"ledger"`
	Database migrations.Dialect `json:"database"`
	Before   int64              `json:"before"`
	After    int64              `json:"after"`
}

func (a *app) migrateUp(_ *desk.Desk, ctx context.Context, in *desk.Nothing) (*migrated, error) {
	before, err := a.schema(nil, ctx, in)
	if err != nil {
		return nil, err
	}
	ad, _ := a.address() // it was read before
	if err := ad.migrate(ctx); err != nil {
		return nil, err
	}
	after, err := ad.version(ctx)
	if err != nil {
		return nil, err
	}
	return &migrated{before.Ledger, before.Database, before.Version, after}, nil
}

func (a *app) printMigrated(_ *desk.Nothing, m *migrated) {
	was := fmt.Sprintf("it was %d", m.Before)
	switch m.Before {
	case m.After:
		was = "it was up to date, nothing was changed"
	case 0:
		was = "there was none, so it is a new, empty ledger"
	}
	a.fields("ledger", m.Ledger, "database", string(m.Database), "schema", fmt.Sprintf("version %d; %s", m.After, was))
	if m.Database == migrations.SQLite {
		a.sayf("a SQLite ledger is also migrated by every coordinator that opens it; there is no need to do it by hand")
	}
}

// migrate applies what is missing.
func (ad address) migrate(ctx context.Context) error {
	if ad.dialect == migrations.SQLite {
		l, err := sqlite.Open(ctx, ad.URI(), nil)
		if err != nil {
			return err
		}
		return l.Close()
	}
	l, err := postgres.Open(ctx, ad.named, &postgres.Options{Migrate: true})
	if err != nil {
		return err
	}
	return l.Close()
}
