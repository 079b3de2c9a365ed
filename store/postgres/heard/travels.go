package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/travels"
)

var _ sweep.Store = (*Store)(nil)

// travels is what sweeps need to know about Postgres.
func (s *Store) travels() travels.Database {
	return travels.Database{
		Read:     s.people,
		Write:    s.page,
		Elements: `json_array_elements(?::json) AS e (value)`,
		Bind:     func(query string) string { return sqlx.Rebind(sqlx.DOLLAR, query) },
		Moment:   func(micros string) string { return `'epoch'::timestamptz + ` + micros + ` * interval '1 microsecond'` },
		Bytes:    func(hex string) string { return `decode(` + hex + `, 'hex')` },
		Clock:    `clock_timestamp()`,
		Explain:  pgdb.Explain,
	}
}

// page runs fn and stores events in one transaction, and once more when another one was in its way.
func (s *Store) page(ctx context.Context, events []reconcile.Event, fn func(context.Context, travels.Queries) (bool, error)) error {
	ins, err := rows.Receive(events)
	if err != nil {
		return err
	}
	rounds := rows.Rounds(ins)
	for range attempts {
		err = s.transaction(ctx, s.inbox, func(tx *sqlx.Tx) error {
			if store, err := fn(ctx, tx); err != nil || !store {
				return err
			}
			for _, r := range rounds {
				if err := s.round(ctx, within(ctx, tx, s.accept), within(ctx, tx, s.acceptOne), r); err != nil {
					return err
				}
			}
			return nil
		})
		if !repeatable(err) {
			break
		}
	}
	return err
}
