package sqlite

import (
	"context"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlitedb"
	"github.com/amends-dev/amends/store/internal/travels"
)

var _ sweep.Store = (*Store)(nil)

// travels is what sweeps need to know about SQLite. Their pages share a commit with what is heard at the same time.
func (s *Store) travels() travels.Database {
	return travels.Database{
		Read:     s.readers,
		Write:    s.page,
		Elements: `json_each(?)`,
		Bind:     func(query string) string { return query },
		Moment:   func(micros string) string { return micros },
		Bytes:    func(hex string) string { return `unhex(` + hex + `)` },
		Clock:    `CAST(unixepoch('now', 'subsec') * 1000000 AS integer)`,
		Explain:  func(_ context.Context, err error) error { return sqlitedb.Explain(err) },
	}
}

// page runs fn and stores events in one transaction.
func (s *Store) page(ctx context.Context, events []reconcile.Event, fn func(context.Context, travels.Queries) (bool, error)) error {
	ins, err := rows.Receive(events)
	if err != nil {
		return err
	}
	return s.group.DoOrNot(ctx, job{size: 1 + len(ins), run: func(ctx context.Context, b *batch) error {
		if store, err := fn(ctx, b.conn); err != nil || !store {
			return err
		}
		return s.accept(ctx, b, ins)
	}})
}
