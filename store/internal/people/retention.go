package people

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/internal/rows"
)

// replayed is how many deliveries become unjudged in one transaction, so that whoever receives need not wait long.
const replayed = 2000

// Replay makes deliveries unjudged again, the newest first.
func (d *Desk) Replay(ctx context.Context, f reconcile.DeliveryFilter, why string) (int, error) {
	n, rest := 0, f.Limit
	for {
		page := replayed
		if f.Limit > 0 {
			page = min(page, rest)
		}
		w := d.selected(&f)
		var numbers []int64
		err := d.get(ctx, &numbers, `SELECT d.number FROM amends_inbox AS d`+w.String()+` ORDER BY d.number DESC LIMIT ?`, append(w.args, page))
		if err == nil && len(numbers) > 0 {
			err = d.write(ctx, func(ctx context.Context, q Queries) error {
				_, err := q.ExecContext(ctx, d.db.Bind(`UPDATE amends_inbox SET judged = NULL, because = ?
					WHERE judged IS NOT NULL AND number IN `+d.db.Numbers), rows.Text(why), list(numbers))
				return err
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

// Purge erases what is older than the retention allows: deliveries with their bodies, then the bodies of those that
// stay, then digests whose delivery is gone. Each is a transaction of its own.
func (d *Desk) Purge(ctx context.Context, r reconcile.Retention, limit int) (int, error) {
	now, err := d.db.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("purge: %w", d.db.Explain(ctx, err))
	}
	total := 0
	for _, kind := range []struct {
		keep  time.Duration
		erase func(ctx context.Context, q Queries, before any, limit int) (int, error)
	}{{r.Verdicts, d.deliveries}, {r.Bodies, d.bodies}, {r.Digests, d.digests}} {
		if kind.keep <= 0 {
			continue // for ever
		}
		err := d.write(ctx, func(ctx context.Context, q Queries) error {
			n, err := kind.erase(ctx, q, d.db.Moment(now.Add(-kind.keep)), limit)
			total += n
			return err
		})
		if err != nil {
			return total, fmt.Errorf("purge: %w", err)
		}
	}
	return total, nil
}

// settled is a delivery, as d with its digest as g, to which nothing is owed any more.
const settled = `d.judged IS NOT NULL AND NOT EXISTS (SELECT 1 FROM amends_entries AS e
	WHERE e.source = d.source AND e.tenant = d.tenant AND e.type = d.type AND e.id = d.id AND (` + owing + `))`

func (d *Desk) deliveries(ctx context.Context, q Queries, before any, limit int) (int, error) {
	var numbers []int64
	err := d.choose(ctx, q, &numbers, `SELECT d.number FROM amends_inbox AS d
			LEFT JOIN amends_digests AS g ON g.key = d.key AND g.number = d.number
		WHERE d.received < ? AND coalesce(g.last, d.received) < ? AND `+settled+`
		ORDER BY d.received LIMIT ?`, before, before, limit)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	// A replay may have come in between.
	var gone []int64
	err = d.choose(ctx, q, &gone, `DELETE FROM amends_inbox WHERE judged IS NOT NULL AND number IN `+d.db.Numbers+` RETURNING number`,
		list(numbers))
	if err != nil {
		return 0, err
	}
	_, err = q.ExecContext(ctx, d.db.Bind(`DELETE FROM amends_bodies WHERE number IN `+d.db.Numbers), list(gone))
	return len(gone), err
}

func (d *Desk) bodies(ctx context.Context, q Queries, before any, limit int) (int, error) {
	var numbers []int64
	err := d.choose(ctx, q, &numbers, `SELECT b.number FROM amends_bodies AS b`+inboxOf+`
		WHERE b.at < ? AND coalesce(g.last, b.at) < ? AND (d.number IS NULL OR `+settled+`)
		ORDER BY b.at LIMIT ?`, before, before, limit)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	return affected(q.ExecContext(ctx, d.db.Bind(`DELETE FROM amends_bodies WHERE number IN `+d.db.Numbers+`
		AND NOT EXISTS (SELECT 1 FROM amends_inbox AS d WHERE d.number = amends_bodies.number AND d.judged IS NULL)`), list(numbers)))
}

const inboxOf = `
	LEFT JOIN amends_inbox AS d ON d.number = b.number
	LEFT JOIN amends_digests AS g ON g.key = d.key AND g.number = d.number`

func (d *Desk) digests(ctx context.Context, q Queries, before any, limit int) (int, error) {
	return affected(q.ExecContext(ctx, d.db.Bind(`DELETE FROM amends_digests WHERE last < ? AND key IN (
		SELECT g.key FROM amends_digests AS g
		WHERE g.first < ? AND g.last < ? AND NOT EXISTS (SELECT 1 FROM amends_inbox AS d WHERE d.number = g.number)
		ORDER BY g.first LIMIT ?)`), before, before, before, limit))
}

func affected(r interface{ RowsAffected() (int64, error) }, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

func (d *Desk) write(ctx context.Context, fn func(context.Context, Queries) error) error {
	return d.db.Explain(ctx, d.db.Write(ctx, fn))
}

// choose reads all rows of a query within a transaction.
func (d *Desk) choose(ctx context.Context, q Queries, dest any, query string, args ...any) error {
	return sqlx.SelectContext(ctx, q, dest, d.db.Bind(query), args...)
}
