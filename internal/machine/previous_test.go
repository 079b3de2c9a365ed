package machine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// "V7: each step is told what an earlier revision left at its destination until it is done anew or
// undone".
func TestV7Previous(t *testing.T) {
	d := beginAt(t, orderToInvoice).through().revise("2")
	for _, step := range []string{"customer", "invoice", "mark-synced"} {
		d.wants("act "+step+" forward", saga.Running)
		in := d.st.Invocation(d.last.Do)
		if in.Previous == nil || in.Previous.ExternalID != step+"-1" || string(in.Previous.Output) != string(output(step+"-1")) {
			t.Errorf("%s is told %+v", step, in.Previous)
		}
		if _, done := in.Results[step]; done || in.Revision != "2" {
			t.Errorf("%s runs for revision %s, with results %+v", step, in.Revision, in.Results)
		}
		d.fail(saga.Unsent).due() // every attempt is told the same
		if d.told() != step+"-1" {
			t.Errorf("%s is told %q the second time", step, d.told())
		}
		d.succeed(step + "-2")
		if ss := d.st.Step(step); ss.Previous != nil || ss.ExternalID != step+"-2" {
			t.Errorf("%s is %+v", step, ss)
		}
	}
	t.Run("over a revision that did not come so far", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).through().revise("2").succeed("c2").fail(saga.Unsent).revise("3").succeed("c3")
		if d.wants("act invoice forward", saga.Running); d.told() != "invoice-1" {
			t.Errorf("the invoice is told %q", d.told())
		}
	})
	t.Run("an update need not say again what it updated", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).through().revise("2").succeed("c2").succeed("")
		if got := d.st.Step("invoice").ExternalID; got != "invoice-1" {
			t.Errorf("the invoice is %q", got)
		}
	})
	t.Run("not after an undo", func(t *testing.T) {
		d := beginAt(t, "a find undo\nb find undo").succeed("a1").fail(saga.Refused).succeed("").resolutionIs(saga.Compensated)
		if d.revise("2").wants("act a forward", saga.Running); d.told() != "" {
			t.Errorf("what was undone is told: %q", d.told())
		}
	})
	t.Run("also after the way back, of what needs no undo", func(t *testing.T) {
		d := beginAt(t, "a find no-undo\nb find undo").succeed("a1").fail(saga.Refused).resolutionIs(saga.Compensated)
		if d.revise("2").wants("act a forward", saga.Running); d.told() != "a1" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("a lookup is told, too, and what it does not find still stands", func(t *testing.T) {
		d := beginAt(t, "a find undo\nb find undo").succeed("a1").succeed("b1").revise("2").fail(saga.Unknown).due().wants("look a forward", saga.Running)
		if d.told() != "a1" {
			t.Errorf("the lookup is told %q", d.told())
		}
		if d.found(KindNotFound).wants("act a forward", saga.Running); d.told() != "a1" {
			t.Errorf("the next attempt is told %q", d.told())
		}
	})
}

// "V8: no step is armed before every attempt of earlier revisions on it, forward or undo, has
// settled".
func TestV8SettlesFirst(t *testing.T) {
	const a = "a idempotent undo timeout=10s settle=1m\nb find undo"
	t.Run("done by a later attempt", func(t *testing.T) {
		d := beginAt(t, a).fail(saga.Unknown).due().succeed("1").fail(saga.Unsent)
		d.revise("2").runs("2", "").wants("wait until 12:01:10", saga.Retrying)
		d.lag = time.Second
		d.now = noon.Add(70 * time.Second)
		d.tick().wants("wait until 12:01:10", saga.Retrying).wait(time.Second).wants("act a forward", saga.Running)
	})
	t.Run("an undo that may still arrive", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo timeout=10s settle=1m\nb find undo").succeed("1").fail(saga.Refused).wants("act a undo", saga.Compensating)
		d.fail(saga.Unknown).due().succeed("").wants("rest", saga.Compensated)
		d.revise("2").wants("wait until 12:01:10", saga.Retrying).due().wants("act a forward", saga.Running)
	})
	t.Run("of two revisions back", func(t *testing.T) {
		d := beginAt(t, a).fail(saga.Unknown).due().succeed("1").fail(saga.Unsent).revise("2").revise("3").runs("3", "")
		d.wants("wait until 12:01:10", saga.Retrying)
	})
	t.Run("a person's word is older than the revision", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo timeout=10s settle=1m attempts=1").fail(saga.Unknown).review(saga.ReasonExhausted).revise("2").runs("1", "2")
		d.resolution("").runs("2", "").wants("wait until 12:01:10", saga.Retrying)
	})
	t.Run("all answered", func(t *testing.T) {
		beginAt(t, a).fail(saga.Unsent).due().succeed("1").fail(saga.Unsent).revise("2").wants("act a forward", saga.Running)
	})
}

// "V8: ... Attempts are counted on over revisions, and a late answer names its key, so none is
// credited to another revision".
func TestV8AttemptsCountOn(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo").fail(saga.Unknown).due().succeed("a1").fail(saga.Unsent).revise("2").due()
	if got := d.armed().Attempt; got != 3 {
		t.Fatalf("attempt %d, want 3", got)
	}
	d.fail(saga.Unknown).late("a", "a9").noted("earlier revision").wants("wait", saga.Retrying)
	if d.st.Step("a").Forward.Phase != InDoubt {
		t.Error("an answer of revision 1 closed the step of revision 2")
	}
	d.signal(Signal{Kind: SignalLate, Resolution: saga.Resolution{Step: "a", Direction: saga.Forward, Attempt: 3, Happened: true, ExternalID: "a2"}})
	if ss := d.st.Step("a"); ss.Forward.Phase != Done || ss.ExternalID != "a2" {
		t.Errorf("its own late answer does not: %+v", ss)
	}
	t.Run("undos, too", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo\nb find undo").succeed("1").fail(saga.Refused).succeed("").revise("2").succeed("2").fail(saga.Refused)
		if d.wants("act a undo", saga.Compensating); d.armed().Attempt != 2 || d.armed().Key != StepKey(RootKey(order.Saga, order.Work, "2"), "a", saga.Undo, 0) {
			t.Errorf("armed %+v", d.armed())
		}
	})
}

// "V9: a step that is AtMostOnce, or says Once, and is done stays done".
func TestV9DoneOncePerWork(t *testing.T) {
	const steps = "a idempotent once undo\nb find undo\nmail at-most-once no-undo"
	d := beginAt(t, steps).through().revise("2")
	d.wants("act b forward", saga.Running).succeed("b2").wants("rest", saga.Completed)
	if ss := d.st.Step("mail"); ss.ExternalID != "mail-1" || ss.Forward.Attempts != 1 || ss.Previous != nil {
		t.Errorf("the mail is %+v", ss)
	}
	t.Run("what is not done is done", func(t *testing.T) {
		d := beginAt(t, "b find undo\nmail at-most-once no-undo").succeed("b1").fail(saga.Unsent).revise("2").succeed("b2").wants("act mail forward", saga.Running)
		d.succeed("m2").revise("3").succeed("b3").wants("rest", saga.Completed)
	})
	t.Run("its result is there for the steps behind it", func(t *testing.T) {
		d := beginAt(t, "a idempotent once undo\nb find undo").through().revise("2").wants("act b forward", saga.Running)
		if r, ok := d.st.Invocation(d.last.Do).Results["a"]; !ok || r.ExternalID != "a-1" {
			t.Errorf("b finds %+v", r)
		}
	})
	t.Run("not when it was undone", func(t *testing.T) {
		beginAt(t, "a idempotent once undo\nb find undo").succeed("a1").fail(saga.Refused).succeed("").resolutionIs(saga.Compensated).
			revise("2").wants("act a forward", saga.Running)
	})
}

// "V10: when an earlier revision passed the pivot, what is refused or given up goes to review and
// never back".
func TestV10PivotStands(t *testing.T) {
	const steps = "a idempotent undo attempts=2\np idempotent undo attempts=2 pivot\nr find"
	for _, step := range []string{"a", "p"} {
		at := func(t *testing.T) *desk {
			t.Helper()
			d := beginAt(t, steps).through().revise("2")
			if step == "p" {
				d.succeed("a2")
			}
			return d.wants("act "+step+" forward", saga.Running)
		}
		t.Run(step+" refused", func(t *testing.T) { at(t).fail(saga.Refused).review(saga.ReasonAfterPivot) })
		t.Run(step+" refused after a maybe", func(t *testing.T) { at(t).fail(saga.Unknown).due().fail(saga.Refused).review(saga.ReasonAfterPivot) })
		t.Run(step+" given up", func(t *testing.T) { at(t).fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonExhausted) })
		t.Run(step+" cancelled by a person", func(t *testing.T) { at(t).fail(saga.Unsent).cancel().noted("too late").wants("wait", saga.Retrying) })
		t.Run(step+" and a person says it was mended", func(t *testing.T) {
			d := at(t).fail(saga.Refused).resolution("by hand")
			if d.wants(map[string]string{"a": "act p forward", "p": "act r forward"}[step], saga.Running); len(d.undone()) > 0 {
				t.Errorf("undone: %v", d.undone())
			}
		})
	}
	// an earlier revision that did not come so far does not count
	beginAt(t, steps).succeed("a1").fail(saga.Unsent).revise("2").fail(saga.Refused).wants("act a undo", saga.Compensating)
}

// "V11: the way back owes an undo to what this revision made and to what an earlier one left
// standing (C2)".
func TestV11UndoesAllRevisions(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo\nc find undo\nd find no-undo").through().revise("2").succeed("a2").fail(saga.Refused)
	for _, want := range []string{"c-1", "b-1", "a2"} {
		if d.last.Do.Do != Act || d.last.Do.Direction != saga.Undo {
			t.Fatalf("the machine says %s, want an undo of %s", d.last.Do, want)
		}
		in := d.st.Invocation(d.last.Do)
		if in.Undoing == nil || in.Undoing.ExternalID != want {
			t.Errorf("the undo of %s gets %+v, want %s", in.Step, in.Undoing, want)
		}
		d.succeed("")
	}
	d.wants("rest", saga.Compensated)
	t.Run("an update in doubt", func(t *testing.T) {
		d := beginAt(t, "a find undo").through().revise("2").cancelAfter(saga.Unknown).due().found(KindNotFound).wants("act a undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "a-1" {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
	})
	t.Run("not twice", func(t *testing.T) {
		d := beginAt(t, "a find undo\nb find undo").succeed("a1").fail(saga.Refused).succeed("").revise("2").fail(saga.Refused).wants("rest", saga.Compensated)
		if len(d.undone()) != 1 {
			t.Errorf("undone: %v", d.undone())
		}
	})
}

// "F17: except for AtMostOnce: there a lookup is evidence and never a licence to send again", nor
// is it one for a newer revision that begins after the way back: a person says whether it stands.
func TestF17HoldsOverRevisions(t *testing.T) {
	for id, next := range map[string]string{"mail_1": "slot p forward", "": "slot m forward"} {
		d := begin(t, "a idempotent undo\nm at-most-once lookup no-undo\np idempotent undo pivot").succeed("1").fail(saga.Unknown)
		d.cancel()
		d.succeed("1") // compensated, and m is left in doubt
		d.signal(Signal{Kind: SignalRevise, News: News{Revision: "2", Version: 1, Input: json.RawMessage(`"x"`)}})
		d.due()
		d.found(KindNotFound).review(saga.ReasonInDoubt)
		d.resolution(id)
		for range 5 {
			if d.last.Do.String() == next || d.st.Status.Terminal() {
				break
			}
			switch d.last.Do.Do {
			case Act:
				if d.last.Do.Step != "a" {
					next = d.last.Do.String()
				} else {
					d.succeed("1")
				}
			case Wait:
				d.due()
			default:
				d.tick()
			}
		}
		if got := d.last.Do.Step; id != "" && got != "p" || id == "" && got != "m" {
			t.Errorf("after the resolution %q comes step %q", id, got)
		}
	}
}

// An undo has a key of its own, and is told the key of what it is about: that under which it was made
// first, whatever updated it since. What is made again after it was undone has another.
func TestAnUndoIsToldTheKeyOfWhatWasMade(t *testing.T) {
	made := func(d *desk) string { d.t.Helper(); return d.st.Invocation(d.last.Do).MadeKey }
	wants := func(d *desk, want string) {
		d.t.Helper()
		if in := d.st.Invocation(d.last.Do); in.MadeKey != want || in.Key == want {
			d.t.Errorf("%s is told key %q of what was made under %q, want %q", d.last.Do, in.Key, in.MadeKey, want)
		}
	}
	d := beginAt(t, "a find undo\nb find undo")
	first := d.key()
	if made(d) != first {
		t.Errorf("the first attempt is told %q, and its key is %q", made(d), first)
	}
	d.succeed("a").succeed("b").revise("2").wants("act a forward", saga.Running)
	wants(d, first) // an update
	d.succeed("a").fail(saga.Refused).wants("act b undo", saga.Compensating).succeed("").wants("act a undo", saga.Compensating)
	wants(d, first)
	d.succeed("").wants("rest", saga.Compensated).revise("3").wants("act a forward", saga.Running)
	if made(d) != d.key() || made(d) == first {
		t.Errorf("what is made again is told %q; its key is %q, the first was %q", made(d), d.key(), first)
	}
}
