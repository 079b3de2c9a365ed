package postgres

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/shelf"
)

var (
	_ drift.Plans  = (*Store)(nil)
	_ drift.Drifts = (*Store)(nil)
)

// shelf is what plans and drift need to know about Postgres.
func (s *Store) shelf() shelf.Database {
	return shelf.Database{
		Read: s.people,
		Write: func(ctx context.Context, fn func(context.Context, shelf.Queries) error) error {
			return s.transaction(ctx, s.gate, func(tx *sqlx.Tx) error { return fn(ctx, tx) }) // planned by index
		},
		Elements: `jsonb_array_elements(?::jsonb) AS e (value)`,
		Share:    ` FOR SHARE`,
		Bind:     func(query string) string { return sqlx.Rebind(sqlx.DOLLAR, query) },
		Now:      s.database().Now,
		Moment:   func(t time.Time) any { return t },
		Explain:  pgdb.Explain,
	}
}
