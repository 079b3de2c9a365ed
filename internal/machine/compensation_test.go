package machine

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

const fourSteps = "a idempotent undo\nb find undo\nc keyed=24h undo\nd find undo"

// undone lists the undos in the order in which they were armed.
func (d *desk) undone() (steps []string) {
	for i := range d.chain {
		if a := d.chain[i].Dispatch; a != nil && a.Direction == saga.Undo && !slices.Contains(steps, a.Step) {
			steps = append(steps, a.Step)
		}
	}
	return steps
}

// "C1: undos run in strictly the reverse order of arming, one at a time".
func TestC1ReverseOrder(t *testing.T) {
	d := begin(t, fourSteps).succeed("1").succeed("2").succeed("3").fail(saga.Refused)
	for _, step := range []string{"c", "b", "a"} {
		d.wants("act "+step+" undo", saga.Compensating)
		d.tick().wants("wait", saga.Compensating) // one at a time
		if d.last.Record != nil {
			t.Fatalf("a record while an undo is open: %+v", d.last.Record)
		}
		d.succeed("")
	}
	d.wants("rest", saga.Compensated)
	if got := d.undone(); !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Errorf("undone in the order %v", got)
	}
}

// "C1": an undo that waits makes the earlier ones wait.
func TestC1NobodyOvertakes(t *testing.T) {
	d := begin(t, fourSteps).succeed("1").succeed("2").cancelAfter(saga.Unknown)
	d.wants("wait", saga.Compensating).due().wants("act c undo", saga.Compensating)
	d.fail(saga.Unsent).wants("wait", saga.Compensating).due().wants("act c undo", saga.Compensating)
}

// cancelAfter ends the open attempt with an error and cancels.
func (d *desk) cancelAfter(c saga.Class) *desk { d.t.Helper(); return d.fail(c).cancel() }

// "C2: owed an undo is a step that is done, in doubt, refused after a maybe, or found half-made."
// And "C3: skipped is a step that was never armed, was refused with no maybe, was provably not sent
// every time, was not there when a settled lookup asked, of which a person said so, or that needs
// no undo." These are all the reasons there are.
func TestC2OwedAndC3Skipped(t *testing.T) {
	for _, c := range []struct {
		what string
		b    string // the step in question; a before it is done and always undone
		do   func(*desk) *desk
		owed bool
	}{
		{"done", "find undo", func(d *desk) *desk { return d.succeed("2").fail(saga.Refused) }, true},
		{"done, adopted", "find undo", func(d *desk) *desk { return d.fail(saga.Unknown).due().found(KindFound, "2").fail(saga.Refused) }, true},
		{"in doubt", "idempotent undo", func(d *desk) *desk { return d.cancelAfter(saga.Unknown).due() }, true},
		{"in doubt, found", "find undo", func(d *desk) *desk { return d.cancelAfter(saga.Unknown).due().found(KindFound, "2") }, true},
		{"in doubt after a crash", "idempotent undo", func(d *desk) *desk { d.busy = true; d.crash().cancel().due(); d.busy = false; return d.tick() }, true},
		{"refused after a maybe", "idempotent undo", func(d *desk) *desk { return d.fail(saga.Unknown).due().fail(saga.Refused).due() }, true},
		{"not sent after a maybe", "idempotent undo", func(d *desk) *desk { return d.fail(saga.Unknown).due().cancelAfter(saga.Unsent).due() }, true},
		{"found half-made", "find undo", func(d *desk) *desk { return d.cancelAfter(saga.Unknown).due().found(KindUnfinished, "2") }, true},
		{"half-made and refused", "find undo", func(d *desk) *desk { return d.fail(saga.Unknown).due().found(KindUnfinished, "2").fail(saga.Refused) }, true},
		{"at fault after a maybe", "idempotent undo", func(d *desk) *desk { return d.fail(saga.Unknown).due().cancelAfter(saga.Fault).due() }, true},
		{"in review, may have happened", "keyed=5m undo", func(d *desk) *desk { return d.fail(saga.Unknown).wait(5 * time.Minute).cancel() }, true},
		{"a person said it happened", "keyed=5m undo", func(d *desk) *desk {
			return d.fail(saga.Unknown).wait(5 * time.Minute).resolution("2").fail(saga.Refused)
		}, true},

		{"never armed", "find undo", func(d *desk) *desk { d.busy = true; d.start(); return d }, false},
		{"refused", "find undo", func(d *desk) *desk { return d.fail(saga.Refused) }, false},
		{"not sent", "find undo", func(d *desk) *desk { return d.cancelAfter(saga.Unsent) }, false},
		{"not sent, twice", "find undo", func(d *desk) *desk { return d.fail(saga.Unsent).due().cancelAfter(saga.Unsent) }, false},
		{"not found", "find undo", func(d *desk) *desk { return d.cancelAfter(saga.Unknown).due().found(KindNotFound) }, false},
		{"not found, then refused", "find undo", func(d *desk) *desk { return d.fail(saga.Unknown).due().found(KindNotFound).fail(saga.Refused) }, false},
		{"at fault", "find undo", func(d *desk) *desk { return d.cancelAfter(saga.Fault) }, false},
		{"needs no undo", "find no-undo", func(d *desk) *desk { return d.succeed("2").fail(saga.Refused) }, false},
		{"in doubt, needs no undo", "idempotent no-undo", func(d *desk) *desk { return d.cancelAfter(saga.Unknown) }, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := begin(t, "a idempotent undo\nb "+c.b+"\nc find undo")
			if c.what == "never armed" {
				d.busy = true
				d.succeed("1").cancel()
				d.busy = false
				d.tick()
			} else {
				c.do(d.succeed("1"))
			}
			if c.owed {
				d.wants("act b undo", saga.Compensating).succeed("")
			}
			d.wants("act a undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
		})
	}
}

// "C4: nothing is undone before every unanswered attempt of it has settled, even when it is done: a
// late arrival would outlive its undo".
func TestC4SettleBeforeUndo(t *testing.T) {
	const b = "a idempotent undo\nb idempotent undo timeout=10s settle=1m\nc find undo"
	t.Run("in doubt", func(t *testing.T) {
		d := begin(t, b).succeed("1").cancelAfter(saga.Unknown).wants("wait until 12:01:10", saga.Compensating)
		d.lag = time.Second
		d.wait(70*time.Second).wants("wait until 12:01:10", saga.Compensating)
		d.wait(time.Second).wants("act b undo", saga.Compensating)
	})
	t.Run("done by a later attempt", func(t *testing.T) {
		d := begin(t, b).succeed("1").fail(saga.Unknown).due().succeed("2").fail(saga.Refused)
		d.wants("wait until 12:01:10", saga.Compensating).due().wants("act b undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "2" {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
	})
	t.Run("done, and every attempt answered", func(t *testing.T) {
		begin(t, b).succeed("1").fail(saga.Unsent).due().succeed("2").fail(saga.Refused).wants("act b undo", saga.Compensating)
	})
	t.Run("done by a late answer of one of two attempts", func(t *testing.T) {
		d := begin(t, b).succeed("1").fail(saga.Unknown).due().fail(saga.Unknown)
		until := d.st.Step("b").Forward.Deadline.Add(time.Minute)
		d.late("b", "2").fail(saga.Refused)
		if d.last.Do.Do != Wait || d.last.Do.Until.Before(until) {
			t.Fatalf("%s: the other attempt settles at %s", d.last.Do, until)
		}
		d.due().wants("act b undo", saga.Compensating)
	})
	t.Run("done by a resolution", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb idempotent undo timeout=10s settle=1m attempts=2\nc find undo").
			succeed("1").fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonExhausted)
		d.resolution("2").fail(saga.Refused).wants("wait", saga.Compensating).due().wants("act b undo", saga.Compensating)
	})
	t.Run("a person said that it did not happen", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb idempotent undo timeout=10s settle=1m attempts=1\nc find undo").
			succeed("1").fail(saga.Unknown).review(saga.ReasonExhausted)
		d.resolution("").wants("wait until 12:01:10", saga.Retrying).cancel().wants("wait until 12:01:10", saga.Compensating)
		d.due().wants("act b undo", saga.Compensating) // it may have arrived after the person looked
	})
	t.Run("a person said so, and the destination can be asked", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb idempotent lookup undo timeout=10s settle=1m attempts=1\nc find undo").
			succeed("1").fail(saga.Unknown).resolution("").cancel()
		d.wants("wait until 12:01:10", saga.Compensating).due().wants("look b forward", saga.Compensating)
		d.found(KindNotFound).wants("act a undo", saga.Compensating)
	})
}

// "C6: the undo gets the result, or what a lookup found half-made. It gets nil when nothing is
// known only where the step says UndoMaybe".
func TestC6UndoGets(t *testing.T) {
	d := begin(t, "a idempotent undo-maybe").cancelAfter(saga.Unknown).due().wants("act a undo", saga.Compensating)
	if in := d.st.Invocation(d.last.Do); in.Undoing != nil {
		t.Errorf("nothing is known, and the undo gets %+v", in.Undoing)
	}
	d = begin(t, "a find undo").cancelAfter(saga.Unknown).due().found(KindUnfinished, "half").wants("act a undo", saga.Compensating)
	if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "half" {
		t.Errorf("half-made, and the undo gets %+v", in.Undoing)
	}
	d = begin(t, "a find undo\nb find undo").succeed("1").fail(saga.Refused).wants("act a undo", saga.Compensating)
	in := d.st.Invocation(d.last.Do)
	if in.Undoing == nil || in.Undoing.ExternalID != "1" || string(in.Undoing.Output) != `{"id":"1"}` {
		t.Errorf("done, and the undo gets %+v", in.Undoing)
	}
	if in.Direction != saga.Undo || in.Attempt != 1 || in.Key == d.st.Step("a").Forward.Key || string(in.Input) != `"3 lines"` {
		t.Errorf("the undo's invocation: %+v", in)
	}
}

// "C7: an undo is a step of its own: its own key, attempts, retry policy and crashes. In doubt it
// is repeated under the same key".
func TestC7UndoIsAStep(t *testing.T) {
	for _, repeat := range []string{"idempotent", "find", "keyed=1h", "at-most-once lookup"} {
		d := begin(t, "a "+repeat+" undo attempts=3\nb at-most-once no-undo").fail(saga.Unsent).due().succeed("1").fail(saga.Refused)
		key := d.key()
		if want := StepKey(RootKey(order.Saga, order.Work, ""), "a", saga.Undo, 0); key != want || d.armed().Attempt != 1 {
			t.Fatalf("%s: armed %+v", repeat, d.armed())
		}
		d.fail(saga.Unknown).wants("wait", saga.Compensating).due().wants("act a undo", saga.Compensating)
		if d.key() != key || d.armed().Attempt != 2 {
			t.Errorf("%s: armed %+v", repeat, d.armed())
		}
		d.crash().wants("act a undo", saga.Compensating)
		if d.key() != key || d.armed().Attempt != 3 {
			t.Errorf("%s: armed %+v", repeat, d.armed())
		}
		d.succeed("").wants("rest", saga.Compensated)
	}
}

// "C8: an undo that is refused or given up: review, undo-failed. Never silently compensated".
func TestC8UndoFailed(t *testing.T) {
	const ab = "a idempotent undo\nb find undo attempts=2\nc find undo"
	failing := func() *desk { return begin(t, ab).succeed("1").succeed("2").fail(saga.Refused) }
	t.Run("refused", func(t *testing.T) {
		d := failing().fail(saga.Refused).review(saga.ReasonUndoFailed)
		if d.st.Note != "it failed: refused" {
			t.Errorf("the review says %q", d.st.Note)
		}
		d.wait(time.Hour).review(saga.ReasonUndoFailed)
		d.resolution("done by hand").wants("act a undo", saga.Compensating) // S5
	})
	t.Run("given up", func(t *testing.T) {
		d := failing().fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonUndoFailed)
		key := d.st.Step("b").Undo.Key
		// S6: it did not happen: again, under a new key, when the old attempts have settled
		d.resolution("").wants("wait", saga.Compensating).due().wants("act b undo", saga.Compensating)
		if d.key() == key || d.armed().Reissue != 1 {
			t.Errorf("armed %+v", d.armed())
		}
	})
	t.Run("poison", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb find undo").succeed("1").fail(saga.Refused)
		for range defaultMaxCrashes - 1 {
			d.crash()
			if d.last.Do.Do == Wait {
				d.due()
			}
		}
		d.crash().review(saga.ReasonPoison)
	})
	t.Run("at fault", func(t *testing.T) {
		failing().fail(saga.Fault).review(saga.ReasonPoison)
	})
}

// "C9: when nothing is left to undo the work is compensated. That there was nothing is success".
func TestC9NothingToUndo(t *testing.T) {
	d := newDesk(t, fourSteps)
	d.busy = true
	d.start().cancel().wants("rest", saga.Compensated)
	begin(t, "a find undo").cancelAfter(saga.Unknown).due().found(KindNotFound).wants("rest", saga.Compensated)
	begin(t, "a find undo\nb find undo").succeed("1").fail(saga.Refused).succeed("").wants("rest", saga.Compensated)
}

// "C10: nothing is armed forward once compensation began".
func TestC10NothingForward(t *testing.T) {
	d := begin(t, fourSteps).succeed("1").cancelAfter(saga.Unknown)
	d.late("b", "2").wants("wait", saga.Compensating).due().wants("act b undo", saga.Compensating)
	d.succeed("").wants("act a undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	for i := range d.chain {
		if a := d.chain[i].Dispatch; a != nil && a.Direction == saga.Forward && d.chain[i].Seq > 3 {
			t.Errorf("record %d arms %s forward", d.chain[i].Seq, a.Step)
		}
	}
	// and a fold refuses a chain that does
	st := d.forged(Record{Kind: KindDispatched, Status: saga.Compensating, Dispatch: &Dispatch{Step: "c", Direction: saga.Forward, Attempt: 1}}, 4)
	if st == nil {
		t.Error("a chain that goes forward while compensating folds")
	}
}

// forged folds the first n records of the chain and then r, and returns the fold's error.
func (d *desk) forged(r Record, n int) error {
	d.t.Helper()
	st, err := Fold(order, d.chain[:n])
	if err != nil {
		d.t.Fatal(err)
	}
	r.Seq = st.Seq + 1
	return st.Apply(&r)
}

// "C11: there is no automatic way back behind the pivot".
func TestC11NoWayBack(t *testing.T) {
	behind := func() *desk {
		return begin(t, "a idempotent undo\np idempotent undo pivot\nr find").succeed("1").succeed("2")
	}
	behind().fail(saga.Refused).review(saga.ReasonAfterPivot)
	behind().fail(saga.Unknown).cancel().wants("wait", saga.Retrying)
	d := begin(t, "a idempotent undo\np idempotent undo pivot\nr idempotent attempts=1").succeed("1").succeed("2").fail(saga.Unknown).review(saga.ReasonExhausted)
	d.cancel().review(saga.ReasonExhausted)
	for _, d := range []*desk{d} {
		if u := d.undone(); len(u) > 0 {
			t.Errorf("undone behind the pivot: %v", u)
		}
	}
}

// "C12: a work that has ended changes only by a newer version of its source object"; signals are
// noted behind its end.
func TestC12TheEnd(t *testing.T) {
	ends := map[saga.Status]*desk{
		saga.Completed:   begin(t, "a idempotent undo").succeed("1"),
		saga.Compensated: begin(t, "a idempotent undo").fail(saga.Refused),
	}
	for status, d := range ends {
		if d.st.Status != status {
			t.Fatalf("the work is %s, want %s", d.st.Status, status)
		}
		n := len(d.chain)
		d.wait(time.Hour).wants("rest", status)
		for _, ev := range []Event{
			{Start: &Start{Input: json.RawMessage(`1`)}},
			{Outcome: &program.Outcome{Class: program.Succeeded}},
			{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound}},
		} {
			if err := d.try(ev); err == nil {
				t.Errorf("%s, and %+v is decided", status, ev)
			}
		}
		if len(d.chain) != n {
			t.Errorf("%s, and %d records more", status, len(d.chain)-n)
		}
		for _, kind := range []Kind{KindNoted, KindDispatched, KindResumed, KindCancelled, KindDone} {
			if d.forged(Record{Kind: kind, Status: saga.Running}, n) == nil {
				t.Errorf("a chain that goes on with %s behind its end folds", kind)
			}
		}
	}
}

// "C13: the record that turns arms no undo; the next record does. A fail-over that forgets the turn
// goes forward again, and an undo on its way would undo what stands".
func TestC13TurningArmsNothing(t *testing.T) {
	refusal := Event{Outcome: &program.Outcome{Class: saga.Refused, Error: "refused"}}
	unsent := Event{Outcome: &program.Outcome{Class: saga.Unsent, Error: "connection refused"}}
	cancel := Event{Signal: &Signal{ID: 1, Kind: SignalCancel, Actor: "anna"}}
	const ab = "a idempotent undo\nb idempotent undo within=1h compensate\nc find undo"
	for _, c := range []struct {
		what string
		d    *desk
		ev   Event
		kind Kind
	}{
		{"a refusal", begin(t, ab).succeed("1"), refusal, KindRefused},
		{"a refusal of the pivot", begin(t, "a idempotent undo\np idempotent pivot").succeed("1"), refusal, KindRefused},
		{"a policy that is used up", begin(t, ab).succeed("1").fail(saga.Unsent).wait(longest), unsent, KindNotSent},
		{"a cancel during a backoff", begin(t, ab).succeed("1").fail(saga.Unsent), cancel, KindCancelled},
		{"a cancel before a step is armed", begin(t, ab).without("1"), cancel, KindCancelled},
		{"a cancel in review", begin(t, ab).succeed("1").fail(saga.Fault).review(saga.ReasonPoison), cancel, KindCancelled},
	} {
		t.Run(c.what, func(t *testing.T) {
			d, before := c.d, len(c.d.chain)
			if err := d.once(c.ev); err != nil { // with a slot in hand
				t.Fatal(err)
			}
			d.wants("slot a undo", saga.Compensating)
			if r := d.tail(); len(d.chain) != before+1 || r.Kind != c.kind || r.Dispatch != nil || !d.st.Compensating {
				t.Fatalf("%d records, turned %v, the last %+v", len(d.chain)-before, d.st.Compensating, r)
			}
			if err := d.once(Event{}); err != nil {
				t.Fatal(err)
			}
			d.wants("act a undo", saga.Compensating)
			if r := d.tail(); len(d.chain) != before+2 || r.Kind != KindDispatched || r.Dispatch == nil || r.Dispatch.Direction != saga.Undo {
				t.Fatalf("%d records, the last %+v", len(d.chain)-before, r)
			}
		})
	}
	t.Run("the undo after it needs no record of its own", func(t *testing.T) {
		d := begin(t, ab).succeed("1").succeed("2").fail(saga.Refused).wants("act b undo", saga.Compensating)
		n := len(d.chain)
		if d.succeed("").wants("act a undo", saga.Compensating); len(d.chain) != n+1 || d.tail().Kind != KindDone {
			t.Errorf("%d records, the last %+v", len(d.chain)-n, d.tail())
		}
	})
}

// later lets time go by without anybody looking.
func (d *desk) later(dur time.Duration) *desk { d.now = d.now.Add(dur); return d }

// without lets the open attempt succeed while no slot is to be had for the next step.
func (d *desk) without(id string) *desk {
	d.t.Helper()
	d.busy = true
	d.succeed(id)
	d.busy = false
	return d
}
