package machine

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What people decide (P1 to P10).

const (
	paying   = "book idempotent undo\npay approve=72h by=finance votes=2 ask remind=4h escalate=24h:cfo not-starter\ncharge keyed=720h pivot"
	askedFor = `{"cents":5}`
)

// voting lets a work come to its approval; what is shown is the document.
func voting(t tester, lines string) *desk {
	t.Helper()
	d := newDesk(t, lines)
	d.feed(Event{Start: &Start{Input: json.RawMessage(`"3 lines"`), Starter: "sam"}})
	return d.succeed("b_1").wants("ask pay forward", saga.Running).shown(askedFor)
}

func (d *desk) shown(doc string) *desk {
	d.t.Helper()
	return d.asked(Asked{Step: "pay", Shown: &Shown{Document: json.RawMessage(doc), Asked: doc != ""}})
}

// vote posts what a person says of the document; those that are not the first have a role of their own.
func (d *desk) vote(who, role, doc string, approve bool) *desk {
	d.t.Helper()
	cast := &Cast{Approve: approve, Roles: []string{role}, Shown: d.st.digest(json.RawMessage(doc))}
	return d.signal(Signal{Kind: SignalVote, At: d.now, Actor: who, Reason: "seen", Resolution: saga.Resolution{Step: "pay"}, Said: Said{Vote: cast}})
}

// brought posts a newer version that somebody brought.
func (d *desk) brought(revision string) *desk {
	d.t.Helper()
	ev := d.news(revision, 1, false)
	ev.Signal.Actor = "shop"
	return d.feed(ev)
}

// "P1: what people are shown is on record, with its digest, before people are asked. Where the definition says that no decision
// is needed, the step is done".
func TestP1ShownFirst(t *testing.T) {
	t.Parallel()
	d := voting(t, paying).wants("act ask forward", saga.Waiting)
	if r := d.tail(); r.Kind != KindOpened || r.Dispatch == nil || d.st.Step("pay").Ballot().Digest != d.st.digest(json.RawMessage(askedFor)) {
		t.Errorf("recorded %+v", r)
	}
	brief := BriefOf(d.spec, d.st, "ask")
	if brief == nil || string(brief.Shown) != askedFor || strings.Join(brief.Roles, " ") != "finance" || brief.Votes != 2 {
		t.Errorf("it is asked with %+v", brief)
	}
	begin(t, "pay approve=72h by=finance ask\ncharge keyed=720h pivot").wants("ask pay forward", saga.Running).shown(askedFor).wants("act ask forward", saga.Waiting)
	newDesk(t, paying).start().succeed("b_1").shown("").wants("act charge forward", saga.Running)
	broken := newDesk(t, paying).start().succeed("b_1").asked(Asked{Step: "pay", Error: "no such thing"}).review(saga.ReasonPoison)
	broken.skip("").noted("people decide").retry().wants("ask pay forward", saga.Running).shown(askedFor).wants("act ask forward", saga.Waiting)
}

// "P2: a vote counts for the digest that it says, and for no other. A newer version that changes what is shown voids the
// votes, and people are asked again; the record says so. One that does not leaves votes and end as they are, unless
// the end has passed by then: people have as long again. What was undone, had ended, or is retried is decided again".
func TestP2BoundToWhatIsShown(t *testing.T) {
	t.Parallel()
	d := voting(t, paying).succeed("q").wants("wait", saga.Waiting)
	first, end := d.st.Step("ask").Forward.Key, d.st.Step("pay").WaitsUntil
	d.vote("ann", "finance", `{"cents":4}`, true).noted("has changed since it was shown")
	d.vote("ann", "finance", askedFor, true).wants("wait", saga.Waiting).later(time.Hour)
	d.brought("2").succeed("b_1").wants("ask pay forward", saga.Running)
	d.brought("3").succeed("b_1").shown(askedFor).wants("wait", saga.Waiting) // the second did not come to it
	if ss := d.st.Step("pay"); len(ss.Ballot().Votes) != 1 || !ss.WaitsUntil.Equal(end) || !strings.Contains(d.tail().Note, "earlier votes (1) stand") {
		t.Errorf("the same is shown, and %+v until %s: %s", ss.Ballot(), ss.WaitsUntil, d.tail().Note)
	}
	d.brought("4").succeed("b_1").shown(`{"cents":6}`).wants("act ask forward", saga.Waiting)
	if ss := d.st.Step("pay"); len(ss.Ballot().Votes) != 0 || d.key() == first || !strings.Contains(d.tail().Note, "earlier votes (1) are void, and people are asked again") {
		t.Errorf("something else is shown, and %+v: %s", ss.Ballot(), d.tail().Note)
	}
	d.succeed("q").vote("bob", "finance", askedFor, true).noted("has changed since it was shown")
	d.vote("ann", "finance", `{"cents":6}`, true).vote("bob", "finance", `{"cents":6}`, true).wants("act charge forward", saga.Running)
	// charged; a newer version of what has ended is decided again, whatever is shown
	d.succeed("c_1").wants("rest", saga.Completed).brought("5").succeed("b_1").shown(`{"cents":6}`).wants("act ask forward", saga.Waiting)
	// nor does what was approved of keep one going that needs no approval
	voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true).brought("2").succeed("b_1").shown("").wants("act charge forward", saga.Running)
	// an end that passed while a person had the work undoes nothing when a newer version shows the same
	held := voting(t, paying).fail(saga.Fault).review(saga.ReasonPoison).later(80 * time.Hour)
	held.brought("2").succeed("b_1").shown(askedFor)
	if until := held.st.Step("pay").WaitsUntil; held.st.Compensating || !until.Equal(held.now.Add(72*time.Hour)) {
		t.Errorf("people have until %s, and it is %s", until, held.st.Status)
	}
	// people who were asked about an earlier version are asked again after one that needed no decision
	small := voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true).vote("bob", "finance", askedFor, true).fail(saga.Unsent)
	small.brought("2").succeed("b_1").shown("").fail(saga.Unsent).brought("3").succeed("b_1").shown(`{"cents":7}`).wants("act ask forward", saga.Waiting)
	again := voting(t, paying).succeed("q").vote("ann", "finance", askedFor, false).succeed("").wants("rest", saga.Compensated)
	again.brought("2").succeed("b_1").shown(askedFor).wants("act ask forward", saga.Waiting)
	if b := again.st.Step("pay").Ballot(); len(b.Votes) != 0 {
		t.Errorf("what was rejected is run again with %+v", b)
	}
}

// "P3: a vote counts once for each person, with a role that has a vote at the time when it was posted, and not of the starter
// where the approval says so, nor of who brought a version. One that does not count is noted, and changes nothing. Names are
// compared in NFKC, without case, blanks and format characters".
func TestP3WhoVotes(t *testing.T) {
	t.Parallel()
	d := voting(t, paying).succeed("q")
	d.vote("Sam ", "finance", askedFor, true).noted("another has to decide")
	brought := voting(t, paying).succeed("q")
	ev := brought.news("2", 1, false)
	ev.Signal.Actor = "bob"
	brought.feed(ev).succeed("b_1").shown(askedFor)
	for _, who := range []string{"sam", "bob", "B\u200bob", "\uff22ob ", "B OB"} { // who started it, and who brought the version
		brought.vote(who, "finance", askedFor, true).noted("another has to decide")
	}
	d.vote("ann", "sales", askedFor, true).noted("it takes one of the roles finance")
	d.vote("ann", "cfo", askedFor, true).noted("it takes one of the roles finance")
	d.vote("ann", "finance", askedFor, true).wants("wait", saga.Waiting)
	for _, who := range []string{"ANN", " ann\u00a0", "a\u200bnn", "\uff41nn", "a\u00adnn", "ann\ufe0f"} {
		d.vote(who, "finance", askedFor, true).noted("counted already")
	}
	d.signal(Signal{Kind: SignalVote, Resolution: saga.Resolution{Step: "pay"}}).noted("nothing is to be decided")
	d.signal(Signal{Kind: SignalVote, Resolution: saga.Resolution{Step: "book"}, Said: Said{Vote: &Cast{}}}).noted("nothing is to be decided")
	d.later(25*time.Hour).vote("eve", "cfo", askedFor, true).wants("act charge forward", saga.Running)
	voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true).vote("root", saga.Admin, askedFor, true).wants("act charge forward", saga.Running)
}

// "P4: one that rejects decides, and so do enough that approve. What comes behind the decision is noted".
func TestP4TheDecision(t *testing.T) {
	t.Parallel()
	d := voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true).vote("ann", "finance", askedFor, false)
	d.wants("act book undo", saga.Compensating)
	if e := d.st.Step("pay").Forward; !strings.Contains(e.Error, "rejected, says ann: seen") {
		t.Errorf("it is refused by %q", e.Error)
	}
	d.succeed("").wants("rest", saga.Compensated).vote("bob", "finance", askedFor, true).noted("nothing is to be decided")
	yes := voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true).vote("bob", "finance", askedFor, true)
	var out []saga.Vote
	if err := json.Unmarshal(yes.st.Step("pay").Output, &out); err != nil || len(out) != 2 || out[1].By != "bob" || out[1].At != noon {
		t.Errorf("the result is %s", yes.st.Step("pay").Output)
	}
	rejected := func() *desk { // behind the pivot
		d := newDesk(t, "charge keyed=720h pivot\npay approve=72h by=finance votes=2 ask\nship keyed=720h").start().succeed("c_1").shown(askedFor).succeed("q")
		return d.vote("ann", "finance", askedFor, true).vote("bob", "finance", askedFor, false).review(saga.ReasonAfterPivot)
	}
	newer := rejected().brought("2").succeed("c_1").shown(askedFor).wants("act ask forward", saga.Waiting)
	if b := newer.st.Step("pay").Ballot(); len(b.Votes) != 0 {
		t.Errorf("a newer version of what was rejected has %+v", b)
	}
	behind := rejected()
	behind.retry().wants("ask pay forward", saga.Running).shown(askedFor).wants("act ask forward", saga.Waiting).succeed("q")
	if b := behind.st.Step("pay").Ballot(); len(b.Votes) != 0 || !behind.st.Step("pay").WaitsUntil.After(behind.now) {
		t.Errorf("it is decided again with %+v", b)
	}
	fewer := voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true) // the program asks for fewer votes by now
	fewer.spec = structure(t, strings.Replace(paying, "votes=2", "votes=1", 1))
	fewer.tick().wants("act charge forward", saga.Running)
	yes.succeed("c_1").vote("eve", "finance", askedFor, false).noted("nothing is to be decided").wants("rest", saga.Completed)
}

// "P5: each step that asks is due at its time, and sent under its own key, as long as nothing is decided. Then they are asked
// no more, also not again where it is in doubt whether they were".
func TestP5WhoIsAsked(t *testing.T) {
	t.Parallel()
	d := voting(t, paying)
	keys := map[string]bool{d.key(): true}
	d.succeed("q").wants("wait", saga.Waiting).wait(3*time.Hour).wants("wait", saga.Waiting)
	d.wait(time.Hour).wants("act ask-reminder forward", saga.Waiting)
	keys[d.key()] = true
	d.fail(saga.Unknown).due().wants("act ask-reminder forward", saga.Waiting).succeed("q").wait(19*time.Hour).wants("wait", saga.Waiting)
	d.wait(time.Hour).wants("act ask-escalation forward", saga.Waiting)
	keys[d.key()] = true
	if brief := BriefOf(d.spec, d.st, "ask-escalation"); len(keys) != 3 || !brief.Escalated || strings.Join(brief.Roles, " ") != "cfo" {
		t.Errorf("%d keys, and %+v", len(keys), brief)
	}
	d.succeed("q").wait(47*time.Hour).wants("wait", saga.Waiting)

	early := voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true).vote("bob", "finance", askedFor, true).succeed("c_1").wants("rest", saga.Completed)
	if early.st.Step("ask-reminder") != nil {
		t.Error("it was decided, and a reminder is on record")
	}
	// a fail-over forgets nothing of a reminder whose time has not come
	forgot := voting(t, paying).succeed("q")
	if err := forgot.failover(1); err != nil {
		t.Fatal(err)
	}
	if ss := forgot.st.Step("ask-reminder"); ss != nil || forgot.st.Step("ask").Forward.OutcomeUnknownUntil.IsZero() {
		t.Errorf("the reminder is %+v, and the ask %+v", ss, forgot.st.Step("ask").Forward)
	}
	forgot.succeed("q").wants("wait", saga.Waiting).wait(4*time.Hour).wants("act ask-reminder forward", saga.Waiting)
	doubt := voting(t, paying).succeed("q").wait(4*time.Hour).fail(saga.Unknown).vote("ann", "finance", askedFor, true)
	doubt.vote("bob", "finance", askedFor, true).wants("act charge forward", saga.Running)
	if ss := doubt.st.Step("ask-reminder"); ss.Forward.Phase != Skipped || ss.Forward.Attempts != 1 {
		t.Errorf("the reminder in doubt is %+v", ss.Forward)
	}
}

// "P6: a vote that was posted before the end counts, however late it is read. Without a decision by then it is rejected".
func TestP6TheEnd(t *testing.T) {
	t.Parallel()
	lines := "book idempotent undo\npay approve=72h by=finance\ncharge keyed=720h pivot"
	d := voting(t, lines).wants("wait", saga.Waiting)
	voted := d.now
	d.now = d.now.Add(80 * time.Hour)
	if err := d.once(Event{Spoken: true}); err != nil {
		t.Fatal(err)
	}
	late := d.now
	d.now = voted
	cast := &Cast{Approve: true, Roles: []string{"finance"}, Shown: d.st.digest(json.RawMessage(askedFor))}
	in := Signal{ID: 70, Kind: SignalVote, At: voted, Actor: "ann", Resolution: saga.Resolution{Step: "pay"}, Said: Said{Vote: cast}}
	d.now = late
	d.feed(Event{Signal: &in}).wants("act charge forward", saga.Running)
	out := voting(t, lines).wait(72*time.Hour).wants("act book undo", saga.Compensating)
	out.succeed("").vote("ann", "finance", askedFor, true).noted("nothing is to be decided")
	// a question that cannot be sent does not hold it up, one that fails, and one that waits for its turn; but people were not asked (A15)
	mute := voting(t, "book idempotent undo\npay approve=72h by=finance ask\ncharge keyed=720h pivot")
	mute.later(72*time.Hour-time.Minute).outcome(program.Outcome{Class: saga.Unsent, RetryAfter: time.Hour}).wants("wait", saga.Retrying)
	if mute.due().review(saga.ReasonUnanswered); !mute.now.Equal(mute.st.Step("pay").WaitsUntil) {
		t.Errorf("the end was %s, and it turned at %s", mute.st.Step("pay").WaitsUntil, mute.now)
	}
	line := newDesk(t, "pay approve=72h by=finance ask\ncharge keyed=720h pivot")
	line.busy = true
	if line.start().shown(askedFor).wants("slot ask forward", saga.Waiting); !line.last.Do.Until.Equal(line.st.Step("pay").WaitsUntil) {
		t.Errorf("it waits for a slot until %s", line.last.Do.Until)
	}
	tooLate := voting(t, lines)
	tooLate.now = tooLate.now.Add(72 * time.Hour)
	tooLate.vote("ann", "finance", askedFor, true).wants("act book undo", saga.Compensating)
}

// "P7: what a person holds takes votes, and stays where it is. An end that passes meanwhile undoes nothing: it is a review,
// unanswered, which a decision ends, or more time".
func TestP7Held(t *testing.T) {
	t.Parallel()
	lines := "book idempotent undo\npay approve=72h by=finance ask\ncharge keyed=720h pivot"
	voting(t, lines).succeed("q").pause().paused().vote("ann", "finance", askedFor, true).paused().goOn().wants("act charge forward", saga.Running)
	held := func() *desk {
		return voting(t, lines).succeed("q").pause().wait(80 * time.Hour).goOn().review(saga.ReasonUnanswered)
	}
	held().vote("ann", "finance", askedFor, true).wants("act charge forward", saga.Running)
	held().vote("ann", "finance", askedFor, false).wants("act book undo", saga.Compensating)
	d := held()
	d.signal(Signal{Kind: SignalExtend, Resolution: saga.Resolution{Step: "pay"}, Said: Said{Until: d.now.Add(day)}}).wants("wait", saga.Waiting)
	d.vote("ann", "finance", askedFor, true).wants("act charge forward", saga.Running)
	all := voting(t, lines).succeed("q")
	all.now = all.now.Add(80 * time.Hour)
	all.feed(Event{HeldUntil: all.now}).review(saga.ReasonUnanswered)
	// a review about a question ends with the decision: money does not wait for the mail server
	mute := voting(t, lines).fail(saga.Fault).review(saga.ReasonPoison).vote("ann", "finance", askedFor, true)
	if mute.wants("act charge forward", saga.Running); mute.st.Step("ask").Forward.Phase != Skipped {
		t.Errorf("the question is %+v", mute.st.Step("ask").Forward)
	}
	voting(t, lines).succeed("q").endWait().noted("does not wait for a time")
}

// "P8: while a newer version is heard and has not begun, no vote counts".
func TestP8ANewerVersionIsHeard(t *testing.T) {
	t.Parallel()
	d := voting(t, strings.Replace(paying, "ask", "ask=keyed", 1)).fail(saga.Unknown).brought("2").wants("wait", saga.Retrying)
	d.vote("ann", "finance", askedFor, true).noted("has changed since it was shown").due().succeed("q").wants("act book forward", saga.Running)
}

// "P9: after a lost ledger people are asked again, unless a step behind it is known to stand. Who started it is not known then: where it is
// not the starter's, an admin decides".
func TestP9ALostLedger(t *testing.T) {
	t.Parallel()
	const lines = "book idempotent undo\npay approve=72h by=finance not-starter\ncharge keyed=720h lookup pivot"
	lost(t, lines).takeOver(told(t, "17", "book b_1", "charge c_1")).tick().wants("rest", saga.Completed)
	unsure := lost(t, strings.Replace(lines, " lookup", "", 1)+"\nship idempotent").takeOver(told(t, "17", "book b_1", "ship not-done")).tick()
	unsure.wants("ask pay forward", saga.Running) // the charge only counts as done
	asks := lost(t, strings.Replace(lines, "not-starter", "ask remind=4h", 1)).takeOver(told(t, "17", "book b_1", "charge not-done")).tick()
	asks.wants("ask pay forward", saga.Running).shown(askedFor).wants("act ask forward", saga.Waiting).succeed("q").wants("wait", saga.Waiting)
	d := lost(t, lines).takeOver(told(t, "17", "book b_1", "charge not-done")).tick().wants("ask pay forward", saga.Running).shown(askedFor)
	d.vote("ann", "finance", askedFor, true).noted("an admin decides").vote("root", saga.Admin, askedFor, true)
	if d.st.Step("pay").Forward.Phase != Done {
		t.Errorf("an admin approved, and it is %+v", d.st.Step("pay").Forward)
	}
}

// "P10: a rerun, and a version that comes behind the end, begin a run in which everybody is asked again. A version that comes in the
// middle voids the votes of the person who brought it".
func TestP10ARunOfItsOwn(t *testing.T) {
	t.Parallel()
	// the calls that approved run 1 come again behind its rerun: the same is shown, and they decide nothing
	d := voting(t, paying).succeed("q")
	first := d.st.digest(json.RawMessage(askedFor))
	cast := func(d *desk, who string) *desk {
		said := Said{Vote: &Cast{Approve: true, Roles: []string{"finance"}, Shown: first}}
		return d.signal(Signal{Kind: SignalVote, At: d.now, Actor: who, Resolution: saga.Resolution{Step: "pay"}, Said: said})
	}
	cast(cast(d, "ann"), "bob").succeed("c_1").wants("rest", saga.Completed)
	d.brought("+1").succeed("b_1").shown(askedFor).wants("act ask forward", saga.Waiting).succeed("q")
	cast(cast(d, "ann").noted("has changed since it was shown"), "bob").noted("has changed since it was shown")
	d.brought("2").succeed("b_1").shown(askedFor) // a version in the middle goes on in that run
	cast(d, "ann").noted("has changed since it was shown")
	d.vote("ann", "finance", askedFor, true).vote("bob", "finance", askedFor, true).wants("act charge forward", saga.Running)

	// so do those of before a review that a rerun ended, whoever ran it
	review := voting(t, paying).succeed("q").vote("ann", "finance", askedFor, true)
	review.st.Status, review.st.Reason = saga.Review, saga.ReasonExhausted
	review.brought("+1").succeed("b_1").shown(askedFor)
	if b := review.st.Step("pay").Ballot(); len(b.Votes) != 0 {
		t.Errorf("a rerun goes on with %+v", b.Votes)
	}

	// ann approves, and brings a newer version that shows the same: bob's vote stands, and hers does not
	own := voting(t, strings.Replace(paying, " not-starter", "", 1)).succeed("q").vote("ann", "finance", askedFor, true)
	ev := own.news("2", 1, false)
	ev.Signal.Actor = "A\u200bNN"
	own.feed(ev).succeed("b_1").shown(askedFor)
	if b := own.st.Step("pay").Ballot(); len(b.Votes) != 0 {
		t.Errorf("who brought the version has voted: %+v", b.Votes)
	}
	own.vote("bob", "finance", askedFor, true)
	ev = own.news("3", 1, false)
	ev.Signal.Actor = "carl"
	own.feed(ev).succeed("b_1").shown(askedFor)
	if b := own.st.Step("pay").Ballot(); len(b.Votes) != 1 {
		t.Errorf("votes of others are void: %+v", b.Votes)
	}
	own.vote("ann", "finance", askedFor, true).wants("act charge forward", saga.Running) // who may vote at all may do so again
}

// "P11: a no behind the pivot is a review, after-pivot. A person has people asked again, or leaves it at the no: then nothing behind the
// approval is done in this run, nothing is undone, and the work is completed. No word of a person stands for a yes".
func TestP11ANoBehindThePivot(t *testing.T) {
	t.Parallel()
	const shipped = "book idempotent undo\nship idempotent undo pivot\npay approve=72h by=finance ask\ncharge keyed=720h\nmail at-most-once"
	no := func(lines string) *desk {
		d := newDesk(t, lines).start().succeed("b_1").succeed("s_1").shown(askedFor).succeed("q")
		return d.vote("ann", "finance", askedFor, false)
	}
	d := no(shipped).review(saga.ReasonAfterPivot)
	if next := Summarize(d.spec, d.st).Next; !strings.Contains(next, "People said no") || strings.Contains(next, "destination") || !strings.Contains(next, "amends show") {
		t.Errorf("a person is told %q", next)
	}
	d.resolution("").noted("people decide at step").skip("").wants("rest", saga.Completed)
	if d.st.Step("charge") != nil || d.st.Step("ship").Forward.Phase != Done {
		t.Errorf("charge is %+v", d.st.Step("charge"))
	}
	if next := Summarize(d.spec, d.st).Next; !strings.Contains(next, `left it at that`) {
		t.Errorf("a person is told %q", next)
	}
	// a newer version asks again
	d.revise("2").succeed("b_2").succeed("s_2").shown(askedFor).succeed("q").vote("ann", "finance", askedFor, true).wants("act charge forward", saga.Running)
	no(shipped).retry().wants("ask pay forward", saga.Running).shown(askedFor).succeed("q").vote("ann", "finance", askedFor, true).wants("act charge forward", saga.Running)
	// before the pivot a no undoes: a pause does not change that
	paused := newDesk(t, "book idempotent undo\npay approve=72h by=finance ask\ncharge keyed=720h pivot").start().succeed("b_1").shown(askedFor).succeed("q")
	paused.signal(Signal{Kind: SignalPause}).vote("ann", "finance", askedFor, false).wants("rest", saga.Paused)
	paused.skip("").noted("before the pivot").goOn().wants("act book undo", saga.Compensating)
}
