package storetest

import (
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

var duplicateCases = []testCase{
	{name: "silent for a day", run: duplicateFolds, needs: func(h Harness) bool { return h.SetClock != nil && h.Counters != nil }},
	{name: "at the same time", run: duplicateRace},
}

func (b *bench) count(c ledger.Counter, totals ...ledger.Duplicate) {
	b.Helper()
	if err := b.Count(b.Context(), c, totals); err != nil {
		b.Fatalf("count: %v", err)
	}
}

func (b *bench) duplicates(f ledger.Filter) []ledger.Duplicate {
	b.Helper()
	ds, err := b.Duplicates(b.Context(), f)
	if err != nil {
		b.Fatalf("duplicates: %v", err)
	}
	return ds
}

// Counters that are silent for a day are one, with what all of them saw, and one that still speaks
// is not among them (K15).
func duplicateFolds(b *bench) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	total := func(work string, n int64) ledger.Duplicate {
		return ledger.Duplicate{ID: id(work), Source: "webhook", Count: n}
	}
	day := func(n int, kept int, calls ...func()) {
		b.Helper()
		b.setClock(now.Add(time.Duration(n) * (ledger.CounterSilence + time.Second)))
		for _, call := range calls {
			call()
		}
		if got := b.harness.Counters(b.T, b.raw); got != kept {
			b.Errorf("day %d: %d counters are kept, want %d", n, got, kept)
		}
	}
	day(0, 4, func() { b.count(1, total("v", 1), total("w", 10)) }, func() { b.count(2, total("w", 100)) }, func() { b.count(3, total("w", 1000)) })
	day(1, 3, func() { b.count(3, total("w", 1001)) }) // v; w of 1 and 2; w of 3, who speaks again
	day(2, 3, func() { b.count(4, total("w", 10_000)) })
	got := map[string]ledger.Duplicate{}
	for _, d := range b.duplicates(ledger.Filter{}) {
		got[d.ID.Work] = d
	}
	if w := got["w"]; len(got) != 2 || got["v"].Count != 1 || w.Count != 11_111 || !w.First.Equal(now) || !w.Last.After(now.Add(2*ledger.CounterSilence)) {
		b.Errorf("counted %+v, want v: 1, and w: 11111 from the first to the last", got)
	}
}

// Processes that flush together lose nothing.
func duplicateRace(b *bench) {
	t := b.session()
	for i := range 5 {
		b.start(t, order(i), started(), hold)
	}
	second := b.again()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			store := b.Store
			if i%2 == 1 {
				store = second
			}
			for round := range 5 {
				var ds []ledger.Duplicate
				for w := range 5 { // in another order each time
					ds = append(ds, ledger.Duplicate{ID: id(order((w*(1+i%4) + round) % 5)), Source: "poll", Count: 2 * int64(round+1)})
				}
				if err := store.Count(b.Context(), ledger.Counter(1+i), ds); err != nil {
					b.Errorf("count: %v", err)
				}
			}
		})
	}
	wg.Wait()
	var sum int64
	for _, d := range b.duplicates(ledger.Filter{}) {
		sum += d.Count
	}
	if want := int64(6 * 5 * 5 * 2); sum != want {
		b.Errorf("%d duplicates counted, want %d", sum, want)
	}
	b.wantBlocked("at the same time", ledger.ByStart, sum)
}
