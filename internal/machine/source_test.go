package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// The order of the user's example, and a newer version of its definition that sends no mail.
const (
	withoutMail = "customer idempotent no-undo\ninvoice find undo\nmark-synced idempotent undo pivot"
	mailLast    = withoutMail + "\nmail at-most-once no-undo"
)

// outgrown returns a desk whose work was done as was says, and begins again at "2" with a newer
// version of the definition. What a step made that the newer one does not have still stands.
func outgrown(t tester, was, is string) *desk {
	t.Helper()
	next, err := define(order.Saga, 2, is)
	if err != nil {
		t.Fatal(err)
	}
	d := beginAt(t, was).through()
	d.next = next
	return d.feed(d.news("2", 2, false)).runs("2", "")
}

// keeps posts a person's word that a cancelled work stays as it is.
func (d *desk) keeps() *desk { d.t.Helper(); return d.signal(Signal{Kind: SignalKeep, Actor: "anna"}) }

// "V12: a cancel by the source turns the work at once, in doubt or not".
func TestV12GoneBeforeThePivot(t *testing.T) {
	for _, c := range []struct {
		where string
		reach func(*desk) *desk
		want  string
	}{
		{"between two steps", func(d *desk) *desk { return d.succeed("c1").without("i1") }, "act invoice undo"},
		{"during a backoff", func(d *desk) *desk { return d.succeed("c1").succeed("i1").fail(saga.Unsent) }, "act invoice undo"},
		{"in doubt", func(d *desk) *desk { return d.succeed("c1").fail(saga.Unknown) }, "wait"},
		{"in review", func(d *desk) *desk { return d.succeed("c1").succeed("i1").fail(saga.Fault) }, "act invoice undo"},
		{"in doubt, and a newer version waits", func(d *desk) *desk { return d.succeed("c1").fail(saga.Unknown).revise("2") }, "wait"},
	} {
		t.Run(c.where, func(t *testing.T) {
			d := c.reach(beginAt(t, mailLast)).gone("3").wants(c.want, saga.Compensating).runs("1", "")
			if r := d.turning(); r.Kind != KindCancelled || r.Revision != "3" || !strings.Contains(r.Said(), "source") || d.st.NewestRevision != "3" {
				t.Errorf("recorded %+v, heard %s", r, d.st.NewestRevision)
			}
			if d.last.Do.Do == Wait {
				d.due().found(KindFound, "i1")
			}
			d.succeed("").wants("rest", saga.Compensated)
			d.revise("2").noted("not newer").resolutionIs(saga.Compensated) // what waited is older than the cancel
		})
	}
	t.Run("on the way back it is heard, and nothing begins any more", func(t *testing.T) {
		d := beginAt(t, mailLast).succeed("c1").succeed("i1").fail(saga.Refused).fail(saga.Unknown).revise("2").runs("1", "2")
		d.gone("3").runs("1", "").due().succeed("").wants("rest", saga.Compensated)
	})
	t.Run("in a review of the way back, which stays", func(t *testing.T) {
		d := beginAt(t, mailLast).succeed("c1").succeed("i1").fail(saga.Refused).fail(saga.Refused).review(saga.ReasonUndoFailed)
		note := d.st.Note
		d.gone("2").review(saga.ReasonUndoFailed)
		if d.st.Note != note || d.st.NewestRevision != "2" {
			t.Errorf("the review is now about %q, and %q was heard", d.st.Note, d.st.NewestRevision)
		}
	})
	t.Run("in a review that was only for what waits, which ends", func(t *testing.T) {
		review := func() *desk {
			return beginAt(t, "a at-most-once no-undo").cancelAfter(saga.Unknown).revise("2").runs("1", "2").review(saga.ReasonInDoubt)
		}
		review().gone("3").runs("1", "").wants("rest", saga.Compensated)
		review().cancel().runs("1", "").wants("rest", saga.Compensated) // S4
	})
	t.Run("of what is compensated", func(t *testing.T) {
		d := beginAt(t, mailLast).fail(saga.Refused).gone("2").resolutionIs(saga.Compensated)
		if d.tail().Kind != KindCancelled || d.st.NewestRevision != "2" {
			t.Errorf("recorded %+v", d.tail())
		}
		d.revise("3").runs("3", "").wants("act customer forward", saga.Running)
	})
	t.Run("of a work that was never sent", func(t *testing.T) {
		d := newDesk(t, mailLast)
		d.busy = true
		d.startAt("1").gone("2").wants("rest", saga.Compensated)
	})
}

// "V12": a work without a pivot has a way back behind its end, too.
func TestV12GoneWithoutAPivot(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo\nc find no-undo").through().gone("2").wants("act b undo", saga.Compensating)
	d.succeed("").wants("act a undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
}

// "V12: a cancel by the source turns the work at once, in doubt or not and behind the pivot or its
// end, too".
func TestV12GoneBehindThePivot(t *testing.T) {
	const steps = "customer idempotent no-undo\ninvoice find undo\nmark-synced idempotent undo pivot\nreport find undo\nmail at-most-once no-undo"
	t.Run("completed", func(t *testing.T) {
		d := beginAt(t, steps).through().gone("2").wants("act report undo", saga.Compensating)
		if r := d.turning(); r.Kind != KindCancelled || r.Revision != "2" || r.Dispatch != nil {
			t.Errorf("it is turned by %+v", r)
		}
		for _, step := range []string{"report", "mark-synced", "invoice"} {
			if in := d.st.Invocation(d.last.Do); in.Step != step || in.Undoing == nil || in.Undoing.ExternalID != step+"-1" {
				t.Errorf("the undo of %s gets %+v", in.Step, in.Undoing)
			}
			d.succeed("")
		}
		d.wants("rest", saga.Compensated)
	})
	t.Run("waiting to repeat what was not sent", func(t *testing.T) {
		beginAt(t, steps).succeed("c").succeed("i").succeed("m").fail(saga.Unsent).gone("2").wants("act mark-synced undo", saga.Compensating)
	})
	t.Run("in review behind the pivot", func(t *testing.T) {
		beginAt(t, steps).succeed("c").succeed("i").succeed("m").fail(saga.Refused).review(saga.ReasonAfterPivot).gone("2").wants("act mark-synced undo", saga.Compensating)
	})
	t.Run("the pivot in doubt", func(t *testing.T) {
		d := beginAt(t, steps).succeed("c").succeed("i").fail(saga.Unknown).gone("2").wants("wait until 12:01:00", saga.Compensating) // C4
		d.due().wants("act mark-synced undo", saga.Compensating)
	})
	t.Run("in doubt behind the pivot", func(t *testing.T) {
		d := beginAt(t, steps).succeed("c").succeed("i").succeed("m").fail(saga.Unknown).gone("2").wants("wait", saga.Compensating)
		d.due().wants("look report forward", saga.Compensating).found(KindNotFound).wants("act mark-synced undo", saga.Compensating)
	})
	t.Run("restored on the way back", func(t *testing.T) {
		d := beginAt(t, steps).through().gone("2").fail(saga.Unsent).revise("3").runs("1", "3").due().succeed("").succeed("").succeed("")
		d.runs("3", "").wants("act customer forward", saga.Running)
	})
	t.Run("an earlier revision was behind the pivot", func(t *testing.T) {
		d := beginAt(t, steps).through().revise("2").succeed("c2").fail(saga.Unsent).gone("3").wants("act report undo", saga.Compensating)
		d.succeed("").succeed("").wants("act invoice undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	})
}

// "V13: not so behind the pivot when a step stands that this version of the definition does not
// have ... Then the cancel waits for a boundary as a newer version does".
func TestV13GoneInDoubt(t *testing.T) {
	const steps = "invoice find undo\nmark-synced idempotent undo pivot\nletter find"
	doubt := func(t *testing.T) *desk {
		t.Helper()
		d := outgrown(t, steps+"\nmail at-most-once", steps).succeed("i2").succeed("m2").fail(saga.Unknown)
		return d.gone("3").runs("2", "3").wants("wait until 12:01:00", saga.Retrying)
	}
	t.Run("it stands", func(t *testing.T) { doubt(t).due().found(KindFound, "l1").review(saga.ReasonConflict) })
	t.Run("it does not stand, and the mail of the first version does", func(t *testing.T) {
		doubt(t).due().found(KindNotFound).review(saga.ReasonConflict)
	})
	t.Run("restored while it waits", func(t *testing.T) {
		d := doubt(t).revise("4").runs("2", "4").due().found(KindFound, "l1").runs("4", "").wants("act invoice forward", saga.Running)
		d.succeed("i4").succeed("m4").succeed("l4").wants("rest", saga.Completed)
	})
	t.Run("before the pivot may have happened it turns at once", func(t *testing.T) {
		d := outgrown(t, "mail idempotent\np idempotent undo pivot", "a find undo\np idempotent undo pivot")
		d.st.Step("p").Previous = nil // as if the first version had ended in front of it
		d.fail(saga.Unknown).gone("3").runs("2", "").wants("wait", saga.Compensating)
	})
}

// "V14: there the work goes to review, conflict. A resolution that the undo of the step at issue
// happened by hand leads on, to the next such step or to the undos of the others".
func TestV14MadeGoodByHand(t *testing.T) {
	const now = "invoice find undo\nmark-synced idempotent undo pivot"
	d := outgrown(t, now+"\nmail at-most-once\nparcel at-most-once", now).through().gone("3").review(saga.ReasonConflict)
	if !strings.Contains(d.st.Note, "source") || len(d.undone()) != 0 || d.st.Compensating {
		t.Errorf("parked with %q; undone %v", d.st.Note, d.undone())
	}
	for _, step := range []string{"parcel", "mail"} {
		ss, dir := d.review(saga.ReasonConflict).st.Issue(d.spec)
		if ss == nil || ss.Name != step || dir != saga.Undo {
			t.Fatalf("the review is about %+v %s, want %s", ss, dir, step)
		}
		choices := Choices(d.spec, d.st, time.Time{})
		if next := Next(d.spec, d.st); !strings.Contains(next, `step "`+step+`"`) || len(choices) != 2 || choices[0].Says != SayHappenedNoID || choices[1].Says != SayKeep {
			t.Errorf("next: %s; it takes %+v", next, choices)
		}
		d.signal(Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: step, Direction: saga.Undo}}).noted("stands until").review(saga.ReasonConflict)
		d.signal(Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: "invoice", Direction: saga.Undo, Happened: true}}).noted("not about").review(saga.ReasonConflict)
		d.resolution("letter of apology")
	}
	if got := d.turning(); got.Kind != KindCancelled || got.Revision != "3" {
		t.Errorf("it is turned by %+v", got)
	}
	d.wants("act mark-synced undo", saga.Compensating).succeed("").wants("act invoice undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	if ss := d.st.Step("mail"); ss.Undo.Phase != Done {
		t.Errorf("the mail is %+v", ss)
	}
	t.Run("and restored afterwards, it is done again", func(t *testing.T) {
		d.revise("4").wants("act invoice forward", saga.Running).succeed("i4").succeed("").wants("rest", saga.Completed)
	})
}

// "V14: ... To keep sets the cancel aside, and the work goes on as before".
func TestV14Kept(t *testing.T) {
	d := outgrown(t, mailLast, withoutMail).through().gone("3").review(saga.ReasonConflict).keeps().wants("rest", saga.Completed).runs("2", "")
	if r := d.tail(); r.Kind != KindResumed || !strings.Contains(r.Said(), "anna") || len(d.undone()) != 0 {
		t.Errorf("recorded %+v, undone %v", r, d.undone())
	}
	d.gone("3").noted("not newer").resolutionIs(saga.Completed)
	d.keeps().noted("not in review for a conflict").resolutionIs(saga.Completed)
	d.gone("4").review(saga.ReasonConflict) // a newer cancel is a new question
	const is = "a find undo\np idempotent pivot\nr find"
	t.Run("in the middle of the work", func(t *testing.T) {
		d := outgrown(t, is+"\ns find", is).succeed("a").succeed("p").fail(saga.Unsent).gone("3").review(saga.ReasonConflict)
		d.keeps().wants("wait", saga.Retrying).due().wants("act r forward", saga.Running)
	})
	t.Run("in a review of something else, which comes back", func(t *testing.T) {
		d := outgrown(t, is+"\ns find", is).succeed("a").succeed("p").fail(saga.Refused).review(saga.ReasonAfterPivot)
		d.keeps().noted("not in review for a conflict").review(saga.ReasonAfterPivot)
		d.gone("3").review(saga.ReasonConflict).keeps().review(saga.ReasonAfterPivot)
	})
}

// "V14: ... what was made good already stays so".
func TestV14KeptAfterSomeWasMadeGood(t *testing.T) {
	const is = "a find undo\np idempotent pivot"
	d := outgrown(t, is+"\nr find\ns find", is).succeed("a2").fail(saga.Unsent).gone("3").review(saga.ReasonConflict)
	d.resolution("by hand").review(saga.ReasonConflict).keeps().wants("wait", saga.Retrying).due().wants("act p forward", saga.Running)
	d.succeed("p2").wants("rest", saga.Completed)
	d.gone("4").review(saga.ReasonConflict)
	if ss, _ := d.st.Issue(d.spec); ss == nil || ss.Name != "r" || d.st.Step("s").Undo.Phase != Done {
		t.Errorf("the review is about %+v, and s is %+v", ss, d.st.Step("s"))
	}
}

// "V14: ... A newer version of the source begins as ever". And other signals leave the review where
// it is.
func TestV14RestoredInConflict(t *testing.T) {
	d := outgrown(t, mailLast, withoutMail).through().gone("3").review(saga.ReasonConflict)
	note := d.st.Note
	for _, s := range []SignalKind{SignalCancel, SignalConflict, SignalWake} {
		d.signal(Signal{Kind: s}).review(saga.ReasonConflict)
	}
	d.late("invoice", "invoice-2").review(saga.ReasonConflict)
	if d.gone("4").review(saga.ReasonConflict); d.st.Note != note {
		t.Errorf("the review was about %q and is now about %q", note, d.st.Note)
	}
	d.revise("5").runs("5", "").wants("act customer forward", saga.Running)
	if d.succeed("c").wants("act invoice forward", saga.Running); d.told() != "invoice-2" {
		t.Errorf("the invoice is told %q", d.told())
	}
	d.succeed("").succeed("").wants("rest", saga.Completed)
}

// "C12: a work that has ended changes only by a newer version of its source object, or when the
// source cancels it. Every other signal is consumed by a note behind the end, which changes
// nothing".
func TestC12SignalsBehindTheEnd(t *testing.T) {
	for status, reach := range map[saga.Status]func() *desk{
		saga.Completed:   func() *desk { return beginAt(t, mailLast).through() },
		saga.Compensated: func() *desk { return beginAt(t, mailLast).succeed("c1").succeed("i1").fail(saga.Refused).succeed("") },
	} {
		for _, s := range []Signal{
			{Kind: SignalCancel, Actor: "anna"}, {Kind: SignalConflict}, {Kind: SignalWake}, {Kind: SignalKeep}, {Kind: "no such kind"},
			{Kind: SignalResolve, Resolution: saga.Resolution{Step: "invoice", Attempt: 1, Happened: true}},
			{Kind: SignalResolve, Resolution: saga.Resolution{Step: "mail", Direction: saga.Undo, Happened: true}},
			{Kind: SignalLate, Resolution: saga.Resolution{Step: "invoice", Direction: saga.Forward, Attempt: 1, Happened: true, ExternalID: "i9"}},
			{Kind: SignalLate, Resolution: saga.Resolution{Step: "nowhere", Direction: saga.Forward, Attempt: 1, Happened: true}},
			{Kind: SignalRevise, News: News{Revision: "1", Version: 1, Input: inputOf("1")}},
			{Kind: SignalCancel, News: News{Revision: "1"}},
		} {
			d := reach().resolutionIs(status)
			steps, n := string(dump(t, d.st.Steps)), len(d.chain)
			d.signal(s).noted("").resolutionIs(status)
			if got := string(dump(t, d.st.Steps)); got != steps || len(d.chain) != n+1 || d.last.Do.Do != Rest || !slices.Equal(d.tail().Signals, []int64{1}) {
				t.Errorf("%s: after %s %d records, %s, steps\n%s\nbefore\n%s", status, s.Kind, len(d.chain)-n, d.last.Do, got, steps)
			}
			if d.tick().wants("rest", status); len(d.chain) != n+1 {
				t.Errorf("%s: after %s it goes on: %+v", status, s.Kind, d.tail())
			}
		}
	}
	t.Run("a late answer behind the end names what it left", func(t *testing.T) {
		d := beginAt(t, "a find undo\nb find undo").fail(saga.Unknown).due().found(KindNotFound).fail(saga.Refused).resolutionIs(saga.Compensated)
		d.late("a", "a9").noted("look for what it left").resolutionIs(saga.Compensated)
	})
}

// "S2: ... It takes back a newer version that waits; only a still newer one opens the work again".
func TestS2TakesBackWhatWaits(t *testing.T) {
	d := beginAt(t, mailLast).succeed("c1").fail(saga.Unknown).revise("2").runs("1", "2").cancel().runs("1", "").wants("wait", saga.Compensating)
	d.due().found(KindNotFound).wants("rest", saga.Compensated)
	d.revise("2").noted("not newer").resolutionIs(saga.Compensated)
	d.revise("3").runs("3", "").wants("act customer forward", saga.Running)
}

// Without a definition a review of what the source cancelled can still be shown.
func TestConflictWithoutADefinition(t *testing.T) {
	d := outgrown(t, mailLast, withoutMail).through().gone("3").review(saga.ReasonConflict)
	if s := Summarize(nil, d.st); s.Reason != saga.ReasonConflict || s.PendingRevision != "3" || s.Next == "" {
		t.Errorf("%+v", s)
	}
	if s := Summarize(d.spec, d.st); !slices.Equal(s.Order, []string{"customer", "invoice", "mark-synced", "mail"}) || s.Steps["mail"].ExternalID != "mail-1" {
		t.Errorf("what stands of an earlier version of the definition is not shown: %+v", s)
	}
}
