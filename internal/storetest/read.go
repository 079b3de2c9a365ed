package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var readCases = []testCase{
	{name: "deliveries by filter", run: readDeliveries, breaks: unsorted},
	{name: "deliveries page by page", run: readPages, breaks: leafed},
	{name: "an unknown delivery", run: readUnknown},
	{name: "entries by filter", run: readEntries, breaks: heaped},
	{name: "counts", run: readCounts, breaks: broken{"counts-taken-back": func(s Store) Store { return hoarder{s, map[string]intake.Count{}} }}},
	{name: "counts of two who judge", run: readCountsOfTwo},
	{name: "what was stopped", run: readStopped},
}

var replayCases = []testCase{
	{name: "unjudged again", run: replayAgain},
	{name: "a part", run: replayPart},
}

// "of which objects deliveries came to nothing because they were copies or told nothing new, those
// first of which one did last".
func readStopped(b *bench) {
	es := events(6)
	es[0].Object = intake.Object{Source: "shop", Tenant: "a:b", Type: "order", ID: "%3A:1"}
	es[1].Object, es[2].Object = es[0].Object, es[0].Object // three events about one object
	b.accept(es[:4]...)
	b.judgeAs(intake.Applied)
	b.accept(es[4])
	b.judgeAs(intake.Stale)
	b.accept(es[5])
	b.judgeAs(intake.Hint)
	b.accept(es[1], es[1])
	b.until(b.calendar, b.calendar())
	b.accept(es[2])
	count := func(f intake.StoppedFilter) string {
		all, err := b.Stopped(b.Context(), f)
		if err != nil {
			b.Fatal(err)
		}
		var text []string
		for _, s := range all {
			text = append(text, fmt.Sprintf("%s %d %d", s.Object, s.Copies, s.Known))
			if s.First.IsZero() || s.Last.Before(s.First) {
				b.Errorf("%s: first at %s, last at %s", s.Object, s.First, s.Last)
			}
		}
		return strings.Join(text, ", ")
	}
	const copied, stale = "shop:a%3Ab:order:%253A%3A1 3 0", "shop:order:0004 0 1"
	for want, f := range map[string]intake.StoppedFilter{
		copied + ", " + stale: {},
		copied:                {Limit: 1},
		stale:                 {Object: es[4].Object},
	} {
		if got := count(f); got != want {
			b.Errorf("%+v: %q; want %q", f, got, want)
		}
	}
	for prefix, want := range map[string]string{"shop:": copied + ", " + stale, "shop:a%3Ab:order:%253A%3A": copied, "shop:o": stale, "shop:a:": "", "a": ""} {
		if got := count(intake.StoppedFilter{Prefix: prefix}); got != want {
			b.Errorf("prefix %s: %q; want %q", prefix, got, want)
		}
	}
	if got := count(intake.StoppedFilter{Object: intake.Object{Tenant: "a:b"}, Limit: 10}); got != copied {
		b.Errorf("of a tenant: %q; want %q", got, copied)
	}
}

// Each field of a filter narrows.
func readDeliveries(b *bench) {
	es := events(6)
	es[1].Object.Source = "books"
	es[2].Object.Tenant = "eu"
	es[3].Object.Type = "refund"
	es[4].Received = es[4].Received.Add(-24 * time.Hour)
	b.accept(es...)
	b.judgeAs(intake.Applied)
	late := event("late")
	b.accept(late)
	all := b.all()
	noon := es[4].Received.Add(time.Hour)
	for name, c := range map[string]struct {
		f    intake.DeliveryFilter
		want string
	}{
		"none":           {intake.DeliveryFilter{}, "[late 0005 0004 0003 0002 0001 0000]"},
		"numbers":        {intake.DeliveryFilter{Numbers: []int64{all[0].Number, all[2].Number, 1 << 60}}, "[0002 0000]"},
		"no number":      {intake.DeliveryFilter{Numbers: []int64{}}, "[]"},
		"source":         {intake.DeliveryFilter{Source: "books"}, "[0001]"},
		"tenant":         {intake.DeliveryFilter{Object: intake.Object{Tenant: "eu"}}, "[0002]"},
		"type":           {intake.DeliveryFilter{Object: intake.Object{Type: "refund"}}, "[0003]"},
		"object":         {intake.DeliveryFilter{Object: object("0005")}, "[0005]"},
		"disposition":    {intake.DeliveryFilter{Disposition: intake.Applied, Limit: 2}, "[0005 0004]"},
		"no disposition": {intake.DeliveryFilter{Disposition: intake.Stale}, "[]"},
		"unjudged":       {intake.DeliveryFilter{Unjudged: true}, "[late]"},
		"from":           {intake.DeliveryFilter{From: noon, Source: "shop"}, "[late 0005 0003 0002 0000]"},
		"first from":     {intake.DeliveryFilter{From: noon, Source: "shop", Limit: 2}, "[late 0005]"},
		"until":          {intake.DeliveryFilter{Until: noon}, "[0004]"},
		"exact":          {intake.DeliveryFilter{From: es[4].Received, Until: es[4].Received.Add(time.Microsecond)}, "[0004]"},
		"empty time":     {intake.DeliveryFilter{From: es[4].Received, Until: es[4].Received}, "[]"},
		"several":        {intake.DeliveryFilter{Source: "shop", Object: intake.Object{Type: "order"}, Disposition: intake.Applied, Before: all[5].Number}, "[0004 0002 0000]"},
	} {
		ds, err := b.Deliveries(b.Context(), c.f)
		if err != nil || names(ds) != c.want {
			b.Errorf("%s: %s, %v; want %s", name, names(ds), err, c.want)
		}
	}
}

func names(ds []intake.Delivery) string {
	var all []string
	for _, d := range ds {
		all = append(all, d.Object.ID)
	}
	return fmt.Sprint(all)
}

// "numbers below this one: the next page"; "0: 100 for lists".
func readPages(b *bench) {
	b.accept(events(250)...)
	var before int64
	for page, want := range []int{100, 100, 50, 0} {
		ds, err := b.Deliveries(b.Context(), intake.DeliveryFilter{Before: before})
		if err != nil || len(ds) != want {
			b.Fatalf("page %d has %d, %v; want %d", page, len(ds), err, want)
		}
		for _, d := range ds {
			if before != 0 && d.Number >= before {
				b.Fatalf("number %d after %d: not the newest first", d.Number, before)
			}
			before = d.Number
		}
	}
}

// "an unknown number matches ErrNotFound".
func readUnknown(b *bench) {
	if _, err := b.Delivery(b.Context(), 12345); !errors.Is(err, intake.ErrNotFound) {
		b.Errorf("got %v", err)
	}
}

// Entries come in the order of their objects, narrowed by each field of a filter.
func readEntries(b *bench) {
	eu := intake.Object{Source: "shop", Tenant: "eu", Type: "order", ID: "1"}
	books := intake.Object{Source: "books", Type: "invoice", ID: "9"}
	for o, change := range map[intake.Object]func(*intake.Entry){
		object("1"): func(e *intake.Entry) { e.Dirty = 1 },
		object("2"): func(e *intake.Entry) { e.Accepted, e.Delivered = 2, 2 },
		object("3"): func(e *intake.Entry) { e.Blocked = "poison" },
		eu:          func(e *intake.Entry) { e.Accepted = 1 },
		books: func(e *intake.Entry) {
			e.LastError, e.Due = intake.NotYet+"2126-03-01T12:00:00Z, which is ahead", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		},
	} {
		b.put(o, change)
	}
	for name, c := range map[string]struct {
		f    intake.EntryFilter
		want string
	}{
		"none":    {intake.EntryFilter{}, "[books:invoice:9 shop:order:1 shop:order:2 shop:order:3 shop:eu:order:1]"},
		"owing":   {intake.EntryFilter{Owing: true}, "[shop:order:1 shop:eu:order:1]"},
		"blocked": {intake.EntryFilter{Blocked: true}, "[shop:order:3]"},
		"future":  {intake.EntryFilter{Future: true}, "[books:invoice:9]"},
		"source":  {intake.EntryFilter{Object: intake.Object{Source: "books"}}, "[books:invoice:9]"},
		"object":  {intake.EntryFilter{Object: eu}, "[shop:eu:order:1]"},
		"after":   {intake.EntryFilter{After: object("2"), Limit: 1}, "[shop:order:3]"},
		"limit":   {intake.EntryFilter{Limit: 2}, "[books:invoice:9 shop:order:1]"},
	} {
		es, err := b.Entries(b.Context(), c.f)
		got := make([]string, len(es))
		for i, e := range es {
			got[i] = e.Object.String()
		}
		if err != nil || fmt.Sprint(got) != c.want {
			b.Errorf("%s: %v, %v; want %s", name, got, err, c.want)
		}
	}
}

// "Counts returns how many deliveries of each source met which disposition"; "an empty disposition
// counts the unjudged".
func readCounts(b *bench) {
	es := events(5)
	es[0].Object.Source = "books"
	b.accept(es...)
	b.judgeAs(intake.Applied)
	known := event("malformed")
	known.Disposition = intake.Malformed
	b.accept(known, event("a"), event("b"))
	b.counts(`[books "applied" 1 shop "" 2 shop "applied" 4 shop "malformed" 1]`)

	conflict := known // which is not judged, whatever the receiver said of it
	conflict.Body, conflict.Fingerprint = []byte(`{"another":true}`), intake.DigestOf("another")
	b.accept(es[1], known, conflict)
	b.counts(`[books "applied" 1 shop "" 3 shop "applied" 4 shop "malformed" 1]`)

	for _, source := range []string{"books", "books", "shop"} { // the second time there is nothing to take back
		if _, err := b.Replay(b.Context(), intake.DeliveryFilter{Source: source, Disposition: intake.Applied}, "once more"); err != nil {
			b.Fatal(err)
		}
	}
	b.counts(`[books "" 1 shop "" 7 shop "malformed" 1]`)
	b.judgeAs(intake.Stale)
	b.counts(`[books "stale" 1 shop "malformed" 1 shop "stale" 7]`)

	b.age()
	b.accept(event("young"))
	b.judgeAs(intake.Stale)
	b.accept(event("to be judged"))
	b.purge(intake.Retention{Rows: time.Hour})
	b.counts(`[books "stale" 1 shop "" 1 shop "malformed" 1 shop "stale" 8]`)
	b.age()
	b.purge(intake.Retention{Rows: soon})
	b.counts(`[shop "" 1]`)
}

// counts compares what is counted with what should be.
func (b *bench) counts(want string) {
	b.Helper()
	counts, err := b.Counts(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	for _, c := range counts {
		got = append(got, fmt.Sprintf("%s %q %d", c.Source, c.Disposition, c.Count))
		if c.Last.IsZero() {
			b.Errorf("%+v says no time", c)
		}
	}
	if fmt.Sprint(got) != want {
		b.Errorf("counted are %v, want %s", got, want)
	}
}

// What one process judged another counts, and takes back.
func readCountsOfTwo(b *bench) {
	stores := []Store{b.Store, b.again(), b.again()}
	for i := range 6 {
		b.Store = stores[i%3]
		b.accept(event(fmt.Sprint(i)))
		b.judgeAs(intake.Applied)
	}
	b.Store = stores[1]
	b.counts(`[shop "applied" 6]`)
	if _, err := b.Replay(b.Context(), intake.DeliveryFilter{}, "once more"); err != nil {
		b.Fatal(err)
	}
	b.Store = stores[2]
	b.counts(`[shop "" 6]`)
}

// "Replay makes the deliveries that f selects unjudged again: they go through the gate once more.
// Their outcomes stay until then. why becomes the Because of those that were judged. It answers how
// many f selects".
func replayAgain(b *bench) {
	b.accept(events(3)...)
	b.judgeAs(intake.Stale)
	b.accept(event("unjudged"))
	if n, err := b.Replay(b.Context(), intake.DeliveryFilter{}, "mended\x00, says anna"); err != nil || n != 4 {
		b.Errorf("replayed %d, %v; want all 4", n, err)
	}
	n, err := b.Judge(b.Context(), 10, func(_ time.Time, ds []intake.Delivery, _ map[intake.Object]*intake.Entry) error {
		for i := range ds {
			if again := ds[i].Object.ID != "unjudged"; again != (ds[i].Outcome == intake.Stale) {
				b.Errorf("%s comes with outcome %q", ds[i].Object, ds[i].Outcome)
			} else if again != strings.HasSuffix(ds[i].Because, ", says anna") {
				b.Errorf("%s comes because of %q", ds[i].Object, ds[i].Because)
			}
			ds[i].Outcome = intake.Applied
		}
		return nil
	})
	if err != nil || n != 4 {
		b.Errorf("judged %d, %v; want 4", n, err)
	}
	if n := b.judgeAs(intake.Stale); n != 0 {
		b.Errorf("%d were still unjudged", n)
	}
}

// A replay is narrowed as a list is: by number, by source, by disposition, by time; the newest
// first when it is limited.
func replayPart(b *bench) {
	es := events(4)
	es[0].Object.Source = "books"
	b.accept(es...)
	b.judgeAs(intake.Stale)
	all := b.all()
	for name, c := range map[string]struct {
		f    intake.DeliveryFilter
		want int
	}{
		"number": {intake.DeliveryFilter{Numbers: []int64{all[1].Number}}, 1},
		"source": {intake.DeliveryFilter{Source: "books"}, 1},
		"other":  {intake.DeliveryFilter{Disposition: intake.Tie}, 0},
		"limit":  {intake.DeliveryFilter{Limit: 2}, 2},
	} {
		if n, err := b.Replay(b.Context(), c.f, "again"); err != nil || n != c.want {
			b.Errorf("%s: replayed %d, %v; want %d", name, n, err, c.want)
		}
		if n := b.judgeAs(intake.Stale); n != c.want {
			b.Errorf("%s: %d went through the gate again, want %d", name, n, c.want)
		}
	}
}
