package machine

import (
	"testing"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// "F7": what the first request made is found and undone, behind a settle time, and a work that was
// compensated asks before it is made again.
func TestF7RefusedInPart(t *testing.T) {
	partly := program.Outcome{Class: saga.Refused, Maybe: true, Error: "422"}
	d := begin(t, "a idempotent undo\nb find undo").succeed("a1").outcome(partly).wants("wait until 12:01:00", saga.Compensating)
	d.due().wants("look b forward", saga.Compensating).found(KindUnfinished, "draft")
	if in := d.wants("act b undo", saga.Compensating).st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "draft" {
		t.Errorf("the undo gets %+v", in.Undoing)
	}
	d.succeed("").succeed("").wants("rest", saga.Compensated)

	begin(t, "a idempotent undo").outcome(partly).due().wants("act a undo", saga.Compensating)
	d = beginAt(t, "a idempotent undo\nm at-most-once no-undo").succeed("a1").outcome(partly).succeed("").resolutionIs(saga.Compensated)
	d.revise("2").review(saga.ReasonInDoubt)
	begin(t, "p idempotent undo pivot\nz idempotent no-undo").succeed("p1").outcome(partly).review(saga.ReasonAfterPivot) // F8
}
