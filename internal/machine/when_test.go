package machine

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// applies says what the condition of the step that is asked about says.
func (d *desk) applies(yes bool) *desk {
	d.t.Helper()
	return d.feed(Event{Asked: &Asked{Step: d.last.Do.Step, Applies: &yes}})
}

// N1, F26: a fail-over puts a step in doubt that may never have been come to: its condition is asked before anything is sent or looked up,
// and a doubt outlives one that fails.
func TestAConditionBehindAFailOver(t *testing.T) {
	t.Parallel()
	const lines = "pay idempotent undo\nwrap at-most-once no-undo when find\nend idempotent"
	lost := func() *desk {
		return begin(t, lines).lose(0).due().succeed("pay_1").wants("ask wrap forward", saga.Running)
	}
	lost().applies(false).wants("act end forward", saga.Running)
	lost().applies(true).wants("wait", saga.Retrying).due().wants("look wrap forward", saga.Running)
	yes := true
	d := lost().feed(Event{Asked: &Asked{Step: "wrap", Applies: &yes, Error: "panic: nil map"}}).review(saga.ReasonPoison)
	if p := d.st.Step("wrap").Forward.Phase; p != InDoubt {
		t.Errorf("what was in doubt is %s", p)
	}
}

// V10: a pivot that only waits is one for the revisions that follow, too; and a condition that fails forgets no attempt.
func TestAPivotThatWaitsStands(t *testing.T) {
	t.Parallel()
	d := begin(t, "pay keyed=720h undo\ngrace delay=1h pivot\nship idempotent undo").succeed("p").wait(time.Hour).wants("act ship forward", saga.Running).succeed("s")
	d.wants("rest", saga.Completed).revise("2").wants("act pay forward", saga.Running).fail(saga.Refused).review(saga.ReasonAfterPivot)

	yes := true
	w := begin(t, "wrap idempotent undo when\nend idempotent").applies(true).succeed("w").succeed("e").revise("2").wants("ask wrap forward", saga.Running)
	w.feed(Event{Asked: &Asked{Step: "wrap", Applies: &yes, Error: "panic: nil map"}}).review(saga.ReasonPoison)
	if n := w.st.Step("wrap").Forward.Attempts; n != 1 {
		t.Errorf("%d attempts are counted, and there was one", n)
	}
}

// A condition is asked behind a wait of which nothing is known after a rebuild, and the answer is taken.
func TestAConditionBehindARebuild(t *testing.T) {
	t.Parallel()
	d := lost(t, "grace delay=1h\npay keyed=720h undo find\nwrap idempotent undo when\nend idempotent").takeOver(told(t, "17", "pay pay_1", "wrap not-done", "end not-done")).tick()
	d.wants("ask wrap forward", saga.Running).applies(false).wants("act end forward", saga.Running)
}

// N2: what waits for the answer to a request that was left out waits for nothing.
func TestTheAnswerToWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	d := begin(t, "submit idempotent undo when\nrendered await=48h callback=submit find\nend idempotent").wants("ask submit forward", saga.Running)
	d.applies(false).wants("act end forward", saga.Running).succeed("e").wants("rest", saga.Completed)
	if p := d.st.Step("rendered").Forward.Phase; p != Skipped {
		t.Errorf("the wait is %s", p)
	}
}

// What hung is in no person's hands: its deadline counts.
func TestTheDeadlineOfWhatHung(t *testing.T) {
	t.Parallel()
	d := begin(t, "make idempotent undo\nend idempotent\ndeadline 1h compensate").feed(Event{Hung: "it hangs"}).review(saga.ReasonHung)
	d.now = d.now.Add(2 * time.Hour)
	d.succeed("m_1").wants("act make undo", saga.Compensating)
}

// A15: people who may have been asked, for all that is known, were asked: no decision is a no.
func TestADoubtfulQuestionWasAsked(t *testing.T) {
	t.Parallel()
	d := voting(t, "book idempotent undo\npay approve=72h by=finance ask\ncharge keyed=720h pivot")
	for range 3 {
		d.fail(saga.Unknown).due()
	}
	d.fail(saga.Unknown)
	d.now = d.st.Step("pay").WaitsUntil
	for range 3 { // the question is asked no more, and then it is over
		d.tick()
	}
	if d.st.Status != saga.Compensating {
		t.Errorf("it is %s %s", d.st.Status, d.st.Reason)
	}
}

// V3, V10: what a condition left out of a doubt keeps no newer version from beginning; and no person's cancel turns what an earlier
// revision's pivot stands behind, if that only waited.
func TestANewerVersionBehindAConditionAndAPivot(t *testing.T) {
	t.Parallel()
	d := begin(t, "pay idempotent undo\nwrap idempotent undo when\nend idempotent").lose(0).due().succeed("p").wants("ask wrap forward", saga.Running).applies(false)
	d.wants("act end forward", saga.Running).succeed("e").wants("rest", saga.Completed).revise("2").due().wants("act pay forward", saga.Running)

	w := begin(t, "pay idempotent undo\nrendered await=48h on=paid pivot\nend idempotent undo").succeed("p").asked(Asked{Step: "rendered", On: on("paid", "1")}).
		answer("", "x").succeed("e").wants("rest", saga.Completed).revise("2").succeed("p2").asked(Asked{Step: "rendered", On: on("paid", "1")}).wants("wait", saga.Waiting)
	w.cancel().wants("wait", saga.Waiting)
}
