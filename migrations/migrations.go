package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// Table is the table that keeps the version of the schema.
const Table = "amends_schema"

// Dialect names a database engine. It is also the name of the folder with its migrations.
type Dialect string

// The databases there are migrations for.
const (
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite"
)

// Migration is one migration, and whether the database has it.
type Migration struct {
	Version int64
	Name    string    // of the file
	Applied time.Time // zero: not yet
}

// ErrNewer is matched by the error of a migration of a schema that a newer program has made.
var ErrNewer = errors.New("the database schema is newer than this program")

// CheckEncoding refuses a Postgres database that cannot hold every text, by its server_encoding. What
// an id or a message of another system holds would fail after its effect, and SQL_ASCII takes any
// bytes for a text.
func CheckEncoding(encoding string) error {
	if encoding == "UTF8" {
		return nil
	}
	return fmt.Errorf("the database has the encoding %s, and a ledger needs UTF8, in which every text can be written; "+
		"make another one, CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C', and name it in the address", encoding)
}

// checkEncoding asks a database for it. SQLite's is always fit.
func checkEncoding(ctx context.Context, db *sql.DB, d Dialect) error {
	if d != Postgres {
		return nil
	}
	var encoding string
	if err := db.QueryRowContext(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return fmt.Errorf("ask for the encoding: %w", err)
	}
	return CheckEncoding(encoding)
}

// Up applies every migration the database does not have yet and returns those it applied. Each one
// is in or not, never half. Several processes may call it at the same time. A schema that is newer
// than this program is left alone: the error matches [ErrNewer]. So is a Postgres database whose
// encoding is not UTF8.
func Up(ctx context.Context, db *sql.DB, d Dialect) ([]Migration, error) {
	p, err := provider(db, d)
	if err != nil {
		return nil, err
	}
	if err := checkEncoding(ctx, db, d); err != nil {
		return nil, err
	}
	if version, err := Version(ctx, db, d); err != nil {
		return nil, err
	} else if latest := Latest(d); version > latest {
		return nil, fmt.Errorf("%w: it has version %d, this program knows %d; nothing was changed. Use a newer program",
			ErrNewer, version, latest)
	}
	results, err := upTogether(ctx, db, d, p)
	if err != nil {
		return nil, fmt.Errorf("migrate the %s schema to version %d: %w", d, Latest(d), err)
	}
	steps := make([]Migration, len(results))
	for i, r := range results {
		steps[i] = Migration{Version: r.Source.Version, Name: r.Source.Path}
	}
	return steps, nil
}

// upTogether applies the missing migrations. On SQLite there is no advisory lock: a migration fails
// when another process has applied it meanwhile. As long as the version rises, by this process or
// another, upTogether tries again from there.
func upTogether(ctx context.Context, db *sql.DB, d Dialect, p *goose.Provider) (results []*goose.MigrationResult, _ error) {
	for {
		before, err := Version(ctx, db, d)
		if err != nil {
			return results, err
		}
		applied, err := p.Up(ctx)
		results = append(results, applied...)
		if err == nil || d != SQLite {
			return results, err
		}
		if part := (*goose.PartialError)(nil); errors.As(err, &part) {
			results = append(results, part.Applied...)
		}
		if now, verr := Version(ctx, db, d); verr != nil || now == before {
			return results, errors.Join(err, verr)
		}
	}
}

// Down takes the schema back to a version; 0 drops every table and all data in them.
func Down(ctx context.Context, db *sql.DB, d Dialect, version int64) error {
	p, err := provider(db, d)
	if err != nil {
		return err
	}
	if _, err := p.DownTo(ctx, version); err != nil {
		return fmt.Errorf("take the %s schema back to version %d: %w", d, version, err)
	}
	return nil
}

// Version returns the version of the database's schema, 0 when there is none. It only reads.
func Version(ctx context.Context, db *sql.DB, d Dialect) (int64, error) {
	exists, ok := tableExists[d]
	if !ok {
		return 0, unknown(d)
	}
	var n int
	if err := db.QueryRowContext(ctx, exists).Scan(&n); err != nil {
		return 0, fmt.Errorf("look for table %s: %w", Table, err)
	}
	if n == 0 {
		return 0, nil
	}
	var v sql.NullInt64
	if err := db.QueryRowContext(ctx, `SELECT max(version_id) FROM `+Table).Scan(&v); err != nil {
		return 0, fmt.Errorf("read table %s: %w", Table, err)
	}
	return v.Int64, nil
}

// Latest returns the version this program was written for. It panics on a database there are no
// migrations for, which is a mistake in the program.
func Latest(d Dialect) int64 {
	names, err := fs.Glob(files, string(d)+"/*.sql")
	if err != nil || len(names) == 0 {
		panic(unknown(d))
	}
	var latest int64
	for _, name := range names {
		v, err := goose.NumericComponent(name)
		if err != nil {
			panic(fmt.Sprintf("migrations: %s: %v", name, err))
		}
		latest = max(latest, v)
	}
	return latest
}

// Status lists every migration this program knows, in order, and whether the database has it.
func Status(ctx context.Context, db *sql.DB, d Dialect) ([]Migration, error) {
	p, err := provider(db, d)
	if err != nil {
		return nil, err
	}
	states, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of the %s schema: %w", d, err)
	}
	steps := make([]Migration, len(states))
	for i, s := range states {
		steps[i] = Migration{Version: s.Source.Version, Name: s.Source.Path, Applied: s.AppliedAt}
	}
	return steps, nil
}

// tableExists asks for [Table] where it must be: on Postgres in the first schema of the search_path
// and in no other, so that no process works on another schema's tables by accident.
var tableExists = map[Dialect]string{
	Postgres: `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = '` + Table + `'`,
	SQLite:   `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '` + Table + `'`,
}

// lockID is the advisory lock's number on Postgres: "amends" in ASCII. Others that use goose in the
// same database take another.
const lockID = 0x616d656e6473

func provider(db *sql.DB, d Dialect) (*goose.Provider, error) {
	options := []goose.ProviderOption{goose.WithTableName(Table), goose.WithDisableGlobalRegistry(true)}
	var dialect goose.Dialect
	switch d {
	case Postgres:
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(1, 60))
		if err != nil {
			return nil, fmt.Errorf("prepare the migration lock: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	case SQLite:
		dialect = goose.DialectSQLite3
	default:
		return nil, unknown(d)
	}
	folder, err := fs.Sub(files, string(d))
	if err != nil {
		return nil, fmt.Errorf("open the %s migrations: %w", d, err)
	}
	p, err := goose.NewProvider(dialect, db, folder, options...)
	if err != nil {
		return nil, fmt.Errorf("read the %s migrations: %w", d, err)
	}
	return p, nil
}

func unknown(d Dialect) error {
	return errors.New("there are no migrations for database " + string(d))
}
