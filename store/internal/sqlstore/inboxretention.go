package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/rows"
)

// replayed is how many deliveries become unjudged in one transaction, so that a receiver need not
// wait long.
const replayed = 2000

// Replay makes deliveries unjudged again, the newest first.
func (s *inboxRole) Replay(ctx context.Context, f intake.DeliveryFilter, why string) (int, error) {
	n, rest := 0, f.Limit
	for {
		page := replayed
		if f.Limit > 0 {
			page = min(page, rest)
		}
		w := s.selected(&f)
		var numbers []int64
		err := s.db.get(ctx, &numbers, `SELECT d.number FROM amends_inbox AS d`+w.String()+` ORDER BY d.number DESC LIMIT ?`, append(w.args, page)...)
		if err == nil && len(numbers) > 0 {
			err = s.db.write(ctx, func(ctx context.Context, q Queries) error {
				_, gone, err := s.uncounted(ctx, q, `UPDATE amends_inbox SET processed_at = NULL, reason = ?
					WHERE processed_at IS NOT NULL AND number IN `+s.db.Numbers, rows.Text(why), numberList(numbers))
				if err != nil {
					return err
				}
				return countJudged(ctx, s.db, q, gone)
			})
		}
		if err != nil {
			return n, fmt.Errorf("replay deliveries: %w", err)
		}
		n, rest = n+len(numbers), rest-len(numbers)
		if len(numbers) < page || f.Limit > 0 && rest == 0 {
			return n, nil
		}
		f.Before = numbers[len(numbers)-1]
	}
}

// Purge erases what is older than the retention allows: deliveries with their bodies, then the
// bodies of those that stay, then digests whose delivery is gone. Each is a transaction of its own.
func (s *inboxRole) Purge(ctx context.Context, r intake.Retention, limit int) (int, error) {
	now, err := s.db.now(ctx)
	if err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	total := 0
	for _, kind := range []struct {
		keep  time.Duration
		erase func(ctx context.Context, q Queries, before any, limit int) (int, error)
	}{{r.Rows, s.deliveries}, {r.Bodies, s.bodies}, {r.Digests, s.digests}} {
		if kind.keep <= 0 {
			continue // for ever
		}
		var n int
		err := s.db.write(ctx, func(ctx context.Context, q Queries) (err error) {
			if n, err = kind.erase(ctx, q, s.db.Moment(now.Add(-kind.keep)), limit); err != nil {
				return err
			}
			return s.db.shrink(ctx, q)
		})
		if err != nil {
			return total, fmt.Errorf("purge: %w", err)
		}
		total += n
	}
	return total, nil
}

// settled is a delivery, as d with its digest as g, to which nothing is owed any more.
const settled = `d.processed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM amends_objects AS e
	WHERE e.source = d.source AND e.tenant = d.tenant AND e.type = d.type AND e.id = d.id AND (` + owing + `))`

func (s *inboxRole) deliveries(ctx context.Context, q Queries, before any, limit int) (int, error) {
	var numbers []int64
	err := s.db.choose(ctx, q, &numbers, `SELECT d.number FROM amends_inbox AS d`+rows.DigestOfDelivery+`
		WHERE d.received_at < ? AND coalesce(g.last_at, d.received_at) < ? AND `+settled+`
		ORDER BY d.received_at LIMIT ?`, before, before, limit)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	// A replay may have come in between.
	numbers, gone, err := s.uncounted(ctx, q, `DELETE FROM amends_inbox WHERE processed_at IS NOT NULL AND number IN `+s.db.Numbers, numberList(numbers))
	if err != nil {
		return 0, err
	}
	if _, err = q.ExecContext(ctx, s.db.Bind(`DELETE FROM amends_payloads WHERE delivery IN `+s.db.Numbers), numberList(numbers)); err != nil {
		return 0, err
	}
	return len(gone), countJudged(ctx, s.db, q, gone)
}

func (s *inboxRole) bodies(ctx context.Context, q Queries, before any, limit int) (int, error) {
	var numbers []int64
	err := s.db.choose(ctx, q, &numbers, `SELECT p.delivery FROM amends_payloads AS p`+inboxOf+`
		WHERE p.stored_at < ? AND coalesce(g.last_at, p.stored_at) < ? AND (d.number IS NULL OR `+settled+`)
		ORDER BY p.stored_at LIMIT ?`, before, before, limit)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	return affected(q.ExecContext(ctx, s.db.Bind(`DELETE FROM amends_payloads WHERE delivery IN `+s.db.Numbers+`
		AND NOT EXISTS (SELECT 1 FROM amends_inbox AS d WHERE d.number = amends_payloads.delivery AND d.processed_at IS NULL)`), numberList(numbers)))
}

// ofObject are the rows of an object, in amends_inbox and in amends_objects.
const ofObject = ` WHERE e.source = ? AND e.tenant = ? AND e.type = ? AND e.id = ?`

// Forget erases what is known of an object, and its deliveries.
func (s *inboxRole) Forget(ctx context.Context, o intake.Object) (done bool, err error) {
	key := rows.Key(o)
	err = s.db.write(ctx, func(ctx context.Context, q Queries) error {
		_, err := q.ExecContext(ctx, s.db.Bind(`DELETE FROM amends_objects AS e`+ofObject+` AND NOT (`+owing+`) AND e.held_seq IS NULL AND e.blocked_reason IS NULL
			AND e.lease_holder IS NULL`), key...)
		if err != nil {
			return err
		}
		var left []int64
		err = s.db.choose(ctx, q, &left, `SELECT 1 FROM amends_objects AS e`+ofObject+` UNION ALL SELECT 1 FROM amends_inbox AS e`+ofObject+` AND e.processed_at IS NULL`, append(key, key...)...)
		switch done = len(left) == 0; {
		case err != nil:
			return err
		case !done:
			return errOwed
		}
		numbers, gone, err := s.uncounted(ctx, q, `DELETE FROM amends_inbox AS e`+ofObject+` AND e.processed_at IS NOT NULL`, key...) // one may have come meanwhile
		if err != nil || len(numbers) == 0 {
			return err
		}
		if _, err = q.ExecContext(ctx, s.db.Bind(`DELETE FROM amends_payloads WHERE delivery IN `+s.db.Numbers), numberList(numbers)); err != nil {
			return err
		}
		return countJudged(ctx, s.db, q, gone)
	})
	switch {
	case errors.Is(err, errOwed):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("forget %s: %w", o, err)
	}
	return done, nil
}

// errOwed ends a transaction about an object that is not to be forgotten yet.
var errOwed = errors.New("it is owed something")

const inboxOf = `
	LEFT JOIN amends_inbox AS d ON d.number = p.delivery` + rows.DigestOfDelivery

func (s *inboxRole) digests(ctx context.Context, q Queries, before any, limit int) (int, error) {
	return affected(q.ExecContext(ctx, s.db.Bind(`DELETE FROM amends_digests WHERE last_at < ? AND key IN (
		SELECT g.key FROM amends_digests AS g
		WHERE g.first_at < ? AND g.last_at < ? AND NOT EXISTS (SELECT 1 FROM amends_inbox AS d WHERE d.number = g.delivery)
		ORDER BY g.first_at LIMIT ?)`), before, before, before, limit))
}

func affected(r interface{ RowsAffected() (int64, error) }, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
