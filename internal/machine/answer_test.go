package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a work waits for from outside (A1 to A11).

const rendering = "submit idempotent undo\nrendered await=48h callback=submit on=render.done find poll=1h\nfinish keyed=720h pivot"

// rendered lets a work wait for the answer to the request of its first step.
func rendered(t tester, lines string) *desk {
	t.Helper()
	d := begin(t, lines).succeed("job_1").wants("ask rendered forward", saga.Running)
	return d.asked(Asked{Step: "rendered", On: []program.MessageKey{{Name: "render.done", Key: "job_1"}}}).wants("wait", saga.Waiting)
}

// answer brings what the definition reads as id, by the token of a request under key; "" declines it.
func (d *desk) answer(key, id string) *desk {
	d.t.Helper()
	read := &Read{Declined: "no id"}
	if id != "" {
		read = &Read{Evidence: program.Evidence{Answer: program.AnswerFound, ExternalID: id, Output: output(id)}}
	}
	d.sigs++
	return d.feed(Event{Read: read, Signal: &Signal{
		ID: d.sigs, Kind: SignalAnswer, Resolution: saga.Resolution{Step: "rendered", StepKey: key}, Said: Said{Body: []byte(id)},
	}})
}

func (d *desk) failed(key string) *desk {
	d.t.Helper()
	return d.signal(Signal{Kind: SignalAnswer, Resolution: saga.Resolution{Step: "rendered", StepKey: key}, Said: Said{Failed: "no disk"}})
}

func (d *desk) submitKey() string { d.t.Helper(); return d.st.Step("submit").Forward.Key }

// "A1: an answer ends the wait that it is for, once, also when it comes before the wait, or before its request was answered: then it is read when that is. What comes again is noted".
func TestA1AnAnswerEndsItsWait(t *testing.T) {
	t.Parallel()
	d := rendered(t, rendering)
	key := d.submitKey()
	d.answer(key, "film_1").wants("act finish forward", saga.Running)
	if in := d.st.Invocation(d.last.Do); in.Results["rendered"].ExternalID != "film_1" || in.Results["submit"].ExternalID != "job_1" {
		t.Errorf("later steps find %+v", in.Results)
	}
	d.succeed("f").wants("rest", saga.Completed).answer(key, "film_2").noted("has one already").failed(key).noted("has one already")

	early := begin(t, rendering).fail(saga.Unknown)
	early.answer(early.submitKey(), "film_1").due().succeed("job_1").wants("ask rendered forward", saga.Running)
	if held := early.st.Step("rendered").Answering().HeldAnswers; len(held) != 1 || string(held[0].Body) != "film_1" {
		t.Errorf("it came before its request was answered, and is kept as %+v", held)
	}
	read := Read{Evidence: program.Evidence{Answer: program.AnswerFound, ExternalID: "film_1", Output: output("film_1")}}
	early.asked(Asked{Step: "rendered", Read: &read}).wants("act finish forward", saga.Running)
	declined := begin(t, rendering).fail(saga.Unknown)
	declined.answer(declined.submitKey(), "film_1").due().succeed("job_1").asked(Asked{Step: "rendered", Read: &Read{Declined: "no id"}}).
		wants("wait", saga.Waiting)
	if held := declined.st.Step("rendered").Answering().HeldAnswers; held != nil {
		t.Errorf("what was declined is kept as %+v", held)
	}
	again := rendered(t, rendering)
	again.failed(again.submitKey()).wants("act submit undo", saga.Compensating)
	begin(t, "submit idempotent undo").fail(saga.Unsent).signal(Signal{Kind: SignalAnswer, Resolution: saga.Resolution{Step: "submit"}}).noted("no step of that name waits")
}

// "A2: the record that arms a request names the secret of its token; every attempt under its key has that one".
func TestA2OneTokenForAKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t, rendering)
	d.secret = "old"
	d.start()
	d.secret = "new"
	if d.fail(saga.Unknown).due(); d.armed().Attempt != 2 || d.armed().SecretID != "old" {
		t.Errorf("the second attempt is %+v, and its key's first named the old secret", d.armed())
	}
	if d.succeed("job_1").asked(Asked{Step: "rendered"}).answer(d.submitKey(), "film").armed().SecretID != "" {
		t.Errorf("a request without a token names a secret: %+v", d.armed())
	}
}

// "A3: what answers the request of another revision ends no wait, and a newer version waits for an answer of its own".
func TestA3AnAnswerBelongsToItsRevision(t *testing.T) {
	t.Parallel()
	d := rendered(t, rendering)
	first := d.submitKey()
	d.answer(first, "film_1").succeed("f").revise("2").wants("act submit forward", saga.Running)
	d.succeed("job_1").asked(Asked{Step: "rendered"}).wants("wait", saga.Waiting)
	d.answer(first, "film_1").noted("another revision").wants("wait", saga.Waiting)
	d.answer(d.submitKey(), "film_2").wants("act finish forward", saga.Running)
}

// "A4: a wait is not over at its end before what was said is read. Then the lookup is asked, if there is one, and what the step
// says follows: as if the answer were no, or review, unanswered".
func TestA4NoAnswerInTime(t *testing.T) {
	t.Parallel()
	const plain = "submit idempotent undo\nrendered await=48h callback=submit\nfinish keyed=720h pivot"
	d := rendered(t, plain)
	key := d.submitKey()
	d.now = d.now.Add(3 * day)
	if err := d.once(Event{Spoken: true}); err != nil {
		t.Fatal(err)
	}
	d.wants("wait", saga.Waiting).answer(key, "film_1").wants("act finish forward", saga.Running)

	rendered(t, plain).wait(3*day).wants("act submit undo", saga.Compensating)
	asks := rendered(t, strings.Replace(plain, "48h", "48h review", 1)).wait(3 * day).review(saga.ReasonUnanswered)
	asks.answer(key, "film_1").wants("act finish forward", saga.Running)

	behind := "submit idempotent no-undo pivot\nrendered await=48h callback=submit\nfinish idempotent"
	rendered(t, behind).wait(3 * day).review(saga.ReasonAfterPivot)

	for kind, want := range map[Kind]string{KindFound: "act finish forward", KindNotFound: "act submit undo", KindUnfinished: "act submit undo", Kind(program.AnswerFailed): "act submit undo"} {
		d := rendered(t, rendering).wait(3*day).wants("look rendered forward", saga.Waiting)
		status := saga.Compensating
		if kind == KindFound {
			status = saga.Running
		}
		d.found(kind, "film_1").wants(want, status)
	}
	d = rendered(t, rendering).wait(3 * day)
	for range maxLookups - 1 {
		d.found(KindUnclear).wants("wait", saga.Waiting).due().wants("look rendered forward", saga.Waiting)
	}
	d.found(KindUnclear).review(saga.ReasonUnanswered) // it could not be asked (A15)
	d = rendered(t, rendering).wait(3 * day)
	d.feed(Event{Evidence: &program.Evidence{Step: "rendered", Answer: program.AnswerUnclear, Unput: true}}).review(saga.ReasonUnanswered)
	d.answer(d.submitKey(), "film_1").wants("act finish forward", saga.Running)
}

// "A5: a success that comes when it was given up brings the work to review, late-answer, also one that has ended, unless
// the request is undone, or will be, by its result. A resume lets the work go on as it is".
func TestA5ALateSuccessIsNotDropped(t *testing.T) {
	t.Parallel()
	known := rendered(t, rendering).cancel().wants("act submit undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	known.answer(known.submitKey(), "film_1").noted("undone by its result").wants("rest", saga.Compensated)

	blind := begin(t, "submit idempotent undo\nrendered await=48h callback=submit").fail(saga.Unknown).cancel()
	key := blind.submitKey()
	blind.due().wants("act submit undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	blind.failed(key).noted("given up already").answer(key, "film_1").review(saga.ReasonLate).goOn().wants("rest", saga.Compensated)

	pure := begin(t, "a idempotent undo\nrendered await=48h on=paid\nb idempotent").succeed("1").asked(Asked{Step: "rendered"}).cancel().wants("act a undo", saga.Compensating)
	pure.succeed("").wants("rest", saga.Compensated).answer("", "pay_1").review(saga.ReasonLate)
}

// "A6: no newer version begins while what a request asked for is not answered; a wait for a message alone is a boundary".
func TestA6AJobUnderWayIsNoBoundary(t *testing.T) {
	t.Parallel()
	d := rendered(t, rendering).revise("2").wants("wait", saga.Waiting)
	d.answer(d.submitKey(), "film_1").wants("act submit forward", saga.Running)
	if d.st.Revision != "2" {
		t.Errorf("it is at revision %q", d.st.Revision)
	}
	begin(t, "a idempotent undo\nrendered await=48h on=paid\nb idempotent").succeed("1").asked(Asked{Step: "rendered"}).wants("wait", saga.Waiting).
		revise("2").wants("act a forward", saga.Running)
}

// "A7: when the ledger was lost, what was waited for is asked for at once; without a lookup it is a review. The record of a
// step behind it tells that it had come".
func TestA7AfterALostLedger(t *testing.T) {
	t.Parallel()
	d := lost(t, rendering).takeOver(told(t, "17", "submit job_1", "finish not-done")).tick().wants("ask rendered forward", saga.Running)
	d.asked(Asked{Step: "rendered"}).wants("look rendered forward", saga.Waiting)
	d.polled = &Polled{Step: "rendered", At: d.now}
	d.found(KindUnfinished, "x").wants("wait", saga.Waiting)
	d.answer("", "film_1").wants("act finish forward", saga.Running)

	const blind = "submit idempotent undo\nrendered await=48h callback=submit\nfinish idempotent"
	unknown := func() *desk {
		return lost(t, blind).takeOver(told(t, "17", "submit job_1", "finish not-done")).tick().asked(Asked{Step: "rendered"}).review(saga.ReasonUnanswered)
	}
	unknown().answer("", "film_1").wants("act finish forward", saga.Running)
	unknown().cancel().wants("act submit undo", saga.Compensating)
	longer := unknown()
	longer.signal(Signal{Kind: SignalExtend, Resolution: saga.Resolution{Step: "rendered"}, Said: Said{Until: longer.now.Add(day)}}).wants("wait", saga.Waiting)
	unknown().revise("18").wants("act submit forward", saga.Running)
	lost(t, blind+"\nlast idempotent").takeOver(told(t, "17", "submit job_1", "finish f_1", "last not-done")).tick().wants("act last forward", saga.Running)
}

// "A8: a lookup that learns nothing before the time is over is no record".
func TestA8APollThatLearnsNothing(t *testing.T) {
	t.Parallel()
	d := rendered(t, rendering)
	for _, kind := range []Kind{KindNotFound, KindUnfinished, KindUnclear} {
		d.now = d.now.Add(time.Hour + time.Second)
		records := len(d.chain)
		d.tick().wants("look rendered forward", saga.Waiting)
		d.polled = &Polled{Step: "rendered", At: d.now}
		if d.found(kind, "x").wants("wait", saga.Waiting); len(d.chain) != records {
			t.Errorf("%s is on record: %+v", kind, d.tail())
		}
		if d.last.Do.Until.Sub(d.now) > time.Hour {
			t.Errorf("it is asked again at %s, and it is %s", d.last.Do.Until, d.now)
		}
	}
	d.wait(time.Hour).found(KindFound, "film_1").wants("act finish forward", saga.Running)
}

// "A9: what the definition declines is noted, and the wait goes on. What a person holds stays where it is, and the answer
// is on record".
func TestA9DeclinedAndHeld(t *testing.T) {
	t.Parallel()
	d := rendered(t, rendering)
	key := d.submitKey()
	d.answer(key, "").noted("declined: no id").wants("wait", saga.Waiting)
	d.pause().answer(key, "film_1").wants("rest", saga.Paused).goOn().wants("act finish forward", saga.Running)
}

// "A10: a person has it wait longer, also when it is in review for want of the answer".
func TestA10WaitsLonger(t *testing.T) {
	t.Parallel()
	extend := func(d *desk, by time.Duration) *desk {
		return d.signal(Signal{Kind: SignalExtend, Resolution: saga.Resolution{Step: "rendered"}, Said: Said{Until: d.now.Add(by)}})
	}
	d := rendered(t, "submit idempotent undo\nrendered await=48h review callback=submit\nfinish idempotent")
	extend(d, 4*day).wait(3*day).wants("wait", saga.Waiting).wait(2 * day).review(saga.ReasonUnanswered)
	extend(d, day).wants("wait", saga.Waiting)
	extend(d, -day).noted("has passed")
	extend(begin(t, "rendered idempotent no-undo").fail(saga.Unsent), day).noted("does not wait for an answer")
}

// "A11: where the end of the wait passed while a person had the work, by itself or with its saga, nothing is undone for want
// of the answer: it is a review".
func TestA11NothingBehindAPersonsBack(t *testing.T) {
	t.Parallel()
	const plain = "submit idempotent undo\nrendered await=48h callback=submit\nfinish keyed=720h pivot"
	rendered(t, plain).pause().wait(3 * day).goOn().review(saga.ReasonUnanswered)
	rendered(t, plain).pause().wait(day).goOn().wants("wait", saga.Waiting).wait(2*day).wants("act submit undo", saga.Compensating)
	d := rendered(t, plain)
	d.now = d.now.Add(3 * day)
	d.feed(Event{HeldUntil: d.now}).review(saga.ReasonUnanswered).answer(d.submitKey(), "film_1").wants("act finish forward", saga.Running)
}
