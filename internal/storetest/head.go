package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var headCases = []testCase{
	{name: "projection", run: headProjection},
	{name: "released start", run: headReleasedStart},
	{name: "reopened", run: headReopened},
	{name: "revised", run: headRevised},
	{name: "class", run: headClass},
	{name: "the step at issue", run: headStepAtIssue},
	{name: "kept without a schedule", run: headKept},
}

// headWant is what a head must show of what a record decides.
type headWant struct {
	status   saga.Status
	reason   saga.Reason
	held     bool
	due      bool // at the record's time plus its wait
	base     int64
	consumed int64
	step     string // at issue
}

// headStep is one record and what the head must show after it.
type headStep struct {
	name string
	r    machine.Record
	s    *ledger.Schedule
	want headWant
}

// A head is "a projection of the work's chain". It changes only with a schedule, a consumed signal
// or a snapshot; holder and due time only with a schedule.
func headProjection(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	b.expectHead(c, headWant{status: saga.Running, held: true, base: 1})
	b.post(c.id, "one")
	b.post(c.id, "two")
	b.post(c.id, "three")
	snapshot := func(r machine.Record) machine.Record { r.Snapshot = []byte(`{"folded":true}`); return r }
	for _, s := range []headStep{
		{
			"no schedule", arming(doing(machine.KindDispatched, saga.Running), 1), keep,
			headWant{saga.Running, "", true, false, 1, 0, ""},
		},
		{
			"a snapshot without a schedule moves the base and leaves the holder", snapshot(doing(machine.KindDispatched, saga.Running)), keep,
			headWant{saga.Running, "", true, false, 3, 0, ""},
		},
		{
			"signals without a schedule are counted and leave the holder", b.consuming(c.id, doing(machine.KindNoted, saga.Running), 0, 1), keep,
			headWant{saga.Running, "", true, false, 3, 2, ""},
		},
		{
			"held with a wait: the holder wakes it by itself", due(doing(machine.KindNotSent, saga.Retrying), time.Hour), hold,
			headWant{saga.Retrying, "", true, false, 3, 2, "invoice"},
		},
		{
			"the last signal, and released until a time", due(b.consuming(c.id, doing(machine.KindNoted, saga.Retrying), 2), time.Hour), release,
			headWant{saga.Retrying, "", false, true, 3, 3, "invoice"},
		},
		{
			"a snapshot without a schedule leaves the due time", snapshot(due(doing(machine.KindNoted, saga.Retrying), time.Hour)), keep,
			headWant{saga.Retrying, "", false, false, 7, 3, "invoice"}, // due as before: looked at below
		},
		{
			"parked for a person", reviewed(), release,
			headWant{saga.Review, saga.ReasonInDoubt, false, false, 7, 3, "invoice"},
		},
		{
			"parked and asked to hold: parked works are never held", reviewed(), hold,
			headWant{saga.Review, saga.ReasonInDoubt, false, false, 7, 3, "invoice"},
		},
		{
			"taken up again", doing(machine.KindResolved, saga.Compensating), hold,
			headWant{saga.Compensating, "", true, false, 7, 3, "invoice"},
		},
		{
			"ended and asked to hold: terminal works are never held", doing(machine.KindDone, saga.Compensated), hold,
			headWant{saga.Compensated, "", false, false, 7, 3, ""},
		},
	} {
		b.stepHead(c, s)
	}
}

// stepHead appends a record and looks at what became of the head.
func (b *bench) stepHead(c *chain, s headStep) {
	b.Helper()
	before := c.now()
	a := c.add(s.r, s.s)
	h := c.now()
	switch {
	case s.s == nil && (!h.Due.Equal(before.Due) || h.Session != before.Session):
		b.Errorf("without a schedule holder and due time stay: got %s and %v, want %s and %v", h.Session, h.Due, before.Session, before.Due)
	case s.s != nil && s.want.due && !h.Due.Equal(dueOf(s.r, a.At)):
		b.Errorf("due at %v, want %v by its record", h.Due, dueOf(s.r, a.At))
	case s.s != nil && !s.want.due && !h.Due.IsZero():
		b.Errorf("due at %v, want never", h.Due)
	}
	s.want.due = !h.Due.IsZero()
	b.expectHead(c, s.want)
	if b.Failed() {
		b.Fatalf("after: %s", s.name)
	}
}

// dueOf is when a work is due by a record that was stored at a time.
func dueOf(r machine.Record, at time.Time) time.Time {
	r.At = at
	return r.Due()
}

func (b *bench) expectHead(c *chain, w headWant) {
	b.Helper()
	rs := c.history()
	last := rs[len(rs)-1]
	got := c.now()
	want := ledger.Instance{
		Number: c.head, ID: c.id, Salt: theSalt, Version: 1, Revision: "r1",
		Status: w.status, Reason: w.reason, Step: w.step,
		Class: ledger.ClassBegun, Base: w.base, Consumed: w.consumed, Posted: int64(len(b.signals(c.id))),
		Created: rs[0].At, Updated: got.Updated,
	}
	if w.held {
		want.Session = c.token
	}
	if w.due {
		want.Due = got.Due
	}
	if w.status.Terminal() {
		want.Finished = last.At
	}
	if diff := headDiff(got, want); diff != "" {
		b.Errorf("head of %s at record %d:%s", c.id, last.Seq, diff)
	}
	if got.Updated.Before(got.Created) {
		b.Errorf("head of %s: updated %v before it was created %v", c.id, got.Updated, got.Created)
	}
}

// The step at issue is the one that a record arms, else the one that it speaks of, while the work
// is retrying, compensating, in review or paused; with or without a schedule. One that names none
// leaves it.
func headStepAtIssue(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	of := func(r machine.Record, step string) machine.Record { r.Step = step; return r }
	arms := func(r machine.Record, step string) machine.Record { r = arming(r, 1); r.Dispatch.Step = step; return r }
	review := reviewed()
	review.Step = ""
	for i, s := range []struct {
		r    machine.Record
		s    *ledger.Schedule
		want string
	}{
		{arms(of(doing(machine.KindDone, saga.Running), "a"), "b"), keep, ""},
		{of(doing(machine.KindNotSent, saga.Retrying), "b"), hold, "b"},
		{arms(of(doing(machine.KindDispatched, saga.Retrying), ""), "c"), keep, "c"},
		{arms(of(doing(machine.KindRefused, saga.Compensating), "c"), "b"), hold, "b"},
		{arms(of(doing(machine.KindDone, saga.Compensating), "b"), "a"), keep, "a"},
		{review, release, "a"},
		{of(doing(machine.KindNoted, saga.Review), ""), keep, "a"},
		{of(doing(machine.KindPaused, saga.Paused), ""), release, "a"},
		{of(doing(machine.KindResumed, saga.Running), "a"), hold, ""},
		{of(doing(machine.KindPaused, saga.Paused), ""), release, ""},
	} {
		if s.r.Status == saga.Review {
			s.r.Reason = saga.ReasonInDoubt
		}
		if c.add(s.r, s.s); c.now().Step != s.want {
			b.Errorf("record %d: step %q is at issue, want %q", i+2, c.now().Step, s.want)
		}
	}
}

// Without a schedule "neither status, holder nor due time change", whatever the record says.
func headKept(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	b.post(c.id, "one")
	c.add(b.consuming(c.id, doing(machine.KindCancelled, saga.Completed), 0), keep)
	b.expectHead(c, headWant{status: saga.Running, held: true, base: 1, consumed: 1})
	c.add(doing(machine.KindNoted, saga.Completed), release)
	b.expectHead(c, headWant{status: saga.Completed, base: 1, consumed: 1})
}

// A work that is started without being held is due at once, or after its wait.
func headReleasedStart(b *bench) {
	t := b.session()
	b.expectHead(b.start(t, "now", started(), release), headWant{status: saga.Running, due: true, base: 1})
	c := b.start(t, "later", due(started(), time.Hour), release)
	if h, at := c.now(), c.history()[0].At; !h.Due.Equal(at.Add(time.Hour)) {
		b.Errorf("due at %v, want an hour after %v", h.Due, at)
	}
}

// Finished is of terminal works only. Whether a chain may go on after its end is the machine's
// business; a head that goes on is not finished.
func headReopened(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	c.add(doing(machine.KindDone, saga.Completed), release)
	b.expectHead(c, headWant{status: saga.Completed, base: 1})
	c.add(doing(machine.KindCancelled, saga.Compensating), hold)
	b.expectHead(c, headWant{status: saga.Compensating, held: true, base: 1, step: "invoice"})
	c.add(doing(machine.KindDone, saga.Compensated), release)
	b.expectHead(c, headWant{status: saga.Compensated, base: 1})
}

// A record that revises sets revision and version, with or without a schedule; any other that names
// a revision leaves them. A work that has ended keeps the time of its end while signals are noted
// behind it.
func headRevised(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	revised := doing(machine.KindRevised, saga.Running)
	revised.Revision, revised.Version, revised.Body = "7", 2, []byte(`{"input":1}`)
	c.add(revised, keep)
	if h := c.now(); h.Revision != "7" || h.Version != 2 || h.Session != t {
		b.Errorf("revised without a schedule: %+v", h)
	}
	heard := doing(machine.KindHeard, saga.Running)
	heard.Revision, heard.Version = "8", 3
	c.add(heard, hold)
	if h := c.now(); h.Revision != "7" || h.Version != 2 {
		b.Errorf("a revision that was only heard is at the head: %+v", h)
	}
	end := c.add(doing(machine.KindDone, saga.Completed), release)
	b.post(c.id, "k")
	c.add(b.consuming(c.id, doing(machine.KindNoted, saga.Completed), 0), release)
	if h := c.now(); !h.Finished.Equal(end.At) || h.Session != 0 || !h.Due.IsZero() {
		b.Errorf("a signal was noted behind the end at %v: %+v", end.At, h)
	}
	revised.Revision, revised.Version = "9", 2
	c.add(revised, hold)
	if h := c.now(); h.Revision != "9" || h.Version != 2 || !h.Finished.IsZero() || h.Session != t || h.Status != saga.Running {
		b.Errorf("opened again: %+v", h)
	}
}

// "Class is where the work stands in the order of claims from now on": a schedule sets it, held or
// released, and nothing else does.
func headClass(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), &ledger.Schedule{Hold: true, Class: ledger.ClassUnbegun})
	want := func(what string, class ledger.Class) {
		b.Helper()
		if got := c.now().Class; got != class {
			b.Errorf("%s: class %d, want %d", what, got, class)
		}
	}
	want("started", ledger.ClassUnbegun)
	c.add(arming(doing(machine.KindDispatched, saga.Running), 1), keep)
	want("without a schedule", ledger.ClassUnbegun)
	r := doing(machine.KindDispatched, saga.Running)
	r.Snapshot = []byte(`{}`)
	c.add(r, keep)
	want("with a snapshot and without a schedule", ledger.ClassUnbegun)
	c.add(doing(machine.KindDone, saga.Running), release)
	want("released", ledger.ClassBegun)
	b.claim(t, 1)
	want("claimed", ledger.ClassBegun)
	c.add(doing(machine.KindRefused, saga.Compensating), &ledger.Schedule{Hold: true, Class: ledger.ClassCompensating})
	want("held", ledger.ClassCompensating)
	if err := b.GiveBack(b.Context(), t, []ledger.Return{{Number: c.head}}); err != nil {
		b.Fatal(err)
	}
	want("given back", ledger.ClassCompensating)
	first := b.fresh(t, "no schedule")
	first.add(started(), keep)
	if h := first.now(); h.Class != ledger.ClassCompensating || h.Due.IsZero() {
		b.Errorf("a start without a schedule: %+v, want the first class, due", h)
	}
}
