package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/internal/engine"
	"github.com/amends-dev/amends/migrations"
)

// connect opens a pool on the file. Every connection waits for a writer in another process, and checks foreign
// keys.
func connect(path string, busy time.Duration, pragmas string, conns int) (*sqlx.DB, error) {
	dsn := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=foreign_keys(1)%s",
		(&url.URL{Path: path}).EscapedPath(), busy.Milliseconds(), pragmas)
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// writer is the one connection by which a process writes.
type writer struct {
	db *sqlx.DB

	mu   sync.Mutex // one statement, or transaction, at a time
	conn *sqlx.Conn
	statements
}

// statements are prepared for the write path.
type statements struct {
	lives, addRecord, addStart, addHead, project, place, startPlace, dropRecord, dropHead *sql.Stmt
}

// openWriter opens the file, makes sure that it can be trusted with a ledger, and migrates it.
func openWriter(ctx context.Context, path string, busy time.Duration) (_ *writer, err error) {
	db, err := connect(path, busy, "&_txlock=immediate", 1)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	if err := trustworthy(ctx, db); err != nil {
		return nil, err
	}
	if err := migrate(ctx, db.DB); err != nil {
		return nil, err
	}
	w := &writer{db: db}
	if w.conn, err = db.Connx(ctx); err != nil {
		return nil, err
	}
	for _, pragma := range []string{`PRAGMA synchronous = FULL`, `PRAGMA cache_size = -65536`} {
		if _, err := w.conn.ExecContext(ctx, pragma); err != nil {
			return nil, err
		}
	}
	return w, w.prepare(ctx)
}

// oldest is the first release of SQLite without the WAL-reset bug, by which two connections could corrupt a
// file.
var oldest = [3]int{3, 51, 3}

func trustworthy(ctx context.Context, db *sqlx.DB) error {
	var version string
	if err := db.GetContext(ctx, &version, `SELECT sqlite_version()`); err != nil {
		return err
	}
	if err := recent(version); err != nil {
		return err
	}
	var mode string
	if err := db.GetContext(ctx, &mode, `PRAGMA journal_mode = WAL`); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("SQLite cannot keep a write-ahead log there (journal mode %q), which a ledger needs: "+
			"put the file on a local file system, not on a network share", mode)
	}
	return nil
}

func recent(version string) error {
	var v [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("read the version of SQLite from %q: %w", version, err)
	}
	for i := range v {
		if v[i] != oldest[i] {
			if v[i] > oldest[i] {
				return nil
			}
			return fmt.Errorf("%w: SQLite %s; a ledger needs 3.51.3 or newer, earlier ones can corrupt a file in WAL mode. "+
				"Update modernc.org/sqlite", ledger.ErrUnsupported, version)
		}
	}
	return nil
}

// migrate brings an older file up to this program's schema and refuses a newer one.
func migrate(ctx context.Context, db *sql.DB) error {
	latest := migrations.Latest(migrations.SQLite)
	version, err := migrations.Version(ctx, db, migrations.SQLite)
	switch {
	case err != nil:
		return err
	case version > latest:
		return fmt.Errorf("%w: the file has version %d, this program knows %d. Use a newer program; this one cannot read the file safely",
			ledger.ErrSchema, version, latest)
	case version < latest:
		_, err = migrations.Up(ctx, db, migrations.SQLite)
	}
	return err
}

// all returns the statements by their text.
func (s *statements) all() map[string]**sql.Stmt {
	return map[string]**sql.Stmt{
		sessionLives: &s.lives, addRecord: &s.addRecord, addStart: &s.addStart, addHead: &s.addHead,
		projectHead: &s.project, placeOf: &s.place, placeOfStart: &s.startPlace,
		dropRecord: &s.dropRecord, dropHead: &s.dropHead,
	}
}

func (w *writer) prepare(ctx context.Context) error {
	for text, stmt := range w.all() {
		var err error
		if *stmt, err = w.conn.PrepareContext(ctx, text); err != nil { //nolint:sqlclosecheck // they live as long as the connection
			return fmt.Errorf("prepare %s: %w", text, err)
		}
	}
	return nil
}

// plain runs fn outside of a transaction.
func (w *writer) plain(ctx context.Context, fn func(engine.Queries) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(ctx); err != nil {
		return err
	}
	return fn(w.conn)
}

// transaction runs fn in a transaction that begins as a writer, so that it never fails half-way because another
// process wrote in between.
func (w *writer) transaction(ctx context.Context, fn func(engine.Queries) error) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(ctx); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	ending := context.WithoutCancel(ctx)
	if err := fn(w.conn); err != nil {
		_, rerr := w.conn.ExecContext(ending, `ROLLBACK`)
		return errors.Join(err, rerr)
	}
	if _, err := w.conn.ExecContext(ending, `COMMIT`); err != nil {
		_, rerr := w.conn.ExecContext(ending, `ROLLBACK`)
		return errors.Join(err, rerr)
	}
	return nil
}

func (w *writer) ready(ctx context.Context) error {
	if w.conn == nil {
		return errors.New("the ledger is closed")
	}
	return ctx.Err()
}

func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return nil
	}
	// An open statement keeps SQLite's connection alive behind Close: then nothing is checkpointed, the log stays
	// beside the file, and whoever copies the file alone copies an empty ledger.
	var errs []error
	for _, stmt := range w.all() {
		if *stmt != nil {
			errs = append(errs, (*stmt).Close())
		}
	}
	errs = append(errs, w.conn.Close(), w.db.Close())
	w.conn = nil
	return errors.Join(errs...)
}
