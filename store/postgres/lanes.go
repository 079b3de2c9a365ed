package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// read runs fn on a consistent view of the database.
func (l *Ledger) read(ctx context.Context, fn func(sqlstore.Queries) error) error {
	tx, err := l.rest.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return fn(tx)
}

// plain is the lane of a pool on which each statement stands for itself.
func plain(pool *sqlx.DB) sqlstore.Lane {
	return func(_ context.Context, fn func(sqlstore.Queries) error) error { return fn(pool) }
}

// OpenSession begins a lease on the database as it is now, whatever it was before.
func (l *Ledger) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	if err := l.server.Recognise(ctx); err != nil {
		return ledger.Lease{}, fmt.Errorf("open session: %w", explain(ctx, err))
	}
	return l.store.OpenSession(ctx, ttl, label, knows)
}

// sameDatabase refuses to write for a session that was opened on another database than the one we are
// connected to.
func (l *Ledger) sameDatabase(t saga.Token) error {
	now, opened := l.server.Identity(), sqlstore.OpenedOn(l.store, t)
	if opened != "" && now != "" && opened != now {
		return fmt.Errorf("%w: session %s was opened on %s, now it is %s", ledger.ErrDatabaseChanged, t, opened, now)
	}
	return nil
}
