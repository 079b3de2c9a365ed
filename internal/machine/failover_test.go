package machine

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// lose is a fail-over that forgets the latest n records.
func (d *desk) lose(n int) *desk {
	d.t.Helper()
	if err := d.failover(n); err != nil {
		d.t.Fatal(err)
	}
	return d
}

// "F26: when the database became another one after the work's latest record was written, a live
// work that was going forward and was not asleep then is not trusted: every step that is not done
// is put in doubt by a record of its own, with a deadline as if it had been armed now. Its class
// decides from there (F11 to F19)".
func TestF26WhatWasForgotten(t *testing.T) {
	t.Run("a receipt is not sent twice", func(t *testing.T) {
		d := begin(t, orderToInvoice).succeed("c").succeed("i").without("m") // the receipt is armed by the record that is lost
		d.tick().wants("act receipt forward", saga.Running)
		d.later(10 * time.Second).lose(1).review(saga.ReasonInDoubt)
		if r := d.chain[4]; r.Kind != KindForgotten || r.Dispatch != nil {
			t.Errorf("recorded %+v", r)
		}
		d.resolution("mail_1").wants("rest", saga.Completed)
	})
	t.Run("nor invoiced", func(t *testing.T) {
		d := begin(t, orderToInvoice).succeed("c").lose(1) // the tail armed the customer; what is lost armed the invoice
		d.wants("wait", saga.Running).due().wants("act customer forward", saga.Running)
		if want := StepKey(RootKey(order.Saga, order.Work, ""), "customer", saga.Forward, 0); d.key() != want {
			t.Errorf("armed under %s, want %s", d.key(), want)
		}
		d.succeed("c").wants("wait", saga.Retrying).due().wants("look invoice forward", saga.Running)
		d.found(KindFound, "i1").wants("act mark-synced forward", saga.Running).succeed("").review(saga.ReasonInDoubt)
	})
	t.Run("the deadline is as if it had been armed now", func(t *testing.T) {
		d := begin(t, "a find undo timeout=10s settle=20s").lose(0)
		if until := d.st.Step("a").Forward.OutcomeUnknownUntil; until != noon.Add(10*time.Second) {
			t.Errorf("unanswered until %s", until)
		}
		d = newDesk(t, "a find undo timeout=10s settle=20s")
		d.busy = true
		d.start()
		d.now = noon.Add(5 * time.Second)
		d.lose(0).wants("wait until 12:00:35", saga.Retrying)
	})
	t.Run("a late answer closes it", func(t *testing.T) {
		d := begin(t, "a idempotent no-undo\nmail at-most-once no-undo").without("a1")
		d.lose(0).review(saga.ReasonInDoubt).late("mail", "mail_1").wants("rest", saga.Completed)
	})
	t.Run("a window is counted from what is known", func(t *testing.T) {
		d := begin(t, "a idempotent no-undo\nb keyed=10m undo").without("a1")
		d.later(8 * time.Minute).lose(0) // it may have been armed right behind the tail
		d.wants("act b forward", saga.Running).fail(saga.Unknown)
		if d.later(90 * time.Second).tick(); d.st.Status != saga.Review {
			t.Errorf("sent again past the window: %s", d.last.Do)
		}
	})
	t.Run("under the key that a person allowed", func(t *testing.T) {
		d := begin(t, "a at-most-once undo").fail(saga.Unknown)
		d.busy = true
		d.later(2 * time.Minute).resolution("")
		d.busy = false
		d.lose(0).review(saga.ReasonInDoubt)
		if e := d.st.Step("a").Forward; e.Key != StepKey(RootKey(order.Saga, order.Work, ""), "a", saga.Forward, 1) {
			t.Errorf("the step is %+v", e)
		}
	})
	t.Run("of a later revision", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo\nb find undo\nmail at-most-once once no-undo").through().revise("2").without("a2").lose(0)
		d.wants("wait", saga.Retrying).due().wants("look b forward", saga.Running)
		if want := StepKey(RootKey(order.Saga, order.Work, "2"), "b", saga.Forward, 0); d.st.Step("b").Forward.Key != want || d.told() != "b-1" {
			t.Errorf("b is %+v", d.st.Step("b"))
		}
		d.found(KindNotFound).wants("act b forward", saga.Running).succeed("b2").wants("rest", saga.Completed)
	})
}

// "F26: ... a live work that was going forward and was not asleep then".
func TestF26Untouched(t *testing.T) {
	for where, d := range map[string]*desk{
		"completed":   begin(t, "a idempotent undo").succeed("1"),
		"compensated": begin(t, "a idempotent undo").fail(saga.Refused),
		"in review":   begin(t, "a at-most-once no-undo\nb at-most-once no-undo").fail(saga.Unknown).review(saga.ReasonInDoubt),
		"asleep":      begin(t, "a find undo\nb at-most-once no-undo").fail(saga.Unknown),
		"going back":  begin(t, "a idempotent undo\nb find undo\nc find undo").succeed("1").succeed("2").fail(saga.Refused),
	} {
		steps, n := string(dump(t, d.st.Steps)), len(d.chain)
		d.later(time.Second).lose(0)
		if got := string(dump(t, d.st.Steps)); got != steps || len(d.chain) != n {
			t.Errorf("%s: %d records more, steps\n%s\nbefore\n%s", where, len(d.chain)-n, got, steps)
		}
	}
	t.Run("asleep, and due before the fail-over", func(t *testing.T) {
		begin(t, "a idempotent undo\nb at-most-once no-undo").fail(saga.Unsent).later(time.Minute).lose(0).wants("act a forward", saga.Running).
			succeed("1").review(saga.ReasonInDoubt)
	})
	t.Run("what is done stays done", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb find undo").succeed("1").lose(0)
		if ss := d.st.Step("a"); ss.Forward.Phase != Done || !ss.Forward.OutcomeUnknownUntil.IsZero() {
			t.Errorf("a is %+v", ss)
		}
	})
}

// "F26: ... and a pivot that is in doubt counts as one that may have happened".
func TestF26PivotMayStand(t *testing.T) {
	const steps = "a idempotent undo attempts=1\np idempotent undo pivot\nr find"
	at := func(t *testing.T) *desk {
		t.Helper()
		d := newDesk(t, steps)
		d.busy = true
		d.start()
		d.busy = false
		return d.lose(0).wants("act a forward", saga.Running)
	}
	t.Run("refused before it", func(t *testing.T) { at(t).fail(saga.Refused).review(saga.ReasonAfterPivot) })
	t.Run("given up before it", func(t *testing.T) { at(t).fail(saga.Unknown).review(saga.ReasonExhausted) })
	t.Run("with the attempt open", func(t *testing.T) { begin(t, steps).lose(0).due().fail(saga.Unknown).review(saga.ReasonExhausted) })
	t.Run("cancelled", func(t *testing.T) { at(t).fail(saga.Fault).cancel().noted("too late").review(saga.ReasonPoison) })
}

// "F26: ... A lookup that finds a step missing, or half-made, takes the doubt from those behind it:
// they were not armed. But not from one that is AtMostOnce".
func TestF26ALookupAcquits(t *testing.T) {
	lost := func() *desk {
		return begin(t, "a find undo\np idempotent pivot\nmail at-most-once").lose(0).due().due()
	}
	for _, kind := range []Kind{KindNotFound, KindUnfinished} {
		d := lost().wants("look a forward", saga.Running).found(kind, "half").wants("act a forward", saga.Running)
		if d.st.Step("p").inDoubt() {
			t.Errorf("%s: the pivot is still in doubt", kind)
		}
		d.succeed("a1").succeed("p1").review(saga.ReasonInDoubt) // a lookup is no licence to send a mail
	}
	d := lost().found(KindFound, "a1")
	if d.wants("act p forward", saga.Running).succeed("p1").review(saga.ReasonInDoubt); d.st.Step("mail").Forward.Attempts != 0 {
		t.Error("a receipt that may have been sent was sent again")
	}
	begin(t, "a find undo\np idempotent pivot\nz idempotent").lose(0).due().due().found(KindNotFound).fail(saga.Refused).
		wants("rest", saga.Compensated) // nor does the pivot stand any more
	t.Run("not from what is known to have been sent", func(t *testing.T) {
		d := begin(t, "a find undo\nb find undo attempts=9").succeed("a1").fail(saga.Unknown).due().found(KindUnclear).due()
		d.now = d.now.Add(time.Second)
		if d.lose(0); d.st.Step("b").Forward.OutcomeUnknownUntil.IsZero() {
			t.Error("the doubt is gone")
		}
	})
}

// "F27: a signal that was posted before that change and is unread may have been consumed by what
// was forgotten. Then F26 holds for a work that was asleep or in review, too".
func TestF27UnreadSignals(t *testing.T) {
	for where, reach := range map[string]func() *desk{
		"asleep":    func() *desk { return begin(t, "a find no-undo\nb at-most-once no-undo").fail(saga.Unknown) },
		"in review": func() *desk { return begin(t, "a idempotent no-undo\nb at-most-once no-undo").fail(saga.Fault) },
	} {
		d := reach()
		status, reason, note := d.st.Status, d.st.Reason, d.st.Note
		d.now = d.now.Add(time.Second)
		if err := d.once(Event{Changed: d.now, Unread: true}); err != nil {
			t.Fatal(err)
		}
		if r := d.tail(); r.Kind != KindForgotten || d.st.Status != status || d.st.Reason != reason || d.st.Note != note || r.Dispatch != nil {
			t.Errorf("%s: recorded %+v", where, r)
		}
		// the late answer that had woken it is read again, and what it led to is not sent twice
		d.late("a", "a1").review(saga.ReasonInDoubt)
		if ss := d.st.Step("a"); ss.Forward.Phase != Done {
			t.Errorf("%s: a is %+v", where, ss)
		}
	}
	waits := begin(t, "a delay=24h\nb at-most-once no-undo").wants("wait", saga.Waiting)
	if err := waits.once(Event{Changed: waits.now, Unread: true}); err != nil {
		t.Fatal(err)
	}
	waits.endWait().review(saga.ReasonInDoubt) // what waits still waits, and what is behind it is asked about
	for where, d := range map[string]*desk{
		"completed":  begin(t, "a idempotent undo").succeed("1"),
		"going back": begin(t, "a idempotent undo\nb find undo\nc find undo").succeed("1").succeed("2").fail(saga.Refused),
	} {
		n := len(d.chain)
		if err := d.once(Event{Changed: d.now, Unread: true}); err != nil || len(d.chain) != n {
			t.Errorf("%s: %v, and %d records more", where, err, len(d.chain)-n)
		}
	}
}

// "F27: ... And a resolution 'it did not happen' of that time is stale: it may have been followed
// already, so a person must look again".
func TestF27StaleResolution(t *testing.T) {
	d := begin(t, "a at-most-once no-undo").fail(saga.Unknown).review(saga.ReasonInDoubt)
	word := func(id int64, at time.Time, happened bool) Signal {
		return Signal{ID: id, At: at, Kind: SignalResolve, Resolution: saga.Resolution{Step: "a", Attempt: 1, Happened: happened, ExternalID: "mail_1"}}
	}
	said := d.now.Add(time.Second)
	d.now = d.now.Add(time.Minute)
	if err := d.once(Event{Changed: d.now.Add(-time.Second), Unread: true}); err != nil {
		t.Fatal(err)
	}
	old := word(1, said, false)
	d.feed(Event{Signal: &old}).noted("look again").review(saga.ReasonInDoubt)
	happened := word(2, said, true) // that it did happen stays true
	after := word(3, d.now.Add(time.Second), false)
	e := *d
	e.st = d.st.clone()
	if e.feed(Event{Signal: &happened}); e.st.Status != saga.Completed {
		t.Errorf("the work is %s", e.st.Status)
	}
	d.now = d.now.Add(2 * time.Minute)
	d.feed(Event{Signal: &after}).wants("act a forward", saga.Running)
}

// "F27: ... Nor does a lookup that finds a step missing take the doubt from those behind it then: a
// person may have had it skipped, and they were armed". Where no signal was unread it does (F26).
func TestF27WhatASkipHadArmed(t *testing.T) {
	for unread, then := range map[bool]string{true: "look b forward", false: "act b forward"} {
		d := begin(t, "a find no-undo\nb find no-undo").fail(saga.Fault).review(saga.ReasonPoison)
		d.skip("").wants("act b forward", saga.Running) // and it happens
		if err := d.rewind(len(d.chain) - 1); err != nil {
			t.Fatal(err)
		}
		d.tick()
		if err := d.once(Event{Changed: d.now, Unread: unread}); err != nil {
			t.Fatal(err)
		}
		wait := func() *desk {
			for d.last.Do.Do == Wait {
				d.due()
			}
			return d
		}
		wait().wants("look a forward", saga.Retrying).found(KindNotFound)
		wait().wants("act a forward", saga.Running).succeed("a1")
		wait()
		d.wants(then, d.st.Status)
	}
}

// "V8: ... a late answer names its key, so none is credited to another revision": not even when the
// attempt that it speaks of was forgotten, and its number given again.
func TestLateAnswerOfAForgottenAttempt(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo").succeed("a1").lose(1).due().succeed("a1").due().found(KindFound, "b1").resolutionIs(saga.Completed)
	late := Signal{Kind: SignalLate, Resolution: saga.Resolution{
		Step: "b", Direction: saga.Forward, Attempt: 1, Happened: true, ExternalID: "b1", StepKey: d.st.Step("b").Forward.Key,
	}}
	d.revise("2").succeed("a2").fail(saga.Unknown)
	if n := d.st.Step("b").Forward.Attempts; n != 1 {
		t.Fatalf("the number of the forgotten attempt is not given again: %d", n)
	}
	d.signal(late).noted("earlier revision").wants("wait", saga.Retrying)
	late.StepKey = d.st.Step("b").Forward.Key
	late.Attempt = d.st.Step("b").Forward.Attempts
	d.signal(late).wants("rest", saga.Completed)
}

// F26: what hung was awake: what its process recorded behind that may be forgotten.
func TestAFailOverBehindWhatHung(t *testing.T) {
	t.Parallel()
	d := begin(t, "make idempotent undo\nmail at-most-once").feed(Event{Hung: "it hangs"}).review(saga.ReasonHung)
	d.succeed("m_1").wants("act mail forward", saga.Running).succeed("mail_1").lose(2)
	if ss := d.st.Step("mail"); ss == nil || ss.Forward.Phase != InDoubt {
		t.Errorf("the mail that may have been sent is %+v", ss)
	}
}
