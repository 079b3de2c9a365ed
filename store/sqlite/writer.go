package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// writer is the one connection by which a process writes.
type writer struct {
	db *sqlx.DB

	mu    sync.Mutex // one statement, or transaction, at a time
	conn  *sqlx.Conn
	stmts []*sql.Stmt
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
	conn, err := db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	for _, pragma := range pragmas {
		if _, err := conn.ExecContext(ctx, pragma); err != nil {
			return nil, err
		}
	}
	return &writer{db: db, conn: conn}, nil
}

// pragmas are the writer's. With FULL a commit is on the disk when it is answered. The log is copied into the file every 4,000
// pages (16 MB) instead of 1,000: at one commit for each record that is a quarter of the copying, and what a crash leaves is
// read back in a moment. A log that grew beyond 64 MB, because a reader stood still, is cut back to that.
var pragmas = []string{
	`PRAGMA synchronous = FULL`, `PRAGMA cache_size = -65536`, `PRAGMA wal_autocheckpoint = 4000`, `PRAGMA journal_size_limit = 67108864`,
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

// prepare prepares statements by their text. They live as long as the writer, and are run within a function
// given to plain or transaction.
func (w *writer) prepare(ctx context.Context, statements map[string]**sql.Stmt) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for text, stmt := range statements {
		var err error
		if *stmt, err = w.conn.PrepareContext(ctx, text); err != nil { //nolint:sqlclosecheck // close closes them
			return fmt.Errorf("prepare %s: %w", text, err)
		}
		w.stmts = append(w.stmts, *stmt)
	}
	return nil
}

// plain runs fn outside of a transaction.
func (w *writer) plain(ctx context.Context, fn func(sqlstore.Queries) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(ctx); err != nil {
		return err
	}
	return fn(w.conn)
}

// transaction runs fn in a transaction that begins as a writer, so that it never fails half-way because another
// process wrote in between.
func (w *writer) transaction(ctx context.Context, fn func(sqlstore.Queries) error) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(ctx); err != nil {
		return err
	}
	ending, committed := context.WithoutCancel(ctx), false
	if _, err := w.conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		// A context that ends meanwhile is an error although the transaction has begun. It fails when there is none.
		_, _ = w.conn.ExecContext(ending, `ROLLBACK`)
		return err
	}
	defer func() {
		if !committed { // fn may have panicked, and the next transaction begins on this connection
			_, rerr := w.conn.ExecContext(ending, `ROLLBACK`)
			err = errors.Join(err, rerr)
		}
	}()
	if err := fn(w.conn); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(ending, `COMMIT`); err != nil {
		return err
	}
	committed = true
	return nil
}

func (w *writer) ready(ctx context.Context) error {
	if w.conn == nil {
		return errors.New("the file is closed")
	}
	return ctx.Err()
}

// close closes the file. It waits for what is being written, and may be called again.
func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return nil
	}
	// An open statement keeps SQLite's connection alive behind close: then nothing is checkpointed, the log stays
	// beside the file, and whoever copies the file alone copies an empty ledger.
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	errs = append(errs, w.conn.Close(), w.db.Close())
	w.conn, w.stmts = nil, nil
	return errors.Join(errs...)
}
