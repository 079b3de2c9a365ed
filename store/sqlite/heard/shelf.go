package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/shelf"
	"github.com/amends-dev/amends/store/internal/sqlitedb"
)

var (
	_ drift.Plans  = (*Store)(nil)
	_ drift.Drifts = (*Store)(nil)
)

// shelf is what plans and drift need to know about SQLite.
func (s *Store) shelf() shelf.Database {
	return shelf.Database{
		Read: s.readers,
		Write: func(ctx context.Context, fn func(context.Context, shelf.Queries) error) error {
			return s.transaction(ctx, func(ctx context.Context, c *sqlx.Conn) error { return fn(ctx, c) })
		},
		Elements: `(SELECT value FROM json_each(?)) AS e`,
		Bind:     func(query string) string { return query },
		Now:      func(context.Context) (time.Time, error) { return s.now(), nil },
		Moment:   rows.Micros,
		Explain:  func(_ context.Context, err error) error { return sqlitedb.Explain(err) },
	}
}
