package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// The definition of the user's example, and what most tests are about.
const orderToInvoice = `
	customer    idempotent no-undo
	invoice     find undo
	mark-synced idempotent undo pivot
	receipt     at-most-once
`

// "F1: nothing is sent that was not armed by a stored record with its key and deadline. The step
// that is armed is the first that is not done, and one attempt is open at a time".
func TestF1ArmedBeforeSent(t *testing.T) {
	d := begin(t, orderToInvoice).wants("act customer forward", saga.Running)
	want := Dispatch{Step: "customer", Direction: saga.Forward, Attempt: 1, Budget: saga.DefaultTimeout,
		Key: StepKey(RootKey(order.Saga, order.Work, ""), "customer", saga.Forward, 0)}
	if got := *d.armed(); got != want {
		t.Errorf("armed %+v\nwant  %+v", got, want)
	}
	if e := d.st.Step("customer").Forward; e.Phase != Started || e.Deadline != noon.Add(saga.DefaultTimeout) {
		t.Errorf("the step is %s until %s", e.Phase, e.Deadline)
	}
	// while it is open, nothing else moves
	d.tick().wants("wait until 12:00:30", saga.Running)
	if d.last.Record != nil {
		t.Errorf("a record while an attempt is open: %+v", d.last.Record)
	}
}

// "F2: no step is armed until its send slot is in hand. Without it the record says what was
// learned, and the step is armed by a record of its own".
func TestF2NoArmWithoutSlot(t *testing.T) {
	d := begin(t, orderToInvoice)
	d.busy = true
	d.succeed("cus_7").wants("slot invoice forward", saga.Running)
	if r := d.tail(); r.Kind != KindDone || r.Dispatch != nil || r.ExternalID != "cus_7" {
		t.Errorf("the record without a slot: %+v", r)
	}
	if d.st.Step("customer").Forward.Phase != Done {
		t.Error("what was learned was not recorded")
	}
	n := len(d.chain)
	d.tick().wants("slot invoice forward", saga.Running) // asking again records nothing
	if len(d.chain) != n {
		t.Errorf("waiting for a slot made a record: %+v", d.tail())
	}
	d.busy = false
	d.tick().wants("act invoice forward", saga.Running)
	if r := d.tail(); r.Kind != KindDispatched || r.Dispatch == nil || r.Dispatch.Step != "invoice" {
		t.Errorf("the record of the arm: %+v", r)
	}
}

// "F2": the same holds for the start, a resend and an undo.
func TestF2NoArmWithoutSlotAnywhere(t *testing.T) {
	d := newDesk(t, "a idempotent undo\nb idempotent undo")
	d.busy = true
	d.start().wants("slot a forward", saga.Running)
	d.busy = false
	d.tick().fail(saga.Unsent)
	d.busy = true
	d.due().wants("slot a forward", saga.Retrying)
	d.busy = false
	d.tick().succeed("1")
	d.busy = true
	d.fail(saga.Refused).wants("slot a undo", saga.Compensating)
	if d.tail().Dispatch != nil {
		t.Error("an undo was armed without a slot")
	}
	d.busy = false
	d.tick().wants("act a undo", saga.Compensating)
}

// "F3: success makes the step done, with external id and result. The same record may arm the next
// step; after the last one the work is completed." And R1: a saga of four steps that goes well is
// five records.
func TestF3Success(t *testing.T) {
	d := begin(t, orderToInvoice)
	d.succeed("cus_7").wants("act invoice forward", saga.Running)
	if r := d.tail(); r.Kind != KindDone || r.Step != "customer" || r.Dispatch.Step != "invoice" {
		t.Errorf("one record for what was learned and what it arms: %+v", r)
	}
	d.succeed("inv_1").succeed("").succeed("mail_1").wants("rest", saga.Completed)
	if len(d.chain) != 5 {
		t.Errorf("%d records, want 5", len(d.chain))
	}
	ss := d.st.Step("invoice")
	if ss.ExternalID != "inv_1" || string(ss.Output) != `{"id":"inv_1"}` || ss.Evidence != KindDone {
		t.Errorf("the result: %+v", ss)
	}
}

// "F4: provably not sent, and no earlier attempt may have happened: ready again after the backoff,
// whatever the step said about repeating".
func TestF4NotSent(t *testing.T) {
	for _, repeat := range []string{"idempotent", "keyed=1h", "find", "at-most-once", "at-most-once lookup"} {
		t.Run(repeat, func(t *testing.T) {
			d := begin(t, "a "+repeat+" no-undo")
			key := d.key()
			d.fail(saga.Unsent).wants("wait", saga.Retrying)
			if e := d.st.Step("a").Forward; e.Phase != Ready || !e.OutcomeUnknownUntil.IsZero() {
				t.Errorf("the step is %+v", e)
			}
			if d.tail().Kind != KindNotSent {
				t.Errorf("recorded as %s", d.tail().Kind)
			}
			d.due().wants("act a forward", saga.Running)
			if a := d.armed(); a.Attempt != 2 || a.Key != key {
				t.Errorf("armed %+v, want attempt 2 under the same key", a)
			}
		})
	}
}

// "F5: provably not sent, but an earlier attempt may have happened: in doubt".
func TestF5NotSentAfterMaybe(t *testing.T) {
	for _, repeat := range []string{"idempotent", "keyed=1h", "keyed=1h lookup"} {
		t.Run(repeat, func(t *testing.T) {
			d := begin(t, "a "+repeat+" no-undo").fail(saga.Unknown)
			maybe := d.st.Step("a").Forward.OutcomeUnknownUntil
			d.due().fail(saga.Unsent)
			if e := d.st.Step("a").Forward; e.Phase != InDoubt || e.OutcomeUnknownUntil != maybe {
				t.Errorf("the step is %+v, want in doubt since %s", e, maybe)
			}
		})
	}
}

// An action that did not heed its deadline has its settle time from its return. One that was in time, or lost, has it from
// its deadline, or from the end of its process.
func TestSettlesFromALateReturn(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Hour: time.Hour} {
		d := begin(t, "a find no-undo")
		armed := d.now
		d.now = d.now.Add(took)
		d.fail(saga.Unknown)
		if until := d.st.Step("a").Forward.OutcomeUnknownUntil.Sub(armed); until < want || until > want+time.Second {
			t.Errorf("after %s what it did is unknown until %s behind its arming, want %s", took, until, want)
		}
	}
}

// "F6: refused, up to and including the pivot, and no earlier attempt may have happened: the saga
// turns to compensation, and the step is owed nothing".
func TestF6Refused(t *testing.T) {
	t.Run("the first step", func(t *testing.T) {
		d := begin(t, orderToInvoice).fail(saga.Refused).wants("rest", saga.Compensated)
		if len(d.chain) != 2 {
			t.Errorf("%d records, want 2", len(d.chain))
		}
	})
	t.Run("before the pivot", func(t *testing.T) {
		begin(t, "a find undo\nb find undo\nc idempotent pivot").succeed("1").fail(saga.Refused).wants("act a undo", saga.Compensating)
	})
	t.Run("at the pivot", func(t *testing.T) {
		begin(t, orderToInvoice).succeed("cus_7").succeed("inv_1").fail(saga.Refused).wants("act invoice undo", saga.Compensating)
	})
	t.Run("after not-sent attempts", func(t *testing.T) {
		begin(t, "a find undo\nb find undo").succeed("1").fail(saga.Unsent).due().fail(saga.Unsent).due().
			fail(saga.Refused).wants("act a undo", saga.Compensating)
	})
}

// "F7: refused, but an earlier attempt may have happened: the saga turns, and the step is owed an
// undo. A refusal of attempt k proves nothing about attempt k−1".
func TestF7RefusedAfterMaybe(t *testing.T) {
	for _, at := range []string{"undo", "undo pivot"} {
		t.Run(at, func(t *testing.T) {
			d := begin(t, "a idempotent undo\nb idempotent "+at).succeed("1").fail(saga.Unknown).due().fail(saga.Refused)
			d.wants("wait", saga.Compensating).due() // C4
			d.wants("act b undo", saga.Compensating).succeed("").wants("act a undo", saga.Compensating)
		})
	}
	t.Run("a pivot that needs no undo", func(t *testing.T) {
		begin(t, "a idempotent undo\nb idempotent pivot no-undo").succeed("1").fail(saga.Unknown).due().
			fail(saga.Refused).wants("act a undo", saga.Compensating)
	})
}

// "F8: refused behind the pivot: review. There is no automatic way back".
func TestF8RefusedBehindPivot(t *testing.T) {
	d := begin(t, orderToInvoice).succeed("cus_7").succeed("inv_1").succeed("")
	d.fail(saga.Refused).review(saga.ReasonAfterPivot)
	d.wait(48 * time.Hour).review(saga.ReasonAfterPivot)
	if d.st.Compensating {
		t.Error("the work turned behind its pivot")
	}
}

// "F9: every other end of an attempt leaves the step in doubt. Unknown is not failed".
func TestF9Unknown(t *testing.T) {
	for _, class := range []saga.Class{saga.Unknown, "", "no such class"} {
		d := begin(t, "a find undo").fail(class)
		e := d.st.Step("a").Forward
		if d.tail().Kind != KindUnknown || e.Phase != InDoubt || e.OutcomeUnknownUntil != e.Deadline {
			t.Errorf("class %q: recorded as %s, the step is %+v", class, d.tail().Kind, e)
		}
		d.wants("wait", saga.Retrying)
	}
}

// "F10: an open attempt that this process does not have in hand is left alone until its deadline.
// Then it is lost, and the step in doubt".
func TestF10Lost(t *testing.T) {
	d := begin(t, "a find undo")
	d.lag = time.Second // settled and over are asked of the earliest time
	d.wait(30*time.Second).wants("wait until 12:00:30", saga.Running)
	if d.last.Record != nil {
		t.Fatalf("lost before its deadline: %+v", d.last.Record)
	}
	d.wait(time.Second)
	if r := d.tail(); r.Kind != KindLost || r.Step != "a" || r.Attempt != 1 || r.ErrorClass != saga.Unknown {
		t.Errorf("recorded %+v", r)
	}
	if d.st.Step("a").Forward.Phase != InDoubt {
		t.Error("the step is not in doubt")
	}
}

// "F10": a late answer that lands before anybody closed the attempt is an answer.
func TestF10LateAnswerLands(t *testing.T) {
	d := begin(t, "a find undo").tick()
	d.now = d.now.Add(time.Minute) // past the deadline, but nobody decided
	d.succeed("1").wants("rest", saga.Completed)
}

// "When the session that armed it is over before (`Event.Over`), it is lost at once": what may be
// repeated is, two seconds after it was armed at the earliest, and what was on its way settles from
// there.
func TestF10Over(t *testing.T) {
	d := begin(t, "a idempotent undo")
	d.over = true
	d.wait(time.Second).wants("wait until 12:00:02", saga.Retrying).due().wants("act a forward", saga.Running)
	d = begin(t, "a keyed=1h undo")
	d.over = true
	d.wait(5*time.Second).wants("act a forward", saga.Running)
	if r := d.tail(); r.Kind != KindLost || r.Dispatch.Attempt != 2 {
		t.Errorf("one record says lost and armed again: %+v", r)
	}
	d = begin(t, "a find undo")
	d.over = true
	d.wait(5*time.Second).wants("wait until 12:00:35", saga.Retrying)
	d = begin(t, "a find undo")
	d.over = true
	d.wait(time.Minute).wants("look a forward", saga.Running) // it was not awaited past its deadline
	d = begin(t, "a at-most-once")
	d.over = true
	d.wait(5 * time.Second).review(saga.ReasonInDoubt)
}

// What is repeated beside a late twin of itself is not undone, and gets no other content, before the
// twin has settled: "C4", "V8".
func TestF10TheTwinSettles(t *testing.T) {
	d := begin(t, "a idempotent undo\nb idempotent undo pivot")
	d.over = true
	d.wait(5*time.Second).wants("act a forward", saga.Running)
	d.over = false
	d.succeed("1").wants("act b forward", saga.Running)
	d.fail(saga.Refused).wants("wait until 12:00:35", saga.Compensating)

	d = beginAt(t, "a idempotent undo")
	d.over = true
	d.wait(5*time.Second).wants("act a forward", saga.Running)
	d.over = false
	d.succeed("1").wants("rest", saga.Completed)
	d.revise("2").wants("wait until 12:00:35", saga.Retrying)
}

// "F11: in doubt and Idempotent, or Keyed inside the window: armed again after the backoff, same
// key".
func TestF11Resend(t *testing.T) {
	for _, repeat := range []string{"idempotent", "idempotent lookup", "keyed=1h", "keyed=1h lookup"} {
		for _, end := range []string{"unknown", "lost"} {
			t.Run(repeat+" "+end, func(t *testing.T) {
				d := begin(t, "a "+repeat+" undo")
				key := d.key()
				if end == "lost" {
					d.crash()
				} else {
					d.fail(saga.Unknown).wants("wait", saga.Retrying).due()
				}
				d.wants("act a forward", saga.Running)
				if a := d.armed(); a.Key != key || a.Attempt != 2 || a.Reissue != 0 {
					t.Errorf("armed %+v", a)
				}
			})
		}
	}
}

// "F12: Keyed past the window: as Find, else review".
func TestF12PastWindow(t *testing.T) {
	begin(t, "a keyed=1h undo").wait(time.Hour).review(saga.ReasonInDoubt)

	d := begin(t, "a keyed=1h lookup undo")
	key := d.key()
	d.wait(time.Hour).wants("look a forward", saga.Running).found(KindNotFound).wants("act a forward", saga.Running)
	if a := d.armed(); a.Reissue != 1 || a.Key == key {
		t.Errorf("armed %+v; the old key is forgotten and needs a reissue", a)
	}
	// the window of the new key counts from its own first arm
	d.fail(saga.Unknown).due().wants("act a forward", saga.Running)
	if a := d.armed(); a.Reissue != 1 {
		t.Errorf("armed %+v", a)
	}
}

// "The window is asked of the latest time it may be, and a whole attempt must fit into what is
// left, with the time it takes to settle".
func TestF12WindowIsAskedOfLatest(t *testing.T) {
	// The window of 2 h ends at 14:00. Five minutes (ttl/20, at most 5 m) and 10 s to settle are
	// its margin, an attempt takes 30 s: that leaves 13:54:20.
	for _, c := range []struct {
		at   time.Duration
		lag  time.Duration
		want string
	}{
		{114*time.Minute + 19*time.Second, 0, "act a forward"},
		{114*time.Minute + 20*time.Second, 0, "rest"},
		{114*time.Minute + 19*time.Second, time.Second, "rest"},
		{114*time.Minute + 18*time.Second, time.Second, "act a forward"},
	} {
		d := begin(t, "a keyed=2h undo timeout=30s settle=10s")
		d.lag = c.lag
		d.wait(c.at)
		if got := d.last.Do.String(); got != c.want {
			t.Errorf("at %s, known to %s: %q, want %q", c.at, c.lag, got, c.want)
		}
	}
}

// "F12": a request that lingers takes effect as late as its settle time after the deadline (saga/A2).
// The key must be remembered then, so a short window is not trusted to its end.
func TestF12WindowCoversSettling(t *testing.T) {
	d := begin(t, "a keyed=5m undo timeout=30s settle=1m")
	d.wait(3*time.Minute+14*time.Second).wants("act a forward", saga.Running)
	d = begin(t, "a keyed=5m undo timeout=30s settle=1m")
	d.wait(3*time.Minute + 16*time.Second).review(saga.ReasonInDoubt)
}

// "F13: no lookup is made before every unanswered attempt has settled: the earliest time it may be
// is at or past the latest deadline plus the settle time".
func TestF13SettleBeforeLookup(t *testing.T) {
	d := begin(t, "a find undo timeout=10s settle=20s").fail(saga.Unknown).wants("wait until 12:00:30", saga.Retrying)
	d.lag = 2 * time.Second
	d.now = noon.Add(32*time.Second - time.Millisecond) // Earliest 12:00:29.999, Latest 12:00:33.999
	d.tick().wants("wait until 12:00:30", saga.Retrying)
	d.wait(time.Millisecond).wants("look a forward", saga.Running)
}

// "F13": with several unanswered attempts, the latest counts; an answered one does not.
func TestF13LatestDeadlineCounts(t *testing.T) {
	d := begin(t, "a idempotent lookup undo settle=1m").fail(saga.Unknown).wait(10 * time.Second).fail(saga.Unknown).wait(10 * time.Second)
	want := d.st.Step("a").Forward.Deadline.Add(-10 * time.Second)
	d.wants("act a forward", saga.Running).fail(saga.Unsent)
	if got := d.st.Step("a").Forward.OutcomeUnknownUntil; got != want {
		t.Errorf("unanswered until %s, want %s: the second attempt's deadline", got, want)
	}
	d.cancel().wants("wait until 12:01:40", saga.Compensating).due().wants("look a forward", saga.Compensating)
}

// "F14: a lookup that found it makes the step done; the finding is adopted with its external id".
func TestF14Found(t *testing.T) {
	for _, repeat := range []string{"find no-undo", "at-most-once lookup no-undo"} {
		d := begin(t, "a "+repeat+"\nb at-most-once no-undo").fail(saga.Unknown).due().found(KindFound, "inv_9").wants("act b forward", saga.Running)
		ss := d.st.Step("a")
		if ss.Forward.Phase != Done || ss.ExternalID != "inv_9" || ss.Evidence != KindFound || !ss.Forward.OutcomeUnknownUntil.IsZero() {
			t.Errorf("%s: %+v", repeat, ss)
		}
		if in := d.st.Invocation(d.last.Do); in.Results["a"].ExternalID != "inv_9" {
			t.Errorf("%s: the next step sees %+v", repeat, in.Results)
		}
	}
}

// "F15: a lookup that found it half-made arms the next attempt with what was found, to finish it".
func TestF15Unfinished(t *testing.T) {
	d := begin(t, "a find undo")
	key := d.key()
	d.fail(saga.Unknown).due().found(KindUnfinished, "inv_9").wants("act a forward", saga.Running)
	if a := d.armed(); a.Key != key || a.Attempt != 2 {
		t.Errorf("armed %+v", a)
	}
	if in := d.st.Invocation(d.last.Do); in.Unfinished == nil || in.Unfinished.ExternalID != "inv_9" {
		t.Errorf("the attempt that finishes it gets %+v", in.Unfinished)
	}
	// it is still there after an attempt that was not sent
	d.fail(saga.Unsent).due().wants("act a forward", saga.Running)
	if d.st.Invocation(d.last.Do).Unfinished == nil {
		t.Error("what was found is forgotten")
	}
	d.succeed("inv_9").wants("rest", saga.Completed)
	if d.st.Step("a").Unfinished != nil {
		t.Error("done, and still unfinished")
	}
}

// "F16: a lookup that found nothing allows the next attempt, after which the step is as never
// sent".
func TestF16NotFound(t *testing.T) {
	d := begin(t, "a find undo\nb find undo").succeed("1")
	key := d.key()
	d.fail(saga.Unknown).due().found(KindNotFound).wants("act b forward", saga.Running)
	if a := d.armed(); a.Key != key || a.Attempt != 2 {
		t.Errorf("armed %+v", a)
	}
	d.fail(saga.Refused).wants("act a undo", saga.Compensating) // F6, not F7: nothing may have happened
}

// "F17: except for AtMostOnce: there a lookup is evidence and never a licence to send again.
// Review".
func TestF17NotFoundIsNoLicence(t *testing.T) {
	d := begin(t, "a at-most-once lookup undo").fail(saga.Unknown).due().found(KindNotFound).review(saga.ReasonInDoubt)
	d.wait(time.Hour).review(saga.ReasonInDoubt)
	// and not by way of another parking either
	d.feed(Event{Invalid: 2}).review(saga.ReasonPoison).signal(Signal{Kind: SignalWake}).review(saga.ReasonPoison)
	// a person may say so
	d.resolution("").wants("act a forward", saga.Running)
	if a := d.armed(); a.Reissue != 1 {
		t.Errorf("armed %+v", a)
	}
}

// "F17": nothing was there, so a cancel in that review owes no undo (C3).
func TestF17NotFoundThenCancel(t *testing.T) {
	begin(t, "a at-most-once lookup undo").fail(saga.Unknown).due().found(KindNotFound).cancel().wants("rest", saga.Compensated)
}

// "F18: a lookup that cannot tell is repeated after a backoff, at most 12 times in a row. Then, or
// as soon as more than one was found: review, with all ids".
func TestF18CannotTell(t *testing.T) {
	d := begin(t, "a find undo").fail(saga.Unknown).due()
	for range maxLookups - 1 {
		d.found(KindUnclear).wants("wait", saga.Retrying).due().wants("look a forward", saga.Running)
	}
	d.found(KindUnclear).review(saga.ReasonInDoubt)

	// in a row: an answer in between counts from zero again
	d = begin(t, "a find undo").fail(saga.Unknown).due().found(KindUnclear).due().found(KindNotFound).fail(saga.Unknown).due()
	for range maxLookups - 1 {
		d.found(KindUnclear).wants("wait", saga.Retrying).due()
	}
	d.found(KindUnclear).review(saga.ReasonInDoubt)
}

func TestF18Several(t *testing.T) {
	d := begin(t, "a find undo").fail(saga.Unknown).due().found(KindSeveral, "inv_1", "inv_2").review(saga.ReasonInDoubt)
	for _, id := range []string{"inv_1", "inv_2"} {
		if !strings.Contains(d.st.Note, id) {
			t.Errorf("the review says %q, without %s", d.st.Note, id)
		}
	}
	// also of those that were there before the first request
	before := begin(t, "a find first undo").found(KindSeveral, "inv_1", "inv_2").review(saga.ReasonInDoubt).cancel().review(saga.ReasonInDoubt)
	before.resolution("").resolutionIs(saga.Compensated)
	// which one stays is a person's choice, on the way back too
	d.cancel().review(saga.ReasonInDoubt)
	d.resolution("inv_2").wants("look a undo", saga.Compensating).found(KindFound, "inv_2").wants("act a undo", saga.Compensating) // C5
	if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "inv_2" {
		t.Errorf("the undo gets %+v", in.Undoing)
	}
}

// "F18": an answer of no known kind cannot tell.
func TestF18ZeroFinding(t *testing.T) {
	d := begin(t, "a find undo").fail(saga.Unknown).due()
	d.found("").wants("wait", saga.Retrying)
	if d.tail().Kind != KindUnclear {
		t.Errorf("recorded as %s", d.tail().Kind)
	}
}

// "F19: AtMostOnce in doubt without a lookup: review".
func TestF19AtMostOnce(t *testing.T) {
	begin(t, "a at-most-once no-undo").fail(saga.Unknown).review(saga.ReasonInDoubt)
	d := begin(t, "a at-most-once no-undo").tick()
	d.due().review(saga.ReasonInDoubt)
	if d.tail().Kind != KindLost {
		t.Errorf("recorded as %s", d.tail().Kind)
	}
}
