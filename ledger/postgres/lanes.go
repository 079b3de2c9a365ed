package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/internal/engine"
	"github.com/amends-dev/amends/saga"
)

// read runs fn on a consistent view of the database.
func (l *Ledger) read(ctx context.Context, fn func(engine.Queries) error) error {
	tx, err := l.rest.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return fn(tx)
}

// write runs fn in a transaction.
func (l *Ledger) write(ctx context.Context, fn func(engine.Queries) error) error {
	tx, err := l.rest.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // without effect after a commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// OpenSession begins a lease on the database as it is now, whatever it was before.
func (l *Ledger) OpenSession(ctx context.Context, ttl time.Duration, label string) (ledger.Lease, error) {
	if err := l.server.Recognise(ctx); err != nil {
		return ledger.Lease{}, fmt.Errorf("open session: %w", explain(ctx, err))
	}
	return l.store.OpenSession(ctx, ttl, label)
}

// sameDatabase refuses to write for a session that was opened on another database than the one we are
// connected to.
func (l *Ledger) sameDatabase(t saga.Token) error {
	now, opened := l.server.Identity(), engine.OpenedOn(l.store, t)
	if opened != "" && now != "" && opened != now {
		return fmt.Errorf("%w: session %s was opened on %s, now it is %s", ledger.ErrDatabaseChanged, t, opened, now)
	}
	return nil
}

// claim gives a session works. Other processes that claim at the same time are passed by, not waited for.
func (l *Ledger) claim(ctx context.Context, q engine.Queries, c engine.ClaimArgs) ([]engine.HeadRow, error) {
	var rows []engine.HeadRow
	err := sqlx.SelectContext(ctx, q, &rows, claimText, l.now(), c.Known, c.GraceMS, c.Limit, c.Token, c.Held, c.All)
	return rows, err
}
