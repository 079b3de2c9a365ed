package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

// Totals counts "the works of each saga, status and reason, in that order".
func (db *DB) Totals(ctx context.Context) ([]ledger.Total, error) {
	return in(ctx, db, func(time.Time) ([]ledger.Total, error) {
		sums := make(map[ledger.Total]ledger.Total)
		for _, w := range db.works {
			h := &w.head
			key := ledger.Total{Saga: h.ID.Saga, Status: h.Status, Reason: h.Reason}
			t := sums[key]
			if h.Session == 0 && h.WaitsFor == "" && !h.Due.IsZero() && (t.OldestDue.IsZero() || h.Due.Before(t.OldestDue)) {
				t.OldestDue = h.Due
			}
			t.Works++
			sums[key] = t
		}
		ts := make([]ledger.Total, 0, len(sums))
		for t, sum := range sums {
			t.Works, t.OldestDue = sum.Works, sum.OldestDue
			ts = append(ts, t)
		}
		slices.SortFunc(ts, func(a, b ledger.Total) int { return a.Compare(&b) })
		return ts, nil
	}, "count works")
}

// block adds to what a layer blocked of a source on a day.
func (db *DB) block(by, source string, n int64, now time.Time) {
	db.blocked[ledger.BlockedDay{Day: ledger.DayOf(now), By: by, Source: source}] += n
}

// Blocked adds n to what a layer blocked of a source today.
func (db *DB) Blocked(ctx context.Context, by, source string, n int64) error {
	return db.do(ctx, func(now time.Time) error {
		db.block(by, source, n, now)
		return nil
	}, "count what %s blocked", by)
}

// BlockedDays returns "how many duplicates were blocked on each day, by day, layer and source, from
// the day on that since is in".
func (db *DB) BlockedDays(ctx context.Context, since time.Time) ([]ledger.BlockedDay, error) {
	return in(ctx, db, func(time.Time) ([]ledger.BlockedDay, error) {
		var days []ledger.BlockedDay
		for d, n := range db.blocked {
			if d.Count = n; !d.Day.Before(ledger.DayOf(since)) {
				days = append(days, d)
			}
		}
		slices.SortFunc(days, func(a, b ledger.BlockedDay) int {
			return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.By, b.By), cmp.Compare(a.Source, b.Source))
		})
		return days, nil
	}, "list days of blocked duplicates")
}

// oldestSignal is when the signal was posted that no record has consumed for longest.
func (db *DB) oldestSignal() (oldest time.Time) {
	for _, w := range db.works {
		for i := range w.signals {
			if s := &w.signals[i]; !w.read[s.ID] && (oldest.IsZero() || s.At.Before(oldest)) {
				oldest = s.At
			}
		}
	}
	return oldest
}
