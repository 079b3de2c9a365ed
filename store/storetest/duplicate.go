package storetest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/amends-dev/amends/ledger"
)

var duplicateCases = []testCase{
	{name: "counted by work and source", run: duplicateCount},
	{name: "at the same time", run: duplicateRace},
	{name: "filters", run: duplicateFilters},
	{name: "a long source", run: duplicateLong},
}

func (b *bench) count(ds ...ledger.Duplicate) {
	b.Helper()
	if err := b.Count(b.Context(), ds); err != nil {
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

// "Count adds blocked duplicates to their counters", by work and source, with the first and last time by the
// ledger's clock. It leaves the head alone: a storm of one key must not lock it.
func duplicateCount(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	b.start(t, "v", started(), hold)
	head, before := c.now(), b.clock()
	b.count()
	b.count(ledger.Duplicate{ID: id("w"), Source: "webhook", Count: 3}, ledger.Duplicate{ID: id("v"), Source: "webhook", Count: 1})
	b.until(b.clock, b.clock()) // the second count comes later, by the ledger's clock
	b.count(ledger.Duplicate{ID: id("w"), Source: "webhook", Count: 4}, ledger.Duplicate{ID: id("w"), Source: "", Count: 1})
	got := b.duplicates(ledger.Filter{})
	counts := map[string]int64{}
	for i, d := range got {
		counts[d.ID.Work+" from "+d.Source] = d.Count
		if d.First.Before(before) || d.Last.Before(d.First) || d.Last.After(b.clock()) {
			b.Errorf("%+v: first and last are not in order between %v and now", d, before)
		}
		if i > 0 && d.Last.After(got[i-1].Last) {
			b.Errorf("%+v stands behind %+v: want the most recent first", d, got[i-1])
		}
		if again := d.ID.Work == "w" && d.Source == "webhook"; again != d.Last.After(d.First) {
			b.Errorf("%+v: counted at two times: %v", d, again)
		}
	}
	if len(got) != 3 || counts["w from webhook"] != 7 || counts["v from webhook"] != 1 || counts["w from "] != 1 {
		b.Errorf("counters %v, want w from webhook: 7, v from webhook: 1, w from nobody: 1", counts)
	}
	if diff := headDiff(c.now(), head); diff != "" {
		b.Errorf("counting changed the head:%s", diff)
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
					ds = append(ds, ledger.Duplicate{ID: id(order((w*i + w + round) % 5)), Source: "poll", Count: 2})
				}
				if err := store.Count(b.Context(), ds); err != nil {
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
}

// A filter narrows duplicates by saga, work, prefix and limit.
func duplicateFilters(b *bench) {
	t := b.session()
	other := b.fresh(t, "shop:1")
	other.id.Saga = "order-to-crm"
	other.add(started(), hold)
	for _, w := range []string{"shop:1", "shop:2", "web:1"} {
		b.start(t, w, started(), hold)
		b.count(ledger.Duplicate{ID: id(w), Source: "s", Count: 1})
	}
	b.count(ledger.Duplicate{ID: other.id, Source: "s", Count: 1})
	for _, c := range []struct {
		f    ledger.Filter
		want []string
	}{
		{ledger.Filter{Saga: theSaga}, []string{"shop:1", "shop:2", "web:1"}},
		{ledger.Filter{Work: "shop:1"}, []string{"shop:1", "shop:1"}},
		{ledger.Filter{Saga: "order-to-crm", Prefix: "shop"}, []string{"shop:1"}},
		{ledger.Filter{Prefix: "web:"}, []string{"web:1"}},
		{ledger.Filter{Work: "nowhere"}, nil},
	} {
		var got []string
		for _, d := range b.duplicates(c.f) {
			got = append(got, d.ID.Work)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			b.Errorf("duplicates %+v: got %v, want %v", c.f, got, c.want)
		}
	}
	if got := b.duplicates(ledger.Filter{Limit: 2}); len(got) != 2 {
		b.Errorf("%d duplicates, want at most 2", len(got))
	}
	for i := range 105 {
		b.count(ledger.Duplicate{ID: id("shop:1"), Source: fmt.Sprint(i), Count: 1})
	}
	if got := b.duplicates(ledger.Filter{}); len(got) != 100 {
		b.Errorf("%d duplicates without a limit, want 100", len(got))
	}
}

// "A source that is longer than MaxText is cut", and costs no other count (CORE-23).
func duplicateLong(b *bench) {
	b.start(b.session(), "w", started(), hold)
	b.count(ledger.Duplicate{ID: id("w"), Source: longest + "!", Count: 2}, ledger.Duplicate{ID: id("w"), Source: "webhook", Count: 3},
		ledger.Duplicate{ID: id("w"), Source: longest + "?", Count: 4})
	got := map[string]int64{}
	for _, d := range b.duplicates(ledger.Filter{}) {
		got[d.Source] = d.Count
	}
	if len(got) != 2 || got[longest] != 6 || got["webhook"] != 3 {
		b.Errorf("counted %v, want 6 under the source that was cut and 3 under the other", got)
	}
}
