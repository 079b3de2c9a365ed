package storetest

import (
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
)

var duplicateCases = []testCase{
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
