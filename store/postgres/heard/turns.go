package postgres

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/turns"
)

var (
	_ schedule.Store  = (*Store)(nil)
	_ schedule.Reader = (*Store)(nil)
)

// turns is what jobs and their runs need to know about Postgres.
func (s *Store) turns() turns.Database {
	return turns.Database{
		Read: s.people,
		Write: func(ctx context.Context, fn func(context.Context, turns.Queries) error) error {
			return s.transaction(ctx, s.gate, func(tx *sqlx.Tx) error { return fn(ctx, tx) })
		},
		Lock: ` FOR UPDATE`,
		Bind: func(query string) string { return sqlx.Rebind(sqlx.DOLLAR, query) },
		Now: func(ctx context.Context, q sqlx.QueryerContext) (now time.Time, err error) {
			err = q.QueryRowxContext(ctx, `SELECT clock_timestamp()`).Scan(&now)
			return now.UTC(), err
		},
		Moment:  func(t time.Time) any { return t },
		Explain: pgdb.Explain,
	}
}
