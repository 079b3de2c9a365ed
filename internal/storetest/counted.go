package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

func (b *bench) totals() []ledger.Total {
	b.Helper()
	ts, err := b.Totals(b.Context())
	if err != nil {
		b.Fatalf("totals: %v", err)
	}
	return ts
}

// blocked is what was blocked since a time, by layer.
func (b *bench) blocked(since time.Time) map[string]int64 {
	b.Helper()
	days, err := b.BlockedDays(b.Context(), since)
	if err != nil {
		b.Fatalf("days of blocked duplicates: %v", err)
	}
	sums := make(map[string]int64)
	for i, d := range days {
		if i > 0 && (d.Day.Before(days[i-1].Day) || d.Day.Equal(days[i-1].Day) && d.By <= days[i-1].By) || !d.Day.Equal(ledger.DayOf(d.Day)) || d.Count == 0 {
			b.Errorf("%+v stands behind %+v: want days by day and layer", d, days[:i])
		}
		sums[d.By] += d.Count
	}
	return sums
}

func (b *bench) wantBlocked(when, by string, want int64) {
	b.Helper()
	if got := b.blocked(time.Time{})[by]; got != want {
		b.Errorf("%s: %d were blocked by %s, want %d", when, got, by, want)
	}
}
