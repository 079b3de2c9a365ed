package machine

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

func (d *desk) pause() *desk {
	d.t.Helper()
	return d.signal(Signal{Kind: SignalPause, Actor: "anna", Reason: "look first"})
}

func (d *desk) goOn() *desk {
	d.t.Helper()
	return d.signal(Signal{Kind: SignalResume, Actor: "anna", Reason: "seen"})
}

// retry posts a retry of the step at issue.
func (d *desk) retry() *desk { d.t.Helper(); return d.byHand(SignalRetry, "") }

// skip posts that the step at issue did not happen and will not.
func (d *desk) skip(result string) *desk { d.t.Helper(); return d.byHand(SignalSkip, result) }

func (d *desk) byHand(kind SignalKind, result string) *desk {
	d.t.Helper()
	ss, dir := d.st.Issue(d.spec)
	if ss == nil {
		d.t.Fatal("no step is at issue")
	}
	v := saga.Resolution{Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts}
	if result != "" {
		v.ExternalID, v.Output = result, output(result)
	}
	return d.signal(Signal{Kind: kind, At: d.now, Actor: "anna", Reason: "mended", Resolution: v})
}

func (d *desk) paused() *desk {
	d.t.Helper()
	if d.st.Status != saga.Paused || d.last.Do.Do != Rest {
		d.t.Fatalf("the work is %s, and the machine says %q; want paused", d.st.Status, d.last.Do)
	}
	return d
}

// "S14: a pause holds the work where it is, going forward or back, and what its source says waits,
// too".
func TestS14Pause(t *testing.T) {
	const ab = "a idempotent undo\nb find undo"
	t.Run("in a backoff", func(t *testing.T) {
		d := begin(t, ab).fail(saga.Unknown).pause().paused()
		if !strings.Contains(d.st.Note, "paused, says anna: look first") || d.tail().Kind != KindPaused || !d.st.Due.IsZero() {
			t.Errorf("%q, due %s, by %+v", d.st.Note, d.st.Due, d.tail())
		}
		d.wait(time.Hour).paused().goOn().wants("act a forward", saga.Running)
	})
	t.Run("before an armed step", func(t *testing.T) {
		d := newDesk(t, ab)
		d.busy = true
		d.start().pause().paused()
		d.busy = false
		d.tick().paused().goOn().wants("act a forward", saga.Running)
	})
	t.Run("an attempt under way is answered first", func(t *testing.T) {
		d := begin(t, ab)
		if err := d.try(Event{Signal: &Signal{ID: 9, Kind: SignalPause}}); err == nil {
			t.Fatal("consumed while an attempt is open (S1)")
		}
		d.without("1").pause().paused().goOn().wants("act b forward", saga.Running)
	})
	t.Run("on the way back", func(t *testing.T) {
		d := begin(t, ab).succeed("1").fail(saga.Unknown).cancel().wants("wait", saga.Compensating).pause().paused().wait(time.Hour).paused()
		d.goOn().wants("look b forward", saga.Compensating).found(KindNotFound).wants("act a undo", saga.Compensating)
	})
	t.Run("what its source says waits", func(t *testing.T) {
		d := beginAt(t, ab).fail(saga.Unsent).pause().paused().revise("2").paused().gone("3").paused()
		if d.st.Compensating || d.st.Revision != "1" || d.st.PendingRevision == nil || !d.st.PendingRevision.Withdrawn {
			t.Errorf("%+v", d.st)
		}
		d.goOn().wants("rest", saga.Compensated)
		beginAt(t, ab).succeed("1").fail(saga.Refused).fail(saga.Unknown).pause().paused().gone("2").paused().goOn().due().wants("act a undo", saga.Compensating)
		beginAt(t, ab).fail(saga.Unsent).pause().revise("2").paused().goOn().runs("2", "")
	})
	t.Run("a late answer lands and changes nothing else", func(t *testing.T) {
		d := begin(t, ab).succeed("1").fail(saga.Unknown).pause().late("b", "2").paused()
		if d.st.Step("b").Forward.Phase != Done {
			t.Errorf("b is %s", d.st.Step("b").Forward.Phase)
		}
		d.goOn().wants("rest", saga.Completed)
	})
	t.Run("what is not moving cannot be held", func(t *testing.T) {
		begin(t, ab).pause0().pause().noted("in paused already").paused()
		begin(t, ab).fail(saga.Fault).pause().noted("in review already").review(saga.ReasonPoison)
		begin(t, ab).fail(saga.Refused).pause().noted("the work has ended").wants("rest", saga.Compensated)
		begin(t, ab).fail(saga.Unsent).goOn().noted("neither paused").wants("wait", saga.Retrying)
	})
}

func (d *desk) pause0() *desk { d.t.Helper(); return d.fail(saga.Unsent).pause().paused() }

// "S15: a paused work takes every word of a person that a review takes. It ends the pause".
func TestS15PausedTakesEveryWord(t *testing.T) {
	const ab = "a idempotent undo\nb find undo"
	held := func(t *testing.T) *desk {
		t.Helper()
		return begin(t, ab).succeed("1").fail(saga.Unknown).pause().paused()
	}
	held(t).resolution("2").wants("rest", saga.Completed)
	held(t).resolution("").due().wants("act b forward", saga.Running)
	held(t).retry().due().wants("look b forward", saga.Running)
	held(t).skip("2").wants("rest", saga.Completed)
	held(t).cancel().wants("wait", saga.Compensating)
}

// "S16: a retry tries the step at issue again, under its key, with a fresh policy and at once. What
// may have happened still may".
func TestS16Retry(t *testing.T) {
	refused := func(t *testing.T, b string) *desk {
		t.Helper()
		return begin(t, "a idempotent undo pivot\nb "+b).succeed("1").fail(saga.Refused).review(saga.ReasonAfterPivot)
	}
	t.Run("refused", func(t *testing.T) {
		for _, b := range []string{"idempotent", "keyed=1h", "find", "at-most-once"} {
			d := refused(t, b)
			key := d.st.Step("b").Forward.Key
			if d.retry().wants("act b forward", saga.Running); d.key() != key || d.tail().Kind != KindRetried || d.armed().Attempt != 2 {
				t.Errorf("%s: %+v", b, d.tail())
			}
			d.succeed("2").wants("rest", saga.Completed)
		}
	})
	t.Run("refused after a maybe", func(t *testing.T) {
		d := begin(t, "a idempotent undo pivot\nb find").succeed("1").outcome(program.Outcome{Class: saga.Refused, Maybe: true}).review(saga.ReasonAfterPivot)
		d.retry().due().wants("look b forward", saga.Running)
	})
	t.Run("given up", func(t *testing.T) {
		d := begin(t, "a idempotent undo attempts=2").fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonExhausted)
		key := d.st.Step("a").Forward.Key
		d.wait(longest).retry().wants("act a forward", saga.Running)
		if e := d.st.Step("a").Forward; e.CountedAttempts != 1 || e.Failures != 0 || e.PolicyStartedAt != d.now || e.OutcomeUnknownUntil.IsZero() || d.key() != key {
			t.Errorf("%+v", e)
		}
		d.fail(saga.Unknown).wants("wait", saga.Retrying).due().fail(saga.Unknown).review(saga.ReasonExhausted)
	})
	t.Run("after too many crashes", func(t *testing.T) {
		d := begin(t, "a idempotent undo")
		d.most = 1
		d.crash().review(saga.ReasonPoison).retry().wants("act a forward", saga.Running).crash().review(saga.ReasonPoison)
	})
	t.Run("at fault", func(t *testing.T) {
		begin(t, "a idempotent undo").fail(saga.Fault).review(saga.ReasonPoison).retry().wants("act a forward", saga.Running)
	})
	t.Run("several were found, and one was removed", func(t *testing.T) {
		begin(t, "a find undo").fail(saga.Unknown).due().found(KindSeveral, "1", "2").review(saga.ReasonInDoubt).retry().
			wants("look a forward", saga.Running).found(KindFound, "1").wants("rest", saga.Completed)
	})
	t.Run("a backoff ends", func(t *testing.T) {
		begin(t, "a idempotent undo").fail(saga.Unsent).wants("wait", saga.Retrying).retry().wants("act a forward", saga.Running)
	})
	t.Run("an undo", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb find undo").succeed("1").fail(saga.Refused).fail(saga.Refused).review(saga.ReasonUndoFailed)
		key := d.st.Step("a").Undo.Key
		if d.retry().wants("act a undo", saga.Compensating); d.key() != key {
			t.Errorf("under %s, not %s", d.key(), key)
		}
		d.succeed("").wants("rest", saga.Compensated)
	})
	t.Run("an undo whose lookup found nothing looks again", func(t *testing.T) {
		begin(t, "a find undo\nb find undo").fail(saga.Unknown).due().found(KindSeveral, "1", "2").resolution("inv_9").fail(saga.Refused).
			found(KindNotFound).review(saga.ReasonUndoFailed).retry().wants("look a undo", saga.Compensating).found(KindFound, "inv_9").wants("act a undo", saga.Compensating)
	})
}

// "S16: ... It is refused where it cannot be told whether the step happened (F17, F19)".
func TestS16NoRetryOfADoubt(t *testing.T) {
	begin(t, "a at-most-once undo").fail(saga.Unknown).retry().noted("it cannot be told").review(saga.ReasonInDoubt)
	begin(t, "a at-most-once lookup undo").fail(saga.Unknown).due().found(KindNotFound).review(saga.ReasonInDoubt).retry().noted("it cannot be told").review(saga.ReasonInDoubt)
	begin(t, "a keyed=1h undo attempts=1").fail(saga.Unknown).review(saga.ReasonExhausted).wait(time.Hour).retry().noted("it cannot be told").review(saga.ReasonExhausted)
	begin(t, "a keyed=1h undo attempts=1").fail(saga.Unknown).review(saga.ReasonExhausted).retry().wants("act a forward", saga.Running)
	d := begin(t, "a at-most-once lookup undo").fail(saga.Unknown).due()
	for range maxLookups - 1 {
		d.found(KindUnclear).due()
	}
	d.found(KindUnclear).review(saga.ReasonInDoubt).retry().wants("look a forward", saga.Running) // to look again sends nothing
}

// "S17: a skip says that the step at issue did not happen and will not, and the work goes on. Later
// steps find the result that was given".
func TestS17Skip(t *testing.T) {
	bounced := func(t *testing.T) *desk {
		t.Helper()
		return begin(t, "a idempotent undo pivot\nmail find\nc idempotent").succeed("1").fail(saga.Refused).review(saga.ReasonAfterPivot)
	}
	t.Run("without a result", func(t *testing.T) {
		d := bounced(t).skip("").wants("act c forward", saga.Running)
		if _, ok := d.st.Invocation(d.last.Do).Results["mail"]; ok || d.st.Step("mail").Forward.Phase != Skipped || d.chain[3].Kind != KindSkipped {
			t.Errorf("%+v", d.st.Step("mail"))
		}
		d.succeed("3").wants("rest", saga.Completed)
		if s := Summarize(d.spec, d.st).Steps["mail"]; s.Done || s.Status != "skipped" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("with a result", func(t *testing.T) {
		d := bounced(t).skip("m1").wants("act c forward", saga.Running)
		if r := d.st.Invocation(d.last.Do).Results["mail"]; r.ExternalID != "m1" || string(r.Output) != `{"id":"m1"}` {
			t.Errorf("%+v", r)
		}
	})
	t.Run("with an id that is the whole result", func(t *testing.T) {
		d := bounced(t)
		d.spec.Steps[1].ResultIsExternalID = true
		ss, _ := d.st.Issue(d.spec)
		d.signal(Signal{Kind: SignalSkip, At: d.now, Resolution: saga.Resolution{Step: ss.Name, Direction: saga.Forward, Attempt: 1, ExternalID: "m1"}})
		if r := d.st.Invocation(d.last.Do).Results["mail"]; r.ExternalID != "m1" || string(r.Output) != `"m1"` {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a result that is wanted is given later", func(t *testing.T) {
		d := bounced(t).skip("").fail(saga.Fault).review(saga.ReasonPoison)
		d.signal(Signal{Kind: SignalSkip, At: d.now, Resolution: saga.Resolution{Step: "mail", Direction: saga.Forward, Attempt: 1, ExternalID: "m1"}}).review(saga.ReasonPoison)
		if d.retry().wants("act c forward", saga.Running); d.st.Invocation(d.last.Do).Results["mail"].ExternalID != "m1" {
			t.Errorf("%+v", d.st.Step("mail"))
		}
	})
	t.Run("nothing is owed", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb find undo\nc idempotent pivot").succeed("1").fail(saga.Unsent).pause().skip("").wants("act c forward", saga.Running)
		if d.fail(saga.Refused).wants("act a undo", saga.Compensating).succeed("").wants("rest", saga.Compensated); len(d.undone()) != 1 {
			t.Errorf("undone: %v", d.undone())
		}
	})
	t.Run("what may still arrive is undone with the rest", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb idempotent undo attempts=1\nc idempotent pivot").succeed("1").fail(saga.Unknown).review(saga.ReasonExhausted).skip("")
		d.fail(saga.Refused).wants("wait", saga.Compensating).due().wants("act b undo", saga.Compensating)
	})
	t.Run("a late success is believed", func(t *testing.T) {
		d := begin(t, "a idempotent undo attempts=1\nc idempotent pivot").fail(saga.Unknown).skip("").fail(saga.Unsent).late("a", "a1").wants("wait", saga.Retrying)
		if ss := d.st.Step("a"); ss.Forward.Phase != Done || ss.ExternalID != "a1" {
			t.Errorf("%+v", ss)
		}
	})
	t.Run("the next version does it", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo pivot\nmail at-most-once").succeed("1").fail(saga.Refused).skip("").wants("rest", saga.Completed)
		d.revise("2").succeed("1").wants("act mail forward", saga.Running)
	})
}

// "S17: ... It is refused on the way back, where it is not at issue, of another attempt, and when
// records were forgotten since".
func TestS17NoSkip(t *testing.T) {
	begin(t, "a idempotent undo").fail(saga.Unsent).skip("").noted("neither in review nor paused").wants("wait", saga.Retrying)
	begin(t, "a idempotent undo attempts=1\nb find undo").succeed("1").fail(saga.Refused).fail(saga.Unknown).review(saga.ReasonUndoFailed).skip("").noted("being undone").review(saga.ReasonUndoFailed)
	other := func(v saga.Resolution) *desk {
		d := begin(t, "a idempotent undo pivot\nb find").succeed("1").fail(saga.Refused)
		return d.signal(Signal{Kind: SignalSkip, At: d.now, Resolution: v})
	}
	other(saga.Resolution{Step: "a", Direction: saga.Forward, Attempt: 1}).noted("not the one at issue").review(saga.ReasonAfterPivot)
	other(saga.Resolution{Step: "b", Direction: saga.Forward, Attempt: 2}).noted("moved on").review(saga.ReasonAfterPivot)
	d := begin(t, "a idempotent undo pivot\nb at-most-once").succeed("1").fail(saga.Unknown).review(saga.ReasonInDoubt)
	word := Signal{Kind: SignalSkip, At: d.now, Resolution: saga.Resolution{Step: "b", Direction: saga.Forward, Attempt: 1}}
	d.now = d.now.Add(time.Minute)
	d.feed(Event{Changed: d.now, Unread: true})
	d.signal(word).noted("records were forgotten").review(saga.ReasonInDoubt)
}

// A chain with a hand in it folds from its JSON as it was written.
func TestHandsFold(t *testing.T) {
	d := begin(t, "a idempotent undo pivot\nmail find\nc idempotent").succeed("1").fail(saga.Refused).skip("m1").fail(saga.Unsent).pause().goOn().retry().succeed("3")
	st, err := Fold(order, d.chain)
	if err != nil || string(dump(t, st)) != string(dump(t, d.st)) {
		t.Errorf("%v\n%s\n%s", err, dump(t, st), dump(t, d.st))
	}
	var back State
	if err := json.Unmarshal(dump(t, d.st), &back); err != nil || string(dump(t, &back)) != string(dump(t, d.st)) {
		t.Errorf("%v", err)
	}
}

// machine/F3: a result that was not kept is given by hand, and lets nothing go on; what was said of the step before it was answered changes nothing of what is done.
func TestF3AResultThatWasNotKept(t *testing.T) {
	said := func(d *desk, v saga.Resolution) *desk {
		v.Step, v.Direction, v.Attempt = "a", saga.Forward, 1
		return d.signal(Signal{Kind: SignalResolve, Actor: "anna", Resolution: v})
	}
	done := func() *desk {
		d := begin(t, "a find undo\nb idempotent undo")
		d.busy = true // so that nothing is armed behind it
		d.outcome(program.Outcome{Class: program.Succeeded, ExternalID: "inv_9", Dropped: true}).pause().paused()
		d.busy = false
		return d
	}
	for what, v := range map[string]saga.Resolution{"it did not happen": {}, "it happened": {Happened: true, ExternalID: "inv_8"}} {
		if d := said(done(), v).noted("the step is done").paused(); d.st.Step("a").ExternalID != "inv_9" || d.st.Step("a").Forward.Phase != Done {
			t.Errorf("%s: %+v", what, d.st.Step("a"))
		}
	}
	d := said(done(), saga.Resolution{Happened: true, ExternalID: "inv_8", Output: output("inv_9")}).paused()
	if ss := d.st.Step("a"); ss.ExternalID != "inv_9" || ss.OutputDropped || len(ss.Output) == 0 {
		t.Errorf("%+v", ss)
	}
	d.goOn().wants("act b forward", saga.Running)
}
