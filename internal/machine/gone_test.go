package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// missing answers an update of what an earlier revision left: it is not there.
func (d *desk) missing() *desk { d.t.Helper(); return d.fail(saga.Gone) }

// "V16: that what an earlier revision left is gone is no refusal".
func TestV16Gone(t *testing.T) {
	const two = "a find undo timeout=10s settle=1m\nb find undo"
	updating := func(t *testing.T, steps string) *desk {
		t.Helper()
		return beginAt(t, steps).succeed("a1").succeed("b1").revise("2").wants("act a forward", saga.Running)
	}
	t.Run("it is made anew under a new key when a lookup has found nothing", func(t *testing.T) {
		d := updating(t, two)
		old := d.key()
		d.missing().wants("wait until 12:01:10", saga.Retrying).due().wants("look a forward", saga.Running)
		if d.told() != "" {
			t.Errorf("the lookup is told %q: it would not find what an earlier revision left", d.told())
		}
		d.found(KindNotFound).wants("act a forward", saga.Running)
		if d.told() != "" || d.key() == old {
			t.Errorf("the next attempt is told %q, under key %s after %s", d.told(), d.key(), old)
		}
		if in := d.st.Invocation(d.last.Do); in.MadeKey != in.Key {
			t.Errorf("it is made under %s, and its undo would be about %s", in.Key, in.MadeKey)
		}
		d.succeed("a2").succeed("b2").wants("rest", saga.Completed)
	})
	t.Run("what is there is updated after all, under its key", func(t *testing.T) {
		d := updating(t, two)
		old := d.key()
		d.missing().due().wants("look a forward", saga.Running).found(KindFound, "a1").wants("look a forward", saga.Running)
		if d.told() != "a1" {
			t.Errorf("the second lookup is told %q", d.told())
		}
		if d.found(KindNotFound).wants("act a forward", saga.Running); d.key() != old || d.told() != "a1" {
			t.Errorf("it is updated under %s, not %s, and told %q", d.key(), old, d.told())
		}
	})
	t.Run("a destination that always says so uses the policy up", func(t *testing.T) {
		d := updating(t, "a idempotent find undo timeout=10s settle=1m attempts=3\nb find undo")
		for range 3 {
			d.missing().due().wants("look a forward", saga.Running).found(KindFound, "a1")
		}
		d.review(saga.ReasonExhausted)
	})
	t.Run("another thing that stands is taken over", func(t *testing.T) {
		d := updating(t, two).missing().due().found(KindFound, "a9").wants("act b forward", saga.Running)
		if id := d.st.Step("a").ExternalID; id != "a9" {
			t.Errorf("the step has made %q", id)
		}
	})
	t.Run("without a lookup a person is asked", func(t *testing.T) {
		const asks = "a idempotent undo timeout=10s settle=1m\nb find undo"
		d := updating(t, asks).missing().review(saga.ReasonInDoubt)
		if next := Summarize(d.spec, d.st).Next; !strings.Contains(next, "what an earlier revision left of step \"a\" (a1) is gone") {
			t.Errorf("what is next: %s", next)
		}
		if !slices.ContainsFunc(Choices(d.spec, d.st, time.Time{}), func(c Choice) bool { return c.Case == CaseGone && c.Says == SayDidNotHappen }) {
			t.Error("it is not said how it is made again")
		}
		old := d.st.Step("a").Forward.Key
		d.resolution("").wants("wait until 12:01:10", saga.Retrying).due().wants("act a forward", saga.Running)
		if d.told() != "" || d.key() == old {
			t.Errorf("it is made anew under %s after %s, and told %q", d.key(), old, d.told())
		}
		if d = updating(t, asks).missing().retry().wants("act a forward", saga.Running); d.told() != "a1" {
			t.Errorf("tried again it is told %q", d.told())
		}
	})
	t.Run("nothing was left: it is a refusal", func(t *testing.T) {
		beginAt(t, two).fail(saga.Gone).resolutionIs(saga.Compensated)
		beginAt(t, two).succeed("a1").fail(saga.Refused).wants("act a undo", saga.Compensating).fail(saga.Gone).review(saga.ReasonUndoFailed)
	})
	t.Run("behind the pivot of an earlier revision nothing turns the work", func(t *testing.T) { // V10
		d := beginAt(t, "a find undo timeout=10s settle=1m\nb find undo pivot").succeed("a1").succeed("b1").revise("2").succeed("a2")
		d.missing().due().wants("look b forward", saga.Running).found(KindNotFound).fail(saga.Refused).review(saga.ReasonAfterPivot)
	})
	t.Run("also where a person has the step skipped, and in the next revision", func(t *testing.T) {
		d := beginAt(t, "a find undo timeout=10s settle=1m\nb idempotent undo pivot").succeed("a1").succeed("b1").revise("2").succeed("a2")
		d.missing().review(saga.ReasonInDoubt)
		d.skip("").revise("3").succeed("a3").due().wants("act b forward", saga.Running).fail(saga.Refused).review(saga.ReasonAfterPivot)
	})
	t.Run("what is undone since does not count", func(t *testing.T) {
		d := beginAt(t, "a find undo timeout=10s settle=1m\nb find undo pivot timeout=10s settle=1m").succeed("a1").succeed("b1").revise("2").succeed("a2")
		d.missing().due().found(KindNotFound).fail(saga.Unsent).gone("3").wants("act a undo", saga.Compensating).succeed("")
		d.resolutionIs(saga.Compensated).revise("4").wants("act a forward", saga.Running).fail(saga.Refused).resolutionIs(saga.Compensated)
	})
	t.Run("a cancel undoes what may stand", func(t *testing.T) {
		d := updating(t, two).missing().cancel().wants("act b undo", saga.Compensating).succeed("").due().wants("look a forward", saga.Compensating).found(KindFound, "a1")
		d.wants("look a forward", saga.Compensating).found(KindNotFound).wants("act a undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "a1" {
			t.Errorf("the undo is about %+v", in.Undoing)
		}
	})
	t.Run("the next revision is not told what is gone", func(t *testing.T) {
		d := updating(t, two).missing().due().found(KindNotFound).fail(saga.Unsent).revise("3").wants("act a forward", saga.Running)
		if d.told() != "" {
			t.Errorf("it is told %q", d.told())
		}
	})
}
