package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/store/internal/engine"
	"github.com/amends-dev/amends/store/internal/sqlitedb"
)

// writer is the one connection by which a ledger writes.
type writer struct {
	*sqlitedb.Writer
	statements
}

// statements are prepared for the write path.
type statements struct {
	lives, addRecord, addStart, addHead, project, place, startPlace, mark, dropRecord, dropHead *sql.Stmt
}

func openWriter(ctx context.Context, path string, busy time.Duration) (*writer, error) {
	w, err := sqlitedb.OpenWriter(ctx, path, busy)
	if err != nil {
		return nil, err
	}
	l := &writer{Writer: w}
	if err := w.Prepare(ctx, l.all()); err != nil {
		_ = w.Close()
		return nil, err
	}
	return l, nil
}

// all returns the statements by their text.
func (s *statements) all() map[string]**sql.Stmt {
	return map[string]**sql.Stmt{
		sessionLives: &s.lives, addRecord: &s.addRecord, addStart: &s.addStart, addHead: &s.addHead,
		projectHead: &s.project, placeOf: &s.place, placeOfStart: &s.startPlace,
		markSignals: &s.mark,
		dropRecord:  &s.dropRecord, dropHead: &s.dropHead,
	}
}

// plain runs fn outside of a transaction.
func (w *writer) plain(ctx context.Context, fn func(engine.Queries) error) error {
	return w.Plain(ctx, func(c *sqlx.Conn) error { return fn(c) })
}

// transaction runs fn in a transaction that begins as a writer.
func (w *writer) transaction(ctx context.Context, fn func(engine.Queries) error) error {
	return w.Transaction(ctx, func(c *sqlx.Conn) error { return fn(c) })
}
