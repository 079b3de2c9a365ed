package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

var duplicateCases = []testCase{
	{name: "counted by work and source", run: duplicateCount},
	{name: "counted once", run: duplicateOnce, breaks: broken{"counted-once": func(s Store) Store { return adder{s} }}},
	{name: "silent for a day", run: duplicateFolds, needs: func(h Harness) bool { return h.SetClock != nil && h.Counters != nil }},
	{name: "at the same time", run: duplicateRace},
	{name: "filters", run: duplicateFilters},
	{name: "a long source", run: duplicateLong},
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

// "Count stores how many blocked duplicates a counter has seen of each work and source", with the
// first and last time by the ledger's clock. It leaves the head alone: a storm of one key must not
// lock it.
func duplicateCount(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	b.start(t, "v", started(), hold)
	head, before := c.now(), b.clock()
	b.count(7)
	b.count(7, ledger.Duplicate{ID: id("w"), Source: "webhook", Count: 3}, ledger.Duplicate{ID: id("v"), Source: "webhook", Count: 1})
	b.until(b.clock, b.clock()) // the second count comes later, by the ledger's clock
	b.count(7, ledger.Duplicate{ID: id("w"), Source: "webhook", Count: 7}, ledger.Duplicate{ID: id("w"), Source: "", Count: 1})
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
		b.Errorf("counters %v, want w from webhook: 7, v from webhook: 1, w from no source: 1", counts)
	}
	if diff := headDiff(c.now(), head); diff != "" {
		b.Errorf("counting changed the head:%s", diff)
	}
}

// "The greatest total counts, so a call that comes again, or late, counts nothing twice" (K15): a
// call whose answer was lost is made again, and one that was on its way for long comes behind its
// successor.
func duplicateOnce(b *bench) {
	b.start(b.session(), "w", started(), hold)
	total := func(n int64) ledger.Duplicate { return ledger.Duplicate{ID: id("w"), Source: "webhook", Count: n} }
	want := func(what string, n int64) ledger.Duplicate {
		b.Helper()
		ds := b.duplicates(ledger.Filter{})
		if len(ds) != 1 || ds[0].Count != n {
			b.Fatalf("%s: %+v, want %d of one work and source", what, ds, n)
		}
		return ds[0]
	}
	b.count(7, total(3))
	once := want("once", 3)
	b.until(b.clock, b.clock())
	b.count(7, total(3))
	if again := want("again", 3); again != once {
		b.Errorf("a call that came again made %+v of %+v", again, once)
	}
	b.count(7, total(5))
	want("two more", 5)
	b.count(7, total(3))
	want("late", 5)
	b.count(8, total(4))
	want("another process", 9)
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

// A filter narrows duplicates by saga, work, prefix and limit.
func duplicateFilters(b *bench) {
	t := b.session()
	other := b.fresh(t, "shop:1")
	other.id.Saga = "order-to-crm"
	other.add(started(), hold)
	for _, w := range []string{"shop:1", "shop:2", "web:1"} {
		b.start(t, w, started(), hold)
		b.count(7, ledger.Duplicate{ID: id(w), Source: "s", Count: 1})
	}
	b.count(7, ledger.Duplicate{ID: other.id, Source: "s", Count: 1})
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
		b.count(7, ledger.Duplicate{ID: id("shop:1"), Source: fmt.Sprint(i), Count: 1})
	}
	if got := b.duplicates(ledger.Filter{}); len(got) != 100 {
		b.Errorf("%d duplicates without a limit, want 100", len(got))
	}
}

// "A source that is longer than MaxText is cut", and costs no other count (CORE-23).
func duplicateLong(b *bench) {
	b.start(b.session(), "w", started(), hold)
	b.count(7, ledger.Duplicate{ID: id("w"), Source: longest + "!", Count: 2}, ledger.Duplicate{ID: id("w"), Source: "webhook", Count: 3},
		ledger.Duplicate{ID: id("w"), Source: longest + "?", Count: 4})
	got := map[string]int64{}
	for _, d := range b.duplicates(ledger.Filter{}) {
		got[d.Source] = d.Count
	}
	if len(got) != 2 || got[longest] != 6 || got["webhook"] != 3 {
		b.Errorf("counted %v, want 6 under the source that was cut and 3 under the other", got)
	}
}
