package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/saga"
)

// confirmAll lets a person look at every step that counts as done because it could not be told, now
// that the work has ended (D10).
func (w *world) confirmAll(a *Adoption, adopted *State, before map[string]int) {
	steps := w.st.Unconfirmed()
	if len(steps) == 0 || !rapid.Bool().Draw(w.t, "a person looks at what could not be told") {
		return
	}
	for _, name := range steps {
		if ss := w.st.Step(name); ss == nil || !ss.Unconfirmed { // undone meanwhile
			continue
		}
		w.confirm(name)
	}
	w.pass(time.Hour)
	if left := w.st.Unconfirmed(); len(left) > 0 && w.st.Status == saga.Completed {
		w.brokenf("D10: %v are still unconfirmed", left)
	}
	w.verifyRebuilt(a, adopted, before)
}

// confirm posts an honest person's word on one step, and runs the work to its end.
func (w *world) confirm(name string) {
	there := w.dest.things[name]
	v := saga.Resolution{Step: name, Direction: saga.Forward, Attempt: w.st.Step(name).Forward.Attempts, Happened: len(there) > 0}
	if v.Happened {
		v.ExternalID, v.Output = there[0].id, output(there[0].id)
	} else {
		w.reissue[name]++
	}
	w.say(Signal{Kind: SignalResolve, Actor: "anna", Resolution: v})
	for range 150 {
		if w.st.Status.Terminal() {
			return
		}
		w.round()
	}
	w.brokenf("D10: after a resolution on %s the work is %s %s for 150 rounds", name, w.st.Status, w.st.Reason)
}

const withMail = "customer idempotent undo\ninvoice find undo\nmail at-most-once lookup undo\nreport idempotent undo"

// "D10: a person may say of an unconfirmed step what happened, at any time, also when the work has
// ended".
func TestD10Unconfirmed(t *testing.T) {
	resolution := func(d *desk, id string) *desk {
		return d.signal(Signal{Kind: SignalResolve, Actor: "anna", Resolution: saga.Resolution{Step: "mail", Happened: id != "", ExternalID: id, Output: output(id)}})
	}
	ended := func(t *testing.T) *desk {
		t.Helper()
		return lost(t, withMail).takeOver(told(t, "17", "customer c", "invoice i", "mail unknown", "report r")).resolutionIs(saga.Completed)
	}
	t.Run("it happened", func(t *testing.T) {
		d := resolution(ended(t), "mail_1").wants("rest", saga.Completed)
		if ss := d.st.Step("mail"); ss.Unconfirmed || ss.ExternalID != "mail_1" || ss.Forward.Phase != Done || len(d.st.Unconfirmed()) > 0 {
			t.Errorf("the mail is %+v", ss)
		}
		resolution(d, "").noted("neither in review").resolutionIs(saga.Completed) // it is known now
	})
	t.Run("it did not: a completed work goes on for it, under a new key", func(t *testing.T) {
		d := resolution(ended(t), "").wants("act mail forward", saga.Running)
		if a := d.armed(); a.Reissue != 1 || a.Key != StepKey(RootKey(order.Saga, order.Work, "17"), "mail", saga.Forward, 1) {
			t.Errorf("armed %+v", a)
		}
		d.succeed("mail_1").wants("rest", saga.Completed)
		if ss := d.st.Step("mail"); ss.Unconfirmed || ss.ExternalID != "mail_1" {
			t.Errorf("the mail is %+v", ss)
		}
	})
	t.Run("it did not, and then it is in doubt: F17 holds", func(t *testing.T) {
		d := resolution(ended(t), "").fail(saga.Unknown).due().found(KindNotFound).review(saga.ReasonInDoubt)
		d.resolution("mail_1").wants("rest", saga.Completed)
	})
	t.Run("a resolution on another attempt than the step stands at", func(t *testing.T) {
		d := ended(t).signal(Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: "mail", Attempt: 5}}).noted("it speaks of attempt 5").resolutionIs(saga.Completed)
		if got := d.st.Unconfirmed(); !slices.Equal(got, []string{"mail"}) {
			t.Errorf("unconfirmed: %v", got)
		}
	})
	t.Run("before the work has ended", func(t *testing.T) {
		d := lost(t, withMail).takeOver(told(t, "17", "customer c", "invoice i", "mail unknown", "report not-done")).tick().fail(saga.Unsent)
		resolution(d, "").wants("act mail forward", saga.Running).succeed("mail_1").wants("wait", saga.Retrying).due().succeed("r").wants("rest", saga.Completed)
	})
	t.Run("in review about another step: that review stays", func(t *testing.T) {
		d := lost(t, withMail).takeOver(told(t, "17", "customer c", "invoice i", "mail unknown", "report not-done")).tick().fail(saga.Fault).review(saga.ReasonPoison)
		note := d.st.Note
		if resolution(d, "mail_1").review(saga.ReasonPoison); d.st.Note != note {
			t.Errorf("the review is now about %q", d.st.Note)
		}
		d.resolution("r").wants("rest", saga.Completed)
	})
	t.Run("in review about another step, and it did not happen: first this one, and then that review", func(t *testing.T) {
		d := lost(t, withMail).takeOver(told(t, "17", "customer c", "invoice i", "mail unknown", "report not-done")).tick().fail(saga.Fault)
		resolution(d, "").wants("act mail forward", saga.Running).succeed("mail_1").review(saga.ReasonPoison)
	})
	t.Run("when its undo was armed, that settles it", func(t *testing.T) {
		d := ended(t).gone("18").succeed("").wants("look mail undo", saga.Compensating).found(KindFound, "mail_1") // C5
		d.wants("act mail undo", saga.Compensating).fail(saga.Unsent)
		resolution(d, "mail_1").noted("undo may be under way")
		d.due()
		d.busy = true
		d.succeed("")
		resolution(d, "mail_1").noted("is undone")
	})
	t.Run("a compensated work: it stands after all, and is undone", func(t *testing.T) {
		d := lost(t, withMail).takeOver(&Adoption{Revision: "17", Input: output("1"), Cancelled: true, Actor: "rebuild"}).resolutionIs(saga.Compensated)
		if got := d.st.Unconfirmed(); !slices.Equal(got, []string{"mail"}) {
			t.Fatalf("unconfirmed: %v", got)
		}
		resolution(d, "mail_1")
		if in := d.wants("act mail undo", saga.Compensating).st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "mail_1" {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
		d.succeed("").wants("rest", saga.Compensated)
	})
	t.Run("a compensated work: it did not happen, so there is nothing to undo", func(t *testing.T) {
		d := lost(t, withMail).takeOver(&Adoption{Revision: "17", Input: output("1"), Cancelled: true, Actor: "rebuild"})
		if resolution(d, "").resolutionIs(saga.Compensated); len(d.undone()) > 0 || len(d.st.Unconfirmed()) > 0 {
			t.Errorf("undone: %v, unconfirmed: %v", d.undone(), d.st.Unconfirmed())
		}
	})
	t.Run("of another attempt, or of its undo: nothing is known of it by that", func(t *testing.T) {
		for words, v := range map[string]saga.Resolution{
			"attempt 3":         {Step: "mail", Attempt: 3, Happened: true, ExternalID: "mail_1"},
			"neither in review": {Step: "mail", Direction: saga.Undo, Happened: true},
		} {
			d := ended(t).signal(Signal{Kind: SignalResolve, Resolution: v}).noted(words).resolutionIs(saga.Completed)
			if !slices.Equal(d.st.Unconfirmed(), []string{"mail"}) {
				t.Errorf("%s: the mail is %+v", words, d.st.Step("mail"))
			}
		}
	})
	t.Run("in review about its own undo, a resolution is about that", func(t *testing.T) {
		d := ended(t).gone("18").succeed("").wants("look mail undo", saga.Compensating).found(KindSeveral, "m1", "m2").review(saga.ReasonUndoFailed)
		if ss, dir := d.st.IssueOf(d.spec, "mail"); ss == nil || dir != saga.Undo {
			t.Errorf("a resolution is about %+v, %s", ss, dir)
		}
		resolution(d, "by hand").wants("act invoice undo", saga.Compensating).succeed("").succeed("").wants("rest", saga.Compensated)
		d.signal(Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: "mail", Direction: saga.Forward, Happened: true}}).noted("is undone").resolutionIs(saga.Compensated)
	})
	t.Run("given before a fail-over, that it did not happen may have been followed", func(t *testing.T) {
		d := lost(t, withMail).takeOver(told(t, "17", "customer c", "invoice i", "mail unknown", "report not-done")).tick().wants("act report forward", saga.Running)
		before := d.now
		if err := d.failover(0); err != nil || d.st.Forgotten.IsZero() {
			t.Fatalf("nothing was forgotten (%v)", err)
		}
		word := Signal{Kind: SignalResolve, At: before, Resolution: saga.Resolution{Step: "mail"}}
		d.fail(saga.Unsent).signal(word).noted("look again")
		word.At = d.now.Add(time.Second)
		if d.signal(word); d.st.Step("mail").Unconfirmed {
			t.Error("it is unconfirmed still, and a person has looked again")
		}
	})
	t.Run("in a review that the machine gave up in, that it happened takes nothing up", func(t *testing.T) {
		d := lost(t, withMail).takeOver(told(t, "17", "customer c", "invoice i", "mail unknown", "report not-done")).tick().fail(saga.Unsent)
		resolution(d.feed(Event{Invalid: 2}).review(saga.ReasonPoison), "mail_1").review(saga.ReasonPoison)
	})
	t.Run("what a resolution cannot reopen", func(t *testing.T) {
		d := ended(t)
		r := Record{Kind: KindResolved, Step: "report", Direction: saga.Forward, ErrorClass: saga.Unsent, Status: saga.Running}
		if d.forged(r, len(d.chain)) == nil {
			t.Error("a resolution on a step that is confirmed follows the end")
		}
		if r.Step, r.Direction = "mail", saga.Undo; d.forged(r, len(d.chain)) == nil {
			t.Error("a resolution on an undo follows the end")
		}
		d.signal(Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: "report"}}).noted("neither in review").resolutionIs(saga.Completed)
		back := begin(t, "x find undo\nm at-most-once no-undo").succeed("x1").fail(saga.Unknown).cancel().succeed("").resolutionIs(saga.Compensated)
		if r = (Record{Kind: KindResolved, Step: "m", Direction: saga.Forward, Attempt: 1, ErrorClass: saga.Unsent, Status: saga.Running}); back.forged(r, len(back.chain)) == nil {
			t.Error("a resolution on a step that was not adopted follows the end")
		}
	})
}

// "R6: the first record says what caused the start, in the starter's words".
func TestR6Cause(t *testing.T) {
	d := newDesk(t, "a find undo\nb find undo").feed(Event{Start: &Start{Input: output("1"), Cause: "webhook evt_1\x00"}})
	d.succeed("1").succeed("2").wants("rest", saga.Completed)
	if d.st.Cause != "webhook evt_1\uFFFD" || Summarize(d.spec, d.st).Cause != d.st.Cause || d.chain[0].Cause != d.st.Cause {
		t.Errorf("the cause is %q", d.st.Cause)
	}
	if st, err := Fold(order, d.chain); err != nil || st.Cause != d.st.Cause {
		t.Errorf("it folds to %q (%v)", st.Cause, err)
	}
	long := newDesk(t, "a find undo").feed(Event{Start: &Start{Input: output("1"), Cause: strings.Repeat("x", 1<<20)}})
	if n := len(long.st.Cause); n > maxText {
		t.Errorf("a cause of %d bytes", n)
	}
}
