package sqlstore

import (
	"cmp"
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

// blocked is how many of a source a layer blocked.
type blocked struct {
	by, source string
	n          int64
}

// Blocked adds n to what a layer blocked of a source today. All processes write the same rows, so those that come at the same time are
// added at once.
func (s *chains) Blocked(ctx context.Context, by, source string, n int64) error {
	failed, err := s.blocks.ask(ctx, blocked{by, source, n})
	return s.failed(ctx, cmp.Or(err, failed), "count what %s blocked", by)
}

// addUp answers each with the same error: what may be counted is not counted again, alone or together.
func (s *chains) addUp(ctx context.Context, all []blocked) ([]error, error) {
	sums := make(map[string]map[string]int64)
	for _, b := range all {
		if sums[b.by] == nil {
			sums[b.by] = make(map[string]int64)
		}
		sums[b.by][b.source] += b.n
	}
	err := s.db.Whole(ctx, func(ctx context.Context, q Queries) error {
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
	return slices.Repeat([]error{err}, len(all)), nil
}

// BlockedDays returns how many duplicates were blocked on each day, by day, layer and source.
func (s *chains) BlockedDays(ctx context.Context, since time.Time) ([]ledger.BlockedDay, error) {
	if since.Before(time.Unix(0, 0)) {
		since = time.Unix(0, 0)
	}
	return viewed(ctx, s, "list days of blocked duplicates", func(d *ledger.BlockedDay) []rows.Field {
		return []rows.Field{{"day", &d.Day}, {"layer", &d.By}, {"source", &d.Source}, {"count", &d.Count}}
	}, blockedDays, s.db.Moment(ledger.DayOf(since)))
}

const blockedDays = `SELECT day, layer, source, count FROM amends_blocked_days WHERE day >= ? ORDER BY day, layer, source`

// CountBlocked adds to what a layer blocked of each source on the day that now is in. It is the very last that a
// transaction does, behind [CountJudged], too: all processes write the same rows.
func CountBlocked(ctx context.Context, s *Store, q Queries, by string, sources map[string]int64, now time.Time) error {
	return countBlocked(ctx, s.db, q, by, sources, now)
}

func countBlocked(ctx context.Context, d *Dialect, q Queries, by string, sources map[string]int64, now time.Time) error {
	for _, source := range slices.Sorted(maps.Keys(sources)) { // in one order, as the layers
		if _, err := q.ExecContext(ctx, addBlocked, d.Moment(ledger.DayOf(now)), by, source, sources[source]); err != nil {
			return err
		}
	}
	return nil
}

const addBlocked = `INSERT INTO amends_blocked_days AS b (day, layer, source, count) VALUES ($1, $2, $3, $4) ` + OnBlocked

const readNow = `SELECT {now}`

// OnBlocked is what becomes of a day that is there.
const OnBlocked = `ON CONFLICT (day, layer, source) DO UPDATE SET count = b.count + excluded.count`

// turnedAway is how many of the deliveries of each source that were judged now told nothing new. Handed out again
// for a replay they have an outcome, and were counted when they met it first.
func turnedAway(before, after []intake.Delivery) map[string]int64 {
	sources := make(map[string]int64)
	for i := range after {
		if v := after[i].Outcome; before[i].Outcome == "" && (v == intake.Stale || v == intake.Duplicate) {
			sources[after[i].Object.Source]++
		}
	}
	return sources
}
