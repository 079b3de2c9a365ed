package sqlstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Totals counts the works of each saga, status and reason. It reads all instances.
func (s *chains) Totals(ctx context.Context) ([]ledger.Total, error) {
	ts, err := viewed(ctx, s, "count works", func(t *ledger.Total) []rows.Field {
		return []rows.Field{
			{"saga", &t.Saga}, {"status", (*string)(&t.Status)}, {"reason", (*string)(&t.Reason)}, {"works", &t.Works}, {"oldest_due", &t.OldestDue},
		}
	}, totals)
	slices.SortFunc(ts, func(a, b ledger.Total) int { return a.Compare(&b) })
	return ts, err
}

// blocked is how many a layer blocked.
type blocked struct {
	by string
	n  int64
}

// Blocked adds n to what a layer blocked today. All processes write the same row, so those that come at the same time are added at once.
func (s *chains) Blocked(ctx context.Context, by string, n int64) error {
	_, err := s.blocks.ask(ctx, blocked{by, n})
	return s.failed(ctx, err, "count what %s blocked", by)
}

func (s *chains) addUp(ctx context.Context, all []blocked) ([]struct{}, error) {
	sums := make(map[string]int64)
	for _, b := range all {
		sums[b.by] += b.n
	}
	return make([]struct{}, len(all)), s.db.Whole(Again(ctx), func(ctx context.Context, q Queries) error {
		var now Moment
		if err := sqlx.GetContext(ctx, q, &now, s.db.Text(readNow), s.db.Clock()); err != nil {
			return err
		}
		for _, by := range slices.Sorted(maps.Keys(sums)) { // two processes do not wait for each other in a circle
			if err := countBlocked(ctx, s.db, q, by, sums[by], now.Time()); err != nil {
				return err
			}
		}
		return nil
	})
}

// BlockedDays returns how many duplicates were blocked on each day, by day and layer.
func (s *chains) BlockedDays(ctx context.Context, since time.Time) ([]ledger.BlockedDay, error) {
	if since.Before(time.Unix(0, 0)) {
		since = time.Unix(0, 0)
	}
	return viewed(ctx, s, "list days of blocked duplicates", func(d *ledger.BlockedDay) []rows.Field {
		return []rows.Field{{"day", &d.Day}, {"layer", &d.By}, {"count", &d.Count}}
	}, blockedDays, s.db.Moment(ledger.DayOf(since)))
}

const blockedDays = `SELECT day, layer, count FROM amends_blocked_days WHERE day >= ? ORDER BY day, layer`

// CountBlocked adds n to what a layer blocked on the day that now is in. It is the very last that a
// transaction does, behind [CountJudged], too: all processes write the same row.
func CountBlocked(ctx context.Context, s *Store, q Queries, by string, n int64, now time.Time) error {
	return countBlocked(ctx, s.db, q, by, n, now)
}

func countBlocked(ctx context.Context, d *Dialect, q Queries, by string, n int64, now time.Time) error {
	if n == 0 {
		return nil
	}
	_, err := q.ExecContext(ctx, addBlocked, d.Moment(ledger.DayOf(now)), by, n)
	return err
}

const addBlocked = `INSERT INTO amends_blocked_days AS b (day, layer, count) VALUES ($1, $2, $3) ` + OnBlocked

const readNow = `SELECT {now}`

// OnBlocked is what becomes of a day that is there.
const OnBlocked = `ON CONFLICT (day, layer) DO UPDATE SET count = b.count + excluded.count`

// turnedAway is how many of the deliveries that were judged now told nothing new. Handed out again
// for a replay they have an outcome, and were counted when they met it first.
func turnedAway(before, after []intake.Delivery) (n int64) {
	for i := range after {
		if v := after[i].Outcome; before[i].Outcome == "" && (v == intake.Stale || v == intake.Duplicate) {
			n++
		}
	}
	return n
}
