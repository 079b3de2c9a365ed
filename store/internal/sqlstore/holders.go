package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// Holder is a name for who leases objects while its process keeps a file locked.
func Holder(lock string) string { return strings.TrimSpace(rand.Text()[:16] + " " + lock) }

// Lessees are the names of those who lease objects, by the files that their processes keep locked.
func Lessees(ctx context.Context, s *Store) (holders map[string][]string, err error) {
	var names []string
	err = s.db.write(ctx, func(ctx context.Context, q Queries) error {
		names = names[:0]
		now, err := s.db.Now(ctx, q)
		if err != nil {
			return err
		}
		return s.db.choose(ctx, q, &names, `SELECT DISTINCT lease_holder FROM amends_objects WHERE due_at > ? AND lease_holder IS NOT NULL`, s.db.Moment(now))
	})
	holders = make(map[string][]string, len(names))
	for _, name := range names {
		if _, lock, ok := strings.Cut(name, " "); ok {
			holders[lock] = append(holders[lock], name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list who leases objects: %w", err)
	}
	return holders, nil
}

// Free has what was leased under those names be due now.
func Free(ctx context.Context, s *Store, holders []string) error {
	if len(holders) == 0 {
		return nil
	}
	err := s.db.write(ctx, func(ctx context.Context, q Queries) error {
		now, err := s.db.Now(ctx, q)
		if err != nil {
			return err
		}
		at := s.db.Moment(now)
		free, args, err := sqlx.In(`UPDATE amends_objects SET due_at = ?, leased_until = ?, lease_holder = NULL WHERE due_at > ? AND lease_holder IN (?)`, at, at, at, holders)
		if err != nil {
			return err
		}
		_, err = q.ExecContext(ctx, s.db.Bind(free), args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("free what is leased: %w", err)
	}
	return nil
}
