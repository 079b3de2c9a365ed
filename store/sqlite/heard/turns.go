package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlitedb"
	"github.com/amends-dev/amends/store/internal/turns"
)

var (
	_ schedule.Store  = (*Store)(nil)
	_ schedule.Reader = (*Store)(nil)
)

// turns is what jobs and their runs need to know about SQLite, where who writes has locked everything.
func (s *Store) turns() turns.Database {
	return turns.Database{
		Read: s.readers,
		Write: func(ctx context.Context, fn func(context.Context, turns.Queries) error) error {
			return s.transaction(ctx, func(ctx context.Context, c *sqlx.Conn) error { return fn(ctx, c) })
		},
		Bind: func(query string) string { return query },
		Now: func(context.Context, sqlx.QueryerContext) (time.Time, error) {
			_, now := s.clock()
			return now, nil
		},
		Moment:  rows.Micros,
		Explain: func(_ context.Context, err error) error { return sqlitedb.Explain(err) },
	}
}
