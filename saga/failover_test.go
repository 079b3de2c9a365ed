package saga

import (
	"testing"
	"time"
)

// lose is a fail-over that forgets the latest n records.
func (d *desk) lose(n int) *desk {
	d.t.Helper()
	if err := d.failover(n); err != nil {
		d.t.Fatal(err)
	}
	return d
}

// "F26: when the database became another one after the work's latest record was written, a live work that was going
// forward and was not asleep then is not trusted: every step that is not done is put in doubt by a record of its own,
// with a deadline as if it had been armed now. Its class decides from there (F11 to F19)".
func TestF26WhatWasForgotten(t *testing.T) {
	t.Run("a receipt is not sent twice", func(t *testing.T) {
		d := begin(t, orderToInvoice).succeed("c").succeed("i").without("m") // the receipt is armed by the record that is lost
		d.tick().wants("act receipt forward", Running)
		d.later(10 * time.Second).lose(1).review(ReasonInDoubt)
		if r := d.chain[4]; r.Kind != KindForgotten || r.Arm != nil {
			t.Errorf("recorded %+v", r)
		}
		d.verdict("mail_1").wants("rest", Completed)
	})
	t.Run("nor invoiced", func(t *testing.T) {
		d := begin(t, orderToInvoice).succeed("c").lose(1) // the tail armed the customer; what is lost armed the invoice
		d.wants("wait", Running).due().wants("act customer forward", Running)
		if want := StepKey(RootKey(order.Saga, order.Work, ""), "customer", Forward, 0); d.key() != want {
			t.Errorf("armed under %s, want %s", d.key(), want)
		}
		d.succeed("c").wants("wait", Retrying).due().wants("look invoice forward", Running)
		d.found(KindFound, "i1").wants("act mark-synced forward", Running).succeed("").review(ReasonInDoubt)
	})
	t.Run("the deadline is as if it had been armed now", func(t *testing.T) {
		d := begin(t, "a find undo timeout=10s settle=20s").lose(0)
		if until := d.st.Step("a").Forward.Unanswered; until != noon.Add(10*time.Second) {
			t.Errorf("unanswered until %s", until)
		}
		d = newDesk(t, "a find undo timeout=10s settle=20s")
		d.busy = true
		d.start()
		d.now = noon.Add(5 * time.Second)
		d.lose(0).wants("wait until 12:00:35", Retrying)
	})
	t.Run("a late answer closes it", func(t *testing.T) {
		d := begin(t, "a idempotent no-undo\nmail at-most-once no-undo").without("a1")
		d.lose(0).review(ReasonInDoubt).late("mail", "mail_1").wants("rest", Completed)
	})
	t.Run("a window is counted from what is known", func(t *testing.T) {
		d := begin(t, "a idempotent no-undo\nb keyed=10m undo").without("a1")
		d.later(8 * time.Minute).lose(0) // it may have been armed right behind the tail
		d.wants("act b forward", Running).fail(Unknown)
		if d.later(90 * time.Second).tick(); d.st.Status != Review {
			t.Errorf("sent again past the window: %s", d.last.Do)
		}
	})
	t.Run("under the key that a person allowed", func(t *testing.T) {
		d := begin(t, "a at-most-once undo").fail(Unknown)
		d.busy = true
		d.later(2 * time.Minute).verdict("")
		d.busy = false
		d.lose(0).review(ReasonInDoubt)
		if e := d.st.Step("a").Forward; e.Key != StepKey(RootKey(order.Saga, order.Work, ""), "a", Forward, 1) {
			t.Errorf("the step is %+v", e)
		}
	})
	t.Run("of a later revision", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo\nb find undo\nmail at-most-once once no-undo").through().revise("2").without("a2").lose(0)
		d.wants("wait", Retrying).due().wants("look b forward", Running)
		if want := StepKey(RootKey(order.Saga, order.Work, "2"), "b", Forward, 0); d.st.Step("b").Forward.Key != want || d.told() != "b-1" {
			t.Errorf("b is %+v", d.st.Step("b"))
		}
		d.found(KindNotFound).wants("act b forward", Running).succeed("b2").wants("rest", Completed)
	})
}

// "F26: ... a live work that was going forward and was not asleep then".
func TestF26Untouched(t *testing.T) {
	for where, d := range map[string]*desk{
		"completed":   begin(t, "a idempotent undo").succeed("1"),
		"compensated": begin(t, "a idempotent undo").fail(Refused),
		"in review":   begin(t, "a at-most-once no-undo\nb at-most-once no-undo").fail(Unknown).review(ReasonInDoubt),
		"asleep":      begin(t, "a find undo\nb at-most-once no-undo").fail(Unknown),
		"going back":  begin(t, "a idempotent undo\nb find undo\nc find undo").succeed("1").succeed("2").fail(Refused),
	} {
		steps, n := string(dump(t, d.st.Steps)), len(d.chain)
		d.later(time.Second).lose(0)
		if got := string(dump(t, d.st.Steps)); got != steps || len(d.chain) != n {
			t.Errorf("%s: %d records more, steps\n%s\nbefore\n%s", where, len(d.chain)-n, got, steps)
		}
	}
	t.Run("asleep, and due before the fail-over", func(t *testing.T) {
		begin(t, "a idempotent undo\nb at-most-once no-undo").fail(Unsent).later(time.Minute).lose(0).wants("act a forward", Running).
			succeed("1").review(ReasonInDoubt)
	})
	t.Run("what is done stays done", func(t *testing.T) {
		d := begin(t, "a idempotent undo\nb find undo").succeed("1").lose(0)
		if ss := d.st.Step("a"); ss.Forward.Phase != Done || !ss.Forward.Unanswered.IsZero() {
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
		return d.lose(0).wants("act a forward", Running)
	}
	t.Run("refused before it", func(t *testing.T) { at(t).fail(Refused).review(ReasonAfterPivot) })
	t.Run("given up before it", func(t *testing.T) { at(t).fail(Unsent).review(ReasonExhausted) })
	t.Run("with the attempt open", func(t *testing.T) { begin(t, steps).lose(0).due().review(ReasonExhausted) })
	t.Run("cancelled", func(t *testing.T) { at(t).fail(Fault).cancel().noted("too late").review(ReasonPoison) })
}
