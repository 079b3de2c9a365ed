package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// reads is what the definition makes of a message.
func reads(id string) *Read {
	return &Read{Evidence: program.Evidence{Answer: program.AnswerFound, ExternalID: id, Output: output(id)}}
}

// A1: answers that come before their request was answered are kept, each; whoever says then that the request did not
// happen is contradicted.
func TestAnswersThatAreKept(t *testing.T) {
	t.Parallel()
	d := begin(t, "submit at-most-once undo lookup\nrendered await=48h callback=submit\nlast at-most-once").fail(saga.Unknown)
	key := d.submitKey()
	d.answer(key, "running").answer(key, "film_1")
	if held := d.st.Step("rendered").Answering().HeldAnswers; len(held) != 2 || string(held[1].Body) != "film_1" {
		t.Errorf("kept are %+v", held)
	}
	d.wait(time.Hour).found(KindNotFound).review(saga.ReasonInDoubt)
	d.resolution("").noted("it happened")
	d.resolution("job_1").asked(Asked{Step: "rendered", Read: reads("film_1")}).wants("act last forward", saga.Running)
}

// A3: an answer belongs to its request. A request that a newer version keeps keeps its answer, and the wait for it;
// what a message says that was found by what an older version waited for ends no wait that was not reached.
func TestAnswersOfKeptRequests(t *testing.T) {
	t.Parallel()
	d := begin(t, "a idempotent undo\nsubmit idempotent undo once\nrendered await=48h callback=submit\nfinish idempotent").succeed("a_1").succeed("job_1")
	d.asked(Asked{Step: "rendered"}).answer(d.submitKey(), "film_1").succeed("f_1").wants("rest", saga.Completed)
	d.revise("2").succeed("a_2").wants("act finish forward", saga.Running)
	if in := d.st.Invocation(d.last.Do); in.Results["rendered"].ExternalID != "film_1" {
		t.Errorf("a later step finds %+v", in.Results)
	}

	const plain = "submit idempotent undo\nrendered await=48h on=paid\nfinish idempotent"
	m := begin(t, plain).succeed("job_1").asked(Asked{Step: "rendered", On: []program.MessageKey{{Name: "paid", Key: "1"}}}).revise("2")
	m.fail(saga.Unsent).answer("", "pay_1").noted("not waited for yet").due().succeed("job_2").wants("ask rendered forward", saga.Running)
}

// A5: a success that was heard and came to nothing is a review in the end, also when it came before the work turned, or while
// it goes back.
func TestSuccessesThatCameToNothing(t *testing.T) {
	t.Parallel()
	kept := begin(t, "submit idempotent undo\nrendered await=48h callback=submit").fail(saga.Unknown)
	kept.answer(kept.submitKey(), "film_1").cancel().due().wants("act submit undo", saga.Compensating).succeed("").review(saga.ReasonLate)
	kept.goOn().wants("rest", saga.Compensated)

	back := begin(t, "a idempotent undo\nsubmit idempotent undo\nrendered await=48h callback=submit").succeed("a_1").fail(saga.Unknown)
	key := back.submitKey()
	back.cancel().due().succeed("").fail(saga.Unsent)
	back.answer(key, "film_1").due().wants("act a undo", saga.Compensating).succeed("").review(saga.ReasonLate)
}

// A4: behind the pivot a no, or no answer, is a review, and a success that comes ends it.
func TestASuccessBehindThePivot(t *testing.T) {
	t.Parallel()
	behind := "submit idempotent no-undo pivot\nrendered await=48h callback=submit\nfinish idempotent"
	d := rendered(t, behind).wait(3 * day).review(saga.ReasonAfterPivot)
	d.answer(d.submitKey(), "film_1").wants("act finish forward", saga.Running)
	d = rendered(t, behind)
	d.failed(d.submitKey()).review(saga.ReasonAfterPivot).answer(d.submitKey(), "film_1").wants("act finish forward", saga.Running)
}

// A6: what a person has to mend between a request and the wait for its answer a newer version may mend.
func TestANewerVersionMendsAReview(t *testing.T) {
	t.Parallel()
	d := begin(t, "submit idempotent undo\nmiddle idempotent undo\nrendered await=48h callback=submit").succeed("job_1")
	d.feed(Event{Outcome: &program.Outcome{Class: saga.Fault, Error: "a fault"}}).review(saga.ReasonPoison)
	d.revise("2").wants("act submit forward", saga.Running)
}

// A7, A8: each wait asks for its own answer.
func TestEachWaitIsAskedFor(t *testing.T) {
	t.Parallel()
	lines := "submit idempotent undo\nrendered await=48h callback=submit find\nagain idempotent undo\nsecond await=48h callback=again find\nfinish idempotent"
	d := lost(t, lines).takeOver(told(t, "17", "submit job_1", "again job_2", "finish not-done")).tick().asked(Asked{Step: "rendered"})
	d.polled = &Polled{Step: "rendered", At: d.now}
	d.wants("look rendered forward", saga.Waiting).found(KindFound, "film_1").wants("ask second forward", saga.Running)
	d.asked(Asked{Step: "second"}).wants("look second forward", saga.Waiting)
	if strings.Contains(d.last.Do.String(), "rendered") {
		t.Error("the first is asked for again")
	}
}

// A7: a rebuilt work whose last step waits for an answer is not at its end, and one that waits for a message alone is a
// review without a lookup.
func TestRebuiltWaitsAreNoEnd(t *testing.T) {
	t.Parallel()
	last := "submit idempotent undo\nrendered await=48h callback=submit find"
	lost(t, last).takeOver(told(t, "17", "submit job_1")).tick().asked(Asked{Step: "rendered"}).wants("look rendered forward", saga.Waiting).
		found(KindFound, "film_1").wants("rest", saga.Completed)
	paid := "a idempotent undo\nrendered await=48h on=paid\nb idempotent"
	lost(t, paid).takeOver(told(t, "17", "a a_1", "b not-done")).tick().asked(Asked{Step: "rendered"}).review(saga.ReasonUnanswered)
}

// A7: a wait of a rebuilt work is ended by an answer, by a no, and by an answer after more time, also behind the waits that the rebuild passed
// over.
func TestRebuiltWaitsCanBeEnded(t *testing.T) {
	t.Parallel()
	const lines = "cool delay=1h\npay approve=72h by=finance ask\nseen await=48h on=paid\nsubmit idempotent undo\nrendered await=48h review callback=submit find poll=1h\nfinish idempotent"
	asked := func() *desk {
		d := lost(t, lines).takeOver(told(t, "17", "submit job_1", "finish not-done")).tick().asked(Asked{Step: "rendered"})
		for range 3 {
			d.feed(Event{Evidence: &program.Evidence{Step: "rendered", Answer: program.AnswerNotFound}}).wait(24 * time.Hour)
		}
		return d.review(saga.ReasonUnanswered)
	}
	asked().answer("", "film_1").wants("act finish forward", saga.Running)
	asked().failed("").wants("act submit undo", saga.Compensating)
	d := asked()
	d.signal(Signal{Kind: SignalExtend, Resolution: saga.Resolution{Step: "rendered"}, Said: Said{Until: d.now.Add(day)}}).answer("", "film_1").wants("act finish forward", saga.Running)
}

// A1, A5: the first answer counts, whatever comes behind it; and a person looks once for what late ones are about.
func TestTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	d := begin(t, "submit idempotent undo\nrendered await=48h callback=submit").fail(saga.Unknown)
	d.answer(d.submitKey(), "film_1").failed(d.submitKey()).noted("another answer came before")
	d.due().succeed("job_1").asked(Asked{Step: "rendered", Read: reads("film_1")}).wants("rest", saga.Completed)

	late := begin(t, "submit idempotent undo\nrendered await=48h callback=submit").fail(saga.Unknown).cancel()
	key := late.submitKey()
	late.due().succeed("").answer(key, "film_1").review(saga.ReasonLate).goOn().wants("rest", saga.Compensated)
	late.answer(key, "film_2").noted("a person has looked").wants("rest", saga.Compensated)
}

// A10: what a lookup found several of waits longer, too, when a person says so; and two definitions that are answered by
// something else are not one version.
func TestWaitsThatAreMended(t *testing.T) {
	t.Parallel()
	d := rendered(t, rendering).wait(3*day).found(KindSeveral, "film_1", "film_2").review(saga.ReasonInDoubt)
	d.signal(Signal{Kind: SignalExtend, Resolution: saga.Resolution{Step: "rendered"}, Said: Said{Until: d.now.Add(day)}}).wants("look rendered forward", saga.Waiting)
	d.answer(d.submitKey(), "film_1").wants("act finish forward", saga.Running)

	of := func(lines string) string { return structure(t, lines).Structure() }
	const begins = "a idempotent undo\nb idempotent undo\n"
	if of(begins+"c await=1h callback=a") == of(begins+"c await=1h callback=b") || of(begins+"c await=1h on=paid") == of(begins+"c await=1h on=refused") {
		t.Error("what answers is no part of the structure")
	}
}

// "A12: what a message answered stays answered in a later run where the step says Once and waits by the same names and keys, unless what
// was done before it was undone. Where it says EachRun, each run waits again".
func TestA12WhatWasAnsweredAndChanges(t *testing.T) {
	t.Parallel()
	paid := func(lines, key string) *desk {
		d := begin(t, lines).succeed("job_1").asked(Asked{Step: "rendered", On: on("paid", "1")}).answer("", "pay_1").succeed("f_1").wants("rest", saga.Completed)
		return d.revise("2").succeed("job_2").wants("ask rendered forward", saga.Running).asked(Asked{Step: "rendered", On: on("paid", key)})
	}
	const once, each = "submit idempotent undo\nrendered await=48h on=paid once\nfinish idempotent undo", "submit idempotent undo\nrendered await=48h on=paid\nfinish idempotent undo"
	d := paid(once, "1").wants("act finish forward", saga.Running)
	if in := d.st.Invocation(d.last.Do); in.Results["rendered"].ExternalID != "pay_1" {
		t.Errorf("a later step finds %+v", in.Results)
	}
	d.succeed("f_2").wants("rest", saga.Completed).revise("3").succeed("job_3").asked(Asked{Step: "rendered", On: on("paid", "1")}).wants("act finish forward", saga.Running)
	paid(once, "2").wants("wait", saga.Waiting)
	paid(each, "1").wants("wait", saga.Waiting)

	undone := begin(t, once).succeed("job_1").asked(Asked{Step: "rendered", On: on("paid", "1")}).answer("", "pay_1").fail(saga.Refused)
	undone.succeed("").wants("rest", saga.Compensated).revise("2").succeed("job_2").asked(Asked{Step: "rendered", On: on("paid", "1")}).wants("wait", saga.Waiting)
}

func on(name, key string) []program.MessageKey { return []program.MessageKey{{Name: name, Key: key}} }

// "A13: … or a note where the step says NoUndo"; what is left to others is a note, too, and the wait goes on.
func TestA13MessagesOfOthers(t *testing.T) {
	t.Parallel()
	d := rendered(t, rendering)
	d.hear(&Read{Left: "is used by another instance"}).noted("used by another").wants("wait", saga.Waiting)
	d.cancel().succeed("").wants("rest", saga.Compensated).hear(&Read{Left: "is left to another"}).noted("left to another").wants("rest", saga.Compensated)

	const harmless = "submit idempotent no-undo\nrendered await=48h callback=submit"
	d = rendered(t, harmless).cancel().wants("rest", saga.Compensated)
	d.answer(d.submitKey(), "film_1").noted("nothing of it is to be undone").wants("rest", saga.Compensated)
}

func (d *desk) hear(read *Read) *desk {
	d.t.Helper()
	d.sigs++
	return d.feed(Event{Read: read, Signal: &Signal{ID: d.sigs, Kind: SignalAnswer, Resolution: saga.Resolution{Step: "rendered"}, Said: Said{Message: "render.done", MessageKey: "job_1"}}})
}

// "A14: an answer that the definition fails to read is kept, and a person is asked (poison); so is one asked whose lookup panics".
func TestA14AFaultOfTheDefinition(t *testing.T) {
	t.Parallel()
	fault := &Read{Fault: "panic: index out of range"}
	d := rendered(t, rendering).hear(fault).review(saga.ReasonPoison)
	if next := Summarize(d.spec, d.st).Next; !strings.Contains(next, "could not read the answer") {
		t.Errorf("a person is told %q", next)
	}
	d.retry().wants("ask rendered forward", saga.Running)
	if held := d.st.Step("rendered").Answering().HeldAnswers; len(held) != 1 || held[0].Name != "render.done" {
		t.Errorf("held is %+v", held)
	}
	d.asked(Asked{Step: "rendered", Error: fault.Fault}).review(saga.ReasonPoison).retry() // it is not mended
	d.asked(Asked{Step: "rendered", Read: reads("film_1")}).wants("act finish forward", saga.Running)

	d = rendered(t, rendering).hear(fault).review(saga.ReasonPoison).answer("", "film_2").wants("act finish forward", saga.Running)
	if id := d.st.Step("rendered").ExternalID; id != "film_2" {
		t.Errorf("another answer is %q", id)
	}

	d = rendered(t, rendering).wait(time.Hour).wants("look rendered forward", saga.Waiting)
	d.feed(Event{Evidence: &program.Evidence{Step: "rendered", Answer: program.AnswerUnclear, Error: "panic: nil map", Stack: "goroutine 1"}}).review(saga.ReasonPoison)
	d.retry().asked(Asked{Step: "rendered", On: on("render.done", "job_1")}).wants("wait", saga.Waiting)
}

// An answer to a request of which a person said that it did not happen is the answer, and says that there may be two.
func TestAnAnswerUnderAnEarlierKey(t *testing.T) {
	t.Parallel()
	d := begin(t, "submit at-most-once undo\nrendered await=48h callback=submit\nlast at-most-once").fail(saga.Unknown)
	key := d.submitKey()
	d.review(saga.ReasonInDoubt).resolution("").due().wants("act submit forward", saga.Running)
	d.succeed("job_2").asked(Asked{Step: "rendered"}).answer(key, "film_1")
	said := ""
	for i := range d.chain {
		if d.chain[i].Kind == KindAnswered {
			said = d.chain[i].Said()
		}
	}
	if d.submitKey() == key || !strings.Contains(said, "did not happen") {
		t.Errorf("recorded %q", said)
	}
}
