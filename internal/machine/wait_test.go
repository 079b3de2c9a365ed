package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

const (
	day     = 24 * time.Hour
	delayed = "authorize keyed=720h undo\ncooling-off delay=336h\ncapture keyed=720h pivot\nmail idempotent"
	dated   = "deadline 24h compensate\n"
)

// asked is what the machine asks of the definition, answered.
func (d *desk) asked(a Asked) *desk { d.t.Helper(); return d.feed(Event{Asked: &a}) }

func (d *desk) endWait() *desk {
	d.t.Helper()
	return d.signal(Signal{Kind: SignalEndWait, Actor: "anna", Reason: "she called", Resolution: saga.Resolution{Step: d.waiting()}})
}

// waiting names the step that waits, as an operator does.
func (d *desk) waiting() string {
	if ss := d.st.front(nil); ss != nil && ss.Forward.Phase == Waiting {
		return ss.Name
	}
	return ""
}

// asleep is a work that waits for two weeks.
func asleep(t *testing.T) *desk {
	t.Helper()
	return begin(t, delayed).succeed("aut_1").tick().wants("wait", saga.Waiting)
}

// "W1: a wait begins by a record of its own that says until when, by the ledger's clock".
func TestW1WaitsAreOnRecord(t *testing.T) {
	t.Parallel()
	d := asleep(t)
	if r := d.tail(); r.Kind != KindWaiting || r.Step != "cooling-off" || r.Dispatch != nil || r.Until.Before(d.now.Add(14*day)) || r.Due().Before(r.Until) {
		t.Errorf("the wait is on record as %+v", *r)
	}
	for range 3 { // whoever looks records nothing
		d.wait(day).wants("wait", saga.Waiting)
	}
	if n := len(d.chain); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

// "W2: a wait is over when the earliest that the ledger's clock may be has come to its end, or when a person
// ends it; never before".
func TestW2NeverEarly(t *testing.T) {
	t.Parallel()
	d := asleep(t)
	until := d.tail().Until
	early := Event{Now: Moment{Earliest: until.Add(-time.Millisecond), Latest: until.Add(time.Hour)}, Slot: true}
	if got, err := Decide(d.spec, d.st, early); err != nil || got.Record != nil || got.Do.Do != Wait {
		t.Errorf("a millisecond before: %+v (%v)", got, err)
	}
	d.due().wants("act capture forward", saga.Running)
	if k := d.tail().Kind; k != KindOver {
		t.Errorf("it went on by %s", k)
	}
	woken := asleep(t).endWait().wants("act capture forward", saga.Running)
	if r := woken.tail(); r.Kind != KindOver || r.Actor != "anna" || r.Why != "she called" {
		t.Errorf("ended by %+v", *r)
	}
	asleep(t).signal(Signal{Kind: SignalWake}).noted("looked at again").wants("wait", saga.Waiting)
	begin(t, delayed).fail(saga.Unsent).endWait().noted("waits for no time")
}

// "W3: a newer version begins while the work waits, and restarts neither a wait that was begun, nor one that
// is over, nor the deadline. One that opens an ended work again has a deadline of its own".
func TestW3RevisionsRestartNothing(t *testing.T) {
	t.Parallel()
	d := beginAt(t, dated+strings.Replace(delayed, "336h", "12h", 1))
	d.succeed("aut_1").tick()
	until, deadline := d.tail().Until, d.st.Deadline
	d.wait(time.Hour).revise("2").wants("act authorize forward", saga.Running).succeed("aut_2").wants("wait", saga.Waiting)
	if due := d.st.Due; due.Before(until) || due.After(until.Add(time.Second)) {
		t.Errorf("due at %s, and the wait ends at %s", due, until)
	}
	d.due().wants("act capture forward", saga.Running).succeed("cap_1").succeed("sent").wants("rest", saga.Completed)
	if !d.st.Deadline.Equal(deadline) {
		t.Errorf("the deadline moved from %s to %s", deadline, d.st.Deadline)
	}
	d.wait(60*day).revise("3").wants("act authorize forward", saga.Running)
	if left := d.st.Deadline.Sub(d.now); left < day-time.Second || left > day+time.Second {
		t.Errorf("opened again it has %s", left)
	}
	d.succeed("aut_3").wants("act capture forward", saga.Running)
	t.Run("opened by a newer version it has that one's deadline", func(t *testing.T) {
		next, err := define(order.Saga, 2, "authorize idempotent undo\ndeadline 24h compensate")
		if err != nil {
			t.Fatal(err)
		}
		d := beginAt(t, "authorize idempotent undo\ndeadline 720h compensate").succeed("aut_1").wants("rest", saga.Completed)
		d.next = next
		d.revise("2").wants("act authorize forward", saga.Running)
		if left := d.st.Deadline.Sub(d.now); left > day {
			t.Errorf("it has %s, and its version a day", left)
		}
	})
}

// "W4: what is said to a work that waits is read at once: a cancel turns it".
func TestW4ACancelTurnsIt(t *testing.T) {
	t.Parallel()
	asleep(t).cancel().wants("act authorize undo", saga.Compensating)
	asleep(t).gone("9").wants("act authorize undo", saga.Compensating)
}

// "W5: a work that waits, for whatever, is due at its deadline at the latest, and so is one that waits for a
// slot. A deadline that compensates does so while a destination is away".
func TestW5DeadlinesHold(t *testing.T) {
	t.Parallel()
	d := begin(t, dated+delayed).succeed("aut_1").tick()
	if due := d.st.Due; !due.Equal(d.st.Deadline) {
		t.Errorf("due at %s, and the deadline is %s", due, d.st.Deadline)
	}
	d.due().wants("act authorize undo", saga.Compensating)
	if k := d.turning().Kind; k != KindOverdue {
		t.Errorf("turned by %s", k)
	}

	d = begin(t, dated+delayed)
	d.busy = true
	if slot := d.fail(saga.Unsent).due().last.Do; slot.Do != Slot || !slot.Until.Equal(d.st.Deadline) {
		t.Errorf("it waits for a slot: %+v", slot)
	}
	d.wait(day).wants("rest", saga.Compensated)

	late := begin(t, "deadline 1s compensate\na idempotent undo").wait(2 * time.Second) // in flight at its deadline, and then done
	late.succeed("1").wants("rest", saga.Completed)
}

// "W6: a deadline that passes while a person has the work, in review or paused, by itself or with its saga, is
// missed. Nothing follows from it, then or later".
func TestW6NothingBehindAPersonsBack(t *testing.T) {
	t.Parallel()
	held := begin(t, dated+delayed).succeed("aut_1").tick().pause().wait(2*day).wants("rest", saga.Paused)
	held.goOn().wants("wait", saga.Waiting)
	if !held.st.DeadlinePassed {
		t.Error("it is not on record that it was missed")
	}
	held.wait(20*day).wants("act capture forward", saga.Running)

	whole := begin(t, dated+delayed).succeed("aut_1").tick()
	whole.now = whole.now.Add(2 * day)
	whole.feed(Event{HeldUntil: whole.st.Deadline}).wants("wait", saga.Waiting)
	if whole.tail().Status != saga.Waiting {
		t.Errorf("it is on record as %s", whole.tail().Status)
	}
	if !whole.st.DeadlinePassed {
		t.Error("what is held with its saga is not on record as missed")
	}
	before := begin(t, dated+delayed).succeed("aut_1").tick()
	before.now = before.now.Add(2 * day)
	before.feed(Event{HeldUntil: before.st.Deadline.Add(-time.Second)}).wants("act authorize undo", saga.Compensating)
	whole.wait(20*day).wants("act capture forward", saga.Running)

	resumed := begin(t, dated+delayed).succeed("aut_1").tick().pause().wait(time.Hour).goOn()
	if due := resumed.st.Due; !due.Equal(resumed.st.Deadline) {
		t.Errorf("resumed in time it is due at %s, and its deadline is %s", due, resumed.st.Deadline)
	}
	resumed.due().wants("act authorize undo", saga.Compensating)
}

// "W7: a deadline that asks, or that passes where the pivot may have happened, brings the work to review,
// deadline. A resume lets it go on without one".
func TestW7APersonIsAsked(t *testing.T) {
	t.Parallel()
	d := begin(t, dated+"a idempotent undo pivot\nb idempotent").succeed("1").fail(saga.Unknown).wait(2 * day)
	d.review(saga.ReasonDeadline).goOn().wants("act b forward", saga.Running).wait(2*day).succeed("2").wants("rest", saga.Completed)
	asks := "deadline 24h review\n" + delayed
	begin(t, asks).succeed("aut_1").tick().wait(2*day).review(saga.ReasonDeadline).cancel().wants("act authorize undo", saga.Compensating)
	begin(t, asks).succeed("aut_1").tick().wait(2*day).goOn().wants("wait", saga.Waiting)
}

// "W8: a person's word that a wait is over does nothing to a work that a person holds".
func TestW8NoWakeOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	asleep(t).pause().endWait().noted("paused").wants("rest", saga.Paused)
}

// "W9: the definition is asked once until when, and what it said is on record. Where it fails the work goes to
// review, poison; a retry asks it again".
func TestW9AskedOnce(t *testing.T) {
	t.Parallel()
	const until = "authorize keyed=720h undo\nship-day until\ncapture keyed=720h pivot"
	d := begin(t, until).succeed("aut_1").wants("ask ship-day forward", saga.Running)
	d.asked(Asked{Step: "ship-day", Until: d.now.Add(day)}).wants("wait", saga.Waiting)
	if err := d.try(Event{Asked: &Asked{Step: "ship-day", Until: d.now}}); err == nil {
		t.Error("a second word is taken")
	}
	d.revise("2").succeed("aut_2").wants("wait", saga.Waiting).due().wants("act capture forward", saga.Running)

	begin(t, until).succeed("aut_1").asked(Asked{Step: "ship-day"}).wants("act capture forward", saga.Running)
	begin(t, until).succeed("aut_1").asked(Asked{Step: "ship-day", Error: "panic"}).review(saga.ReasonPoison).
		retry().wants("ask ship-day forward", saga.Running)
}

// "W10: a start for later sends nothing before its time; its deadline counts from then".
func TestW10StartsForLater(t *testing.T) {
	t.Parallel()
	later := func(t *testing.T) *desk {
		d := newDesk(t, dated+"a idempotent undo")
		return d.feed(Event{Start: &Start{Input: inputOf(""), NotBefore: d.now.Add(7 * day)}}).wants("wait", saga.Waiting)
	}
	d := later(t).revise("2").wants("wait", saga.Waiting).due().wants("act a forward", saga.Running)
	if at := d.now; at.Before(noon.Add(7*day)) || !d.st.Deadline.After(at) {
		t.Errorf("it began at %s, with the deadline %s", at, d.st.Deadline)
	}
	later(t).endWait().wants("act a forward", saga.Running)
	later(t).cancel().wants("rest", saga.Compensated)
	gone := later(t) // what a fail-over puts in doubt has not begun
	gone.now = gone.now.Add(time.Second)
	if err := gone.once(Event{Changed: gone.now, Unread: true}); err != nil {
		t.Fatal(err)
	}
	gone.tick().wants("wait", saga.Waiting).due().wants("act a forward", saga.Running)
	if gone.now.Before(noon.Add(7 * day)) {
		t.Errorf("behind a fail-over it began at %s", gone.now)
	}
}

// A name that is a wait's in one version of the definition and an action's in another is neither taken for done
// nor forgotten: a person is asked, going forward and back.
func TestANameIsOneThing(t *testing.T) {
	t.Parallel()
	acts, waits := "a idempotent undo\nx idempotent undo\nb idempotent", "a idempotent undo\nx delay=1s\nb idempotent"
	turns := func(was, is string) *desk {
		next, err := define(order.Saga, 2, is)
		if err != nil {
			t.Fatal(err)
		}
		d := beginAt(t, was).succeed("a1").tick()
		if was == acts {
			d.succeed("x1")
		} else {
			d.due()
		}
		d.succeed("b1").wants("rest", saga.Completed)
		d.next = next
		return d.feed(d.news("2", 2, false)).succeed("a2")
	}
	for _, d := range []*desk{turns(acts, waits), turns(waits, acts)} {
		if d.review(saga.ReasonPoison); !strings.Contains(d.tail().Note, "a name of its own") {
			t.Errorf("the review says %q", d.tail().Note)
		}
	}
	turns(acts, waits).cancel().review(saga.ReasonAfterPivot)
}

// What a wait leaves has no effect anywhere: a later version that does not have it goes back and forward as if
// it had never been.
func TestWaitsLeaveNothing(t *testing.T) {
	t.Parallel()
	next, err := define(order.Saga, 2, strings.Replace(delayed, "cooling-off delay=336h\n", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	d := beginAt(t, delayed).succeed("aut_1").tick()
	d.next = next
	d.feed(d.news("2", 2, false)).succeed("aut_2").wants("act capture forward", saga.Running).succeed("cap_2").succeed("sent").wants("rest", saga.Completed)
	d.gone("3").wants("act authorize undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
}
