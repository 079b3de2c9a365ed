package machine

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// late posts the answer of a step's first attempt, which was closed before it came.
func (d *desk) late(step, id string) *desk {
	d.t.Helper()
	return d.signal(Signal{Kind: SignalLate, Resolution: saga.Resolution{
		Step: step, Direction: saga.Forward, Attempt: 1, Happened: true, ExternalID: id, Output: output(id),
	}})
}

// noted checks that the latest signal changed nothing and says why.
func (d *desk) noted(words string) *desk {
	d.t.Helper()
	r := d.tail()
	if r.Kind != KindNoted || !strings.Contains(r.Said(), words) || len(r.Signals) != 1 {
		d.t.Errorf("recorded %s %q by signals %v; want a note with %q", r.Kind, r.Said(), r.Signals, words)
	}
	return d
}

// "S1: a signal is consumed once, by a record that names it, and never while an attempt is open".
func TestS1ConsumedOnce(t *testing.T) {
	cancel := Event{Signal: &Signal{ID: 41, Kind: SignalCancel, Actor: "anna", Reason: "wrong order"}}
	d := begin(t, "a idempotent undo")
	if err := d.try(cancel); err == nil {
		t.Error("a signal was consumed while an attempt is open")
	}
	d.fail(saga.Unsent).feed(cancel)
	r := d.tail()
	if r.Kind != KindCancelled || len(r.Signals) != 1 || r.Signals[0] != 41 || !d.st.Saw(41) {
		t.Errorf("recorded %+v", r)
	}
	if !strings.Contains(r.Said(), "anna") || !strings.Contains(r.Said(), "wrong order") {
		t.Errorf("who and why are not on record: %q", r.Said())
	}
	for _, s := range []Signal{{Kind: "no such kind"}, {Kind: SignalWake}, {Kind: SignalConflict}, {Kind: SignalResolve}, {Kind: SignalLate}} {
		d := begin(t, "a idempotent undo").fail(saga.Unsent).signal(s)
		if r := d.tail(); len(r.Signals) != 1 || !d.st.Saw(r.Signals[0]) {
			t.Errorf("%s: recorded %+v", s.Kind, r)
		}
		if err := d.try(Event{Signal: &Signal{ID: d.sigs, Kind: s.Kind}}); err == nil {
			t.Errorf("%s: consumed twice", s.Kind)
		}
	}
}

// "S1: ... the state remembers the latest 64, so that it does not grow with a work's life
// ".
func TestS1StateIsBounded(t *testing.T) {
	d := begin(t, "a idempotent undo").fail(saga.Unsent)
	for range 10 * maxConsumed {
		d.signal(Signal{Kind: SignalConflict})
	}
	if n := len(d.st.ConsumedSignals); n != maxConsumed || !d.st.Saw(d.sigs) || !d.st.Saw(d.sigs-maxConsumed+1) {
		t.Errorf("it remembers %d signals", n)
	}
	if n := len(dump(t, d.st)); n > 4<<10 {
		t.Errorf("after %d signals the state has %d bytes", d.sigs, n)
	}
}

// "S2: cancel turns the work, from any place before the pivot may have happened: during a backoff,
// in doubt, in review".
func TestS2Cancel(t *testing.T) {
	const ab = "a idempotent undo\nb find undo\np idempotent undo pivot"
	for _, c := range []struct {
		where string
		reach func(*desk) *desk
		want  string
	}{
		{"before a step is armed", func(d *desk) *desk { d.busy = true; d.succeed("1"); d.busy = false; return d }, "act a undo"},
		{"during a backoff", func(d *desk) *desk { return d.succeed("1").fail(saga.Unsent) }, "act a undo"},
		{"in doubt", func(d *desk) *desk { return d.succeed("1").fail(saga.Unknown) }, "wait"},
		{"in review", func(d *desk) *desk { return d.succeed("1").fail(saga.Fault) }, "act a undo"},
		{"at a pivot that was never sent", func(d *desk) *desk { return d.succeed("1").succeed("2").fail(saga.Unsent) }, "act b undo"},
	} {
		t.Run(c.where, func(t *testing.T) {
			d := c.reach(begin(t, ab)).cancel().wants(c.want, saga.Compensating)
			if r := d.turning(); r.Kind != KindCancelled || r.Reason != "" || !d.st.Compensating || d.st.Reason != "" {
				t.Errorf("recorded %s, turned %v, reason %q", r.Kind, d.st.Compensating, d.st.Reason)
			}
		})
	}
}

// "S3: cancel when the pivot may have happened comes too late, and is noted".
func TestS3CancelTooLate(t *testing.T) {
	t.Run("in doubt", func(t *testing.T) {
		begin(t, "p idempotent undo pivot\nr find").fail(saga.Unknown).cancel().noted("too late").wants("wait", saga.Retrying)
	})
	t.Run("done", func(t *testing.T) {
		begin(t, "p idempotent undo pivot\nr find").succeed("1").fail(saga.Unsent).cancel().noted("too late").wants("wait", saga.Retrying)
	})
	t.Run("in review", func(t *testing.T) {
		d := begin(t, "p idempotent undo pivot\nr find").succeed("1").fail(saga.Refused).review(saga.ReasonAfterPivot)
		note := d.st.Note
		d.cancel().noted("too late").review(saga.ReasonAfterPivot)
		if d.st.Note != note {
			t.Errorf("the review was about %q and is now about %q", note, d.st.Note)
		}
	})
	t.Run("done behind", func(t *testing.T) {
		d := begin(t, "p idempotent undo pivot\nr find").succeed("1").fail(saga.Unknown)
		due := d.st.Due
		d.cancel().noted("too late").wants("wait", saga.Retrying)
		if d.st.Due != due {
			t.Errorf("a note moved the due time from %s to %s", due, d.st.Due)
		}
	})
}

// "S4: cancel of a work that turned already is noted".
func TestS4CancelTwice(t *testing.T) {
	begin(t, "a idempotent undo").cancelAfter(saga.Unknown).cancel().noted("already").wants("wait", saga.Compensating)
	begin(t, "a idempotent undo\nb find undo").succeed("1").fail(saga.Refused).fail(saga.Refused).review(saga.ReasonUndoFailed).
		cancel().noted("already").review(saga.ReasonUndoFailed)
}

// "S5: a resolution 'it happened' makes the step (or undo) in review done, with the external id it
// names".
func TestS5Happened(t *testing.T) {
	d := begin(t, "a at-most-once undo\nb at-most-once no-undo").fail(saga.Unknown).review(saga.ReasonInDoubt)
	d.resolution("mail_7").wants("act b forward", saga.Running)
	ss := d.st.Step("a")
	if ss.Forward.Phase != Done || ss.ExternalID != "mail_7" || ss.Evidence != KindResolved {
		t.Errorf("the step is %+v", ss)
	}
	if r := d.tail(); r.Kind != KindResolved || r.ErrorClass != "" || !strings.Contains(r.Said(), "anna") {
		t.Errorf("recorded %+v", r)
	}
	// the last step: completed
	begin(t, "a at-most-once no-undo").fail(saga.Unknown).resolution("mail_7").wants("rest", saga.Completed)
	// behind the pivot: forward
	begin(t, "p idempotent undo pivot\nr find\ns find").succeed("1").fail(saga.Refused).resolution("by hand").wants("act s forward", saga.Running)
	// an undo
	d = begin(t, "a idempotent undo\nb find undo").succeed("1").fail(saga.Refused).fail(saga.Refused).review(saga.ReasonUndoFailed)
	d.resolution("by hand").wants("rest", saga.Compensated)
	if d.st.Step("a").ExternalID != "1" {
		t.Error("a resolution on the undo changed what the step made")
	}
}

// "S6: a resolution 'it did not happen' makes it ready under a new key, with a fresh policy.
// Nothing is armed before the attempts of the old key have settled".
func TestS6DidNotHappen(t *testing.T) {
	d := begin(t, "a at-most-once undo timeout=10s settle=20s attempts=1").fail(saga.Unknown).review(saga.ReasonInDoubt)
	key := d.st.Step("a").Forward.Key
	d.now = d.now.Add(5 * time.Second)
	d.resolution("").wants("wait until 12:00:30", saga.Retrying)
	d.lag = time.Second
	d.now = noon.Add(31*time.Second - time.Millisecond)
	d.tick().wants("wait until 12:00:30", saga.Retrying)
	d.wait(time.Millisecond).wants("act a forward", saga.Running)
	if a := d.armed(); a.Key == key || a.Reissue != 1 || a.Attempt != 2 {
		t.Errorf("armed %+v", a)
	}
	if e := d.st.Step("a").Forward; e.CountedAttempts != 1 || e.PolicyStartedAt != d.now || e.KeyFirstUsed != d.now || e.Crashes != 0 {
		t.Errorf("the policy is not fresh: %+v", e)
	}
}

// "S6": crashes count anew after a resolution.
func TestS6CrashesCountAnew(t *testing.T) {
	d := begin(t, "a idempotent undo")
	for range 2 {
		for d.st.Status != saga.Review {
			d.crash()
			if d.last.Do.Do == Wait {
				d.due()
			}
		}
		if got := d.st.Step("a").Forward.Crashes; got != defaultMaxCrashes {
			t.Fatalf("%d crashes, want %d", got, defaultMaxCrashes)
		}
		d.review(saga.ReasonPoison).resolution("").due().wants("act a forward", saga.Running)
	}
}

// "S7: a resolution is stale, and noted, when the work is not in review, the review is about
// another step or direction, or the attempt has moved on".
func TestS7StaleResolution(t *testing.T) {
	word := func(step string, dir saga.Direction, attempt int) Signal {
		return Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: step, Direction: dir, Attempt: attempt}}
	}
	t.Run("not in review", func(t *testing.T) {
		begin(t, "a find undo").fail(saga.Unknown).signal(word("a", saga.Forward, 1)).noted("neither in review").wants("wait", saga.Retrying)
	})
	review := func(t *testing.T) *desk {
		t.Helper()
		d := begin(t, "a idempotent no-undo\nb at-most-once no-undo").succeed("1").fail(saga.Unsent).due().fail(saga.Unknown).review(saga.ReasonInDoubt)
		return d
	}
	for what, s := range map[string]Signal{
		"another step":      word("a", saga.Forward, 1),
		"an unknown step":   word("z", saga.Forward, 1),
		"another direction": word("b", saga.Undo, 2),
		"an earlier try":    word("b", saga.Forward, 1),
		"a later try":       word("b", saga.Forward, 3),
	} {
		t.Run(what, func(t *testing.T) {
			d := review(t)
			note := d.st.Note
			d.signal(s).noted("resolution").review(saga.ReasonInDoubt)
			if d.st.Note != note {
				t.Errorf("the review was about %q and is now about %q", note, d.st.Note)
			}
		})
	}
	t.Run("no direction given", func(t *testing.T) {
		d := review(t).signal(word("b", "", 2))
		if d.tail().Kind != KindResolved {
			t.Errorf("recorded %+v", d.tail())
		}
	})
	t.Run("the first of two counts", func(t *testing.T) {
		d := review(t).resolution("")
		d.signal(word("b", saga.Forward, 2)).noted("neither in review")
	})
}

// "S8: a late answer of success closes a step in doubt as done. Evidence is always asked first".
func TestS8LateAnswer(t *testing.T) {
	for _, c := range []struct {
		where string
		d     *desk
	}{
		{"waiting for a lookup", begin(t, "a find no-undo\nb at-most-once no-undo").fail(saga.Unknown)},
		{"backing off", begin(t, "a idempotent no-undo\nb at-most-once no-undo").fail(saga.Unknown)},
		{"in review", begin(t, "a at-most-once no-undo\nb at-most-once no-undo").fail(saga.Unknown)},
		{"in review, not found", begin(t, "a at-most-once lookup no-undo\nb at-most-once no-undo").fail(saga.Unknown).due().found(KindNotFound)},
		{"in review, poison", begin(t, "a idempotent no-undo\nb at-most-once no-undo").fail(saga.Unknown).due().fail(saga.Fault)},
	} {
		t.Run(c.where, func(t *testing.T) {
			attempt := c.d.st.Step("a").Forward.Attempts
			c.d.late("a", "inv_9").wants("act b forward", saga.Running)
			ss := c.d.st.Step("a")
			if ss.ExternalID != "inv_9" || ss.Evidence != KindFound || ss.Forward.Phase != Done || ss.Forward.Attempts != attempt {
				t.Errorf("the step is %+v", ss)
			}
		})
	}
	t.Run("a refused step behind the pivot", func(t *testing.T) {
		begin(t, "p idempotent undo pivot\nr idempotent").succeed("1").fail(saga.Unknown).due().fail(saga.Refused).
			review(saga.ReasonAfterPivot).late("r", "2").wants("rest", saga.Completed)
	})
	t.Run("an unknown step, a failure, an undo", func(t *testing.T) {
		for _, v := range []saga.Resolution{{Step: "z", Happened: true}, {Step: "a"}, {Step: "a", Direction: saga.Undo, Happened: true}} {
			begin(t, "a find undo").fail(saga.Unknown).signal(Signal{Kind: SignalLate, Resolution: v}).noted("a late answer").wants("wait", saga.Retrying)
		}
	})
	t.Run("on the way back", func(t *testing.T) {
		d := begin(t, "a find undo").cancelAfter(saga.Unknown).late("a", "inv_9").wants("wait", saga.Compensating)
		d.due().wants("act a undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "inv_9" {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
	})
}

// "S8": a review that is about something else stays, with its words.
func TestS8LateAnswerElsewhere(t *testing.T) {
	d := begin(t, "a idempotent undo\nb find undo\nc find undo").succeed("1").succeed("2").fail(saga.Refused).fail(saga.Refused).review(saga.ReasonUndoFailed)
	note := d.st.Note
	d.late("c", "3").review(saga.ReasonUndoFailed)
	if d.st.Note != note {
		t.Errorf("the review was about %q and is now about %q", note, d.st.Note)
	}
	// c did happen, so it is owed an undo now, and comes first
	d.signal(Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: "b", Direction: saga.Undo, Attempt: 1, Happened: true}})
	d.noted("not about step")
}

// "S9: a late answer that names another external id than the recorded one is noted: look for a
// duplicate".
func TestS9LateAnswerContradicts(t *testing.T) {
	d := begin(t, "a idempotent undo\nb find undo").fail(saga.Unknown).due().succeed("inv_1").fail(saga.Unknown)
	d.late("a", "inv_2").noted("duplicate").wants("wait", saga.Retrying)
	if !strings.Contains(d.tail().Said(), "inv_1") || !strings.Contains(d.tail().Said(), "inv_2") {
		t.Errorf("both ids must be named: %q", d.tail().Said())
	}
	d.late("a", "inv_1").noted("confirms").wants("wait", saga.Retrying)
}

// "S10: a conflict is noted. The work goes on with what it was started with".
func TestS10Conflict(t *testing.T) {
	d := begin(t, "a find undo").fail(saga.Unknown)
	d.signal(Signal{Kind: SignalConflict}).noted("another identity").wants("wait", saga.Retrying)
	d = begin(t, "a at-most-once no-undo").fail(saga.Unknown).review(saga.ReasonInDoubt)
	d.signal(Signal{Kind: SignalConflict}).noted("another identity").review(saga.ReasonInDoubt)
}

// A resolution's result is any JSON a person typed; one that is none is not kept, and stops
// nothing.
func TestResolutionWithBadOutput(t *testing.T) {
	d := begin(t, "a at-most-once no-undo\nb at-most-once no-undo").fail(saga.Unknown)
	d.signal(Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: "a", Attempt: 1, Happened: true, ExternalID: "x", Output: json.RawMessage(`{"id":`)}})
	if r := d.tail(); r.Kind != KindResolved || r.Body != nil || !r.BodyDropped || r.ExternalID != "x" {
		t.Errorf("recorded %+v", r)
	}
	d.wants("act b forward", saga.Running)
}
