package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var retentionCases = []testCase{
	{name: "zero is for ever", run: retentionZero},
	{name: "bodies go, dispositions stay", run: retentionBodies},
	{name: "digests outlive deliveries", run: retentionDigests, breaks: broken{"digest-kept": func(s Store) Store { return digestForgetter{s} }}},
	{name: "digests go at last", run: retentionDigestsGo},
	{name: "never what is owed", run: retentionOwed, breaks: broken{"owed-kept": func(s Store) Store { return careless{s} }}},
	{name: "a bounded batch", run: retentionBounded},
	{name: "a copy makes it young again", run: retentionYoung},
}

const soon = time.Millisecond

// age lets a retention of [soon] pass.
func (b *bench) age() {
	b.Helper()
	b.until(b.calendar, b.calendar().Add(2*soon))
}

// purge purges until nothing is left to purge, and returns how many rows that were.
func (b *bench) purge(r intake.Retention) int {
	b.Helper()
	total := 0
	for range 1000 {
		n, err := b.Purge(b.Context(), r, 100)
		if err != nil {
			b.Fatalf("purge: %v", err)
		}
		if n == 0 {
			return total
		}
		total += n
	}
	b.Fatal("there was always something left to purge")
	return 0
}

// A retention that is not set keeps for ever, one that is not over keeps.
func retentionZero(b *bench) {
	b.accept(events(2)...)
	b.judgeAs(intake.Applied)
	b.age()
	n := b.purge(intake.Retention{})
	n += b.purge(intake.Retention{Bodies: time.Hour, Rows: time.Hour, Digests: time.Hour})
	if ds := b.all(); n != 0 || len(ds) != 2 || len(ds[0].Body) == 0 {
		b.Errorf("purged %d, there are %+v", n, ds)
	}
}

// "of deliveries; they may hold personal data".
func retentionBodies(b *bench) {
	b.accept(events(2)...)
	b.judgeAs(intake.Applied)
	b.age()
	if n := b.purge(intake.Retention{Bodies: soon}); n != 2 {
		b.Errorf("purged %d rows, want 2 bodies", n)
	}
	ds := b.all()
	if len(ds) != 2 {
		b.Fatalf("%d deliveries are left of 2", len(ds))
	}
	for _, d := range ds {
		if d.Body != nil || d.Outcome != intake.Applied || d.Topic == "" {
			b.Errorf("left is %+v", d)
		}
	}
}

// "what recognises a duplicate, without the row": a copy of what is gone is still a copy, a
// conflict still one.
func retentionDigests(b *bench) {
	e := event("1")
	b.accept(e)
	b.judgeAs(intake.Applied)
	b.age()
	if n := b.purge(intake.Retention{Rows: soon}); n != 1 {
		b.Errorf("purged %d rows, want the delivery", n)
	}
	b.accept(e)
	if ds := b.all(); len(ds) != 0 {
		b.Errorf("a copy of a delivery that is gone is %+v", ds)
	}
	e.Fingerprint = intake.DigestOf("another")
	b.accept(e)
	if ds := b.all(); len(ds) != 1 || ds[0].Disposition != intake.Conflict || ds[0].Copies != 1 {
		b.Errorf("what conflicts with a delivery that is gone is %+v", ds)
	}
}

// A digest goes when its time is over, and not before its delivery.
func retentionDigestsGo(b *bench) {
	e := event("1")
	b.accept(e)
	b.judgeAs(intake.Applied)
	b.age()
	if n := b.purge(intake.Retention{Digests: soon}); n != 0 {
		b.Errorf("purged %d digests, their delivery is there", n)
	}
	if n := b.purge(intake.Retention{Rows: soon, Digests: soon}); n != 2 {
		b.Errorf("purged %d rows, want the delivery and its digest", n)
	}
	b.accept(e)
	if ds := b.all(); len(ds) != 1 || ds[0].Copies != 1 || !ds[0].Judged.IsZero() {
		b.Errorf("after that it is new, but it is %+v", ds)
	}
}

// "never what is still owed": deliveries that are not judged yet, and deliveries that belong to an
// object to which something is owed.
func retentionOwed(b *bench) {
	b.accept(event("owing"), event("paid"))
	b.judgeAs(intake.Applied)
	b.put(object("owing"), func(e *intake.Entry) { e.Accepted = 1 })
	b.put(object("paid"), func(e *intake.Entry) { e.Accepted, e.Delivered = 1, 1 })
	b.accept(event("unjudged"))
	b.age()
	b.purge(intake.Retention{Bodies: soon})
	for _, d := range b.all() {
		if gone := len(d.Body) == 0; gone != (d.Object.ID == "paid") {
			b.Errorf("the body of %s: gone is %v", d.Object, gone)
		}
	}
	b.purge(intake.Retention{Bodies: soon, Rows: soon, Digests: soon})
	if got := names(b.all()); got != "[owing unjudged]" {
		b.Errorf("%s are left, want those that are owed", got)
	}
	if n, err := b.Replay(b.Context(), intake.DeliveryFilter{Object: object("owing")}, "again"); n != 1 || err != nil {
		b.Fatalf("replayed %d, %v", n, err)
	}
	b.put(object("owing"), func(e *intake.Entry) { e.Delivered = 1 })
	b.purge(intake.Retention{Bodies: soon, Rows: soon})
	if got := names(b.all()); got != "[owing unjudged]" {
		b.Errorf("%s are left: what is replayed is owed", got)
	}
}

// "at most limit rows of each kind".
func retentionBounded(b *bench) {
	b.accept(events(10)...)
	b.judgeAs(intake.Applied)
	b.age()
	for _, want := range []int{4, 4, 2, 0} {
		if n, err := b.Purge(b.Context(), intake.Retention{Rows: soon}, 4); err != nil || n != want {
			b.Errorf("purged %d, %v; want %d", n, err, want)
		}
	}
}

// How old something is counts from its last copy.
func retentionYoung(b *bench) {
	e := event("1")
	e.Received = e.Received.Add(-48 * time.Hour)
	b.accept(e)
	b.judgeAs(intake.Applied)
	if n := b.purge(intake.Retention{Bodies: time.Hour, Rows: time.Hour, Digests: time.Hour}); n != 0 {
		b.Errorf("purged %d rows of what was stored a moment ago", n)
	}
}
