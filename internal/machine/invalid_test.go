package machine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// latin1 is JSON by its syntax and no UTF-8 by its content.
var latin1 = json.RawMessage("{\"name\":\"caf\xe9\"}")

// "M1: bodies are valid UTF-8 where they enter", by every way.
func TestM1BodiesAreUTF8(t *testing.T) {
	resolve := Signal{Kind: SignalResolve, Resolution: saga.Resolution{Step: "a", Attempt: 1, Happened: true, ExternalID: "x", Output: latin1}}
	late := Signal{Kind: SignalLate, Resolution: saga.Resolution{Step: "a", Direction: saga.Forward, Attempt: 1, Happened: true, ExternalID: "x", Output: latin1}}
	for what, d := range map[string]*desk{
		"a result":     begin(t, "a find undo").outcome(program.Outcome{Class: program.Succeeded, ExternalID: "x", Output: latin1}),
		"a lookup":     begin(t, "a find undo").fail(saga.Unknown).due().feed(Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound, ExternalID: "x", Output: latin1}}),
		"a resolution": begin(t, "a at-most-once no-undo").fail(saga.Unknown).signal(resolve),
		"what an undo is told": begin(t, "a idempotent lookup undo\nb at-most-once no-undo").outcome(program.Outcome{Class: program.Succeeded, ExternalID: "x", Dropped: true}).
			fail(saga.Refused).feed(Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound, ExternalID: "x", Output: latin1}}),
		"a late answer": begin(t, "a find undo").fail(saga.Unknown).signal(late),
	} {
		r := d.tail()
		if !utf8.Valid(r.Body) || !strings.Contains(string(r.Body), "caf") || r.ExternalID != "x" || r.BodyDropped || d.st.Step("a").Forward.Phase != Done {
			t.Errorf("%s is recorded as %q, %q", what, r.Body, r.ExternalID)
		}
	}
	for _, news := range []string{"1", "2"} {
		d := beginAt(t, "a find undo").succeed("1").feed(Event{Signal: &Signal{ID: 1, Kind: SignalRevise, News: News{Revision: news, Version: 1, Input: latin1}}})
		if r := d.tail(); !utf8.Valid(r.Body) || !utf8.Valid(d.st.Input) {
			t.Errorf("a newer version is recorded as %q", r.Body)
		}
	}
	d := begin(t, "a find undo").outcome(program.Outcome{Class: program.Succeeded, ExternalID: "x", Output: json.RawMessage(strings.Repeat("\xe9", program.MaxOutput))})
	if r := d.tail(); r.Body != nil || !r.BodyDropped {
		t.Errorf("what is no JSON is recorded as %d bytes", len(r.Body))
	}
}

// "M2: an external id that cannot be kept is left out, and the record says so. It is never cut".
func TestM2ExternalIDsAreNeverCut(t *testing.T) {
	for _, id := range []string{strings.Repeat("x", program.MaxExternalID+1), "a\x00b", "caf\xe9"} {
		d := begin(t, "a find undo\nb find undo").succeed(id).wants("act b forward", saga.Running)
		if r := d.tail(); r.ExternalID != "" || !strings.Contains(r.Said(), "not kept") || r.Body == nil && !r.BodyDropped {
			t.Errorf("recorded %q, %q", r.ExternalID, r.Said())
		}
		asks, err := saga.Define(order.Saga, 1, saga.Do("b", func(_ context.Context, c saga.Call[string]) (string, error) { return c.ExternalID("a"), nil }).Idempotent().NoUndo("a test"))
		if err != nil {
			t.Fatal(err)
		}
		if o := asks.Act(t.Context(), d.st.Invocation(d.last.Do)); o.Class != saga.Fault || !strings.Contains(o.Error, "recorded no external id") {
			t.Errorf("asking for it is no fault: %+v", o)
		}
	}
	long := strings.Repeat("x", program.MaxExternalID)
	if r := begin(t, "a find undo").succeed(long).tail(); r.ExternalID != long || r.Said() != "" {
		t.Errorf("an id of %d bytes is recorded as %q, %q", len(long), r.ExternalID, r.Said())
	}
}

// "M3: what the ledger calls invalid is decided again, without the bodies and words that others
// gave it. What is known of the effect stays".
func TestM3InvalidIsDecidedAgain(t *testing.T) {
	d := begin(t, "a find undo-maybe\nb find undo")
	d.feed(Event{Invalid: 1, Outcome: &program.Outcome{Class: program.Succeeded, ExternalID: "a1", Output: output("a1")}}).wants("act b forward", saga.Running)
	if ss := d.st.Step("a"); ss.ExternalID != "a1" || ss.Output != nil || !ss.OutputDropped {
		t.Errorf("the step is %+v", ss)
	}
	d.feed(Event{Invalid: 1, Outcome: &program.Outcome{Class: saga.Unsent, Error: "?", RetryAfter: time.Hour}}).wants("wait", saga.Retrying)
	if r := d.tail(); r.Kind != KindNotSent || r.Wait != time.Hour || r.Said() == "?" {
		t.Errorf("recorded %+v", r)
	}
	d.feed(Event{Invalid: 1, Signal: &Signal{ID: 1, Kind: SignalCancel, Actor: "anna", Reason: "?"}}).wants("act a undo", saga.Compensating)
	if r := d.turning(); strings.Contains(r.Said(), "?") || r.Kind != KindCancelled {
		t.Errorf("recorded %+v", r)
	}
	if d := newDesk(t, "a find undo").feed(Event{Invalid: 1, Start: &Start{Input: output("1"), Cause: "?"}}); d.chain[0].Error != "" {
		t.Errorf("the start is recorded with the cause %q", d.chain[0].Error)
	}
	d = begin(t, "a find undo").fail(saga.Unknown).due()
	d.feed(Event{Invalid: 1, Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound, ExternalID: "a1", Output: output("a1")}}).wants("rest", saga.Completed)
	if ss := d.st.Step("a"); ss.ExternalID != "a1" || ss.Output != nil || !ss.OutputDropped {
		t.Errorf("what was found is %+v", ss)
	}
}

// "M3: ... What is known of the effect stays": whether an earlier request may have taken effect,
// that the process stopped, and which things a lookup found.
func TestM3WhatIsKnownStays(t *testing.T) {
	d := begin(t, "a find undo").feed(Event{Invalid: 1, Outcome: &program.Outcome{Class: saga.Refused, Maybe: true}})
	if d.wants("wait", saga.Compensating); !d.st.Step("a").mayHaveHappened() {
		t.Error("F7: a refusal after a maybe is one that proves nothing")
	}
	d = begin(t, "a find undo").feed(Event{Invalid: 1, Outcome: &program.Outcome{Class: saga.Unsent, Shutdown: true}})
	if e := d.wants("act a forward", saga.Running).st.Step("a").Forward; e.CountedAttempts != 1 || e.Attempts != 2 {
		t.Errorf("a stop of the process counts as a try: %+v", e)
	}
	d = begin(t, "a find undo").fail(saga.Unknown).due().feed(Event{Invalid: 1, Evidence: &program.Evidence{Step: "a", Answer: program.AnswerSeveral, IDs: []string{"a1", "a2"}}})
	if d.review(saga.ReasonInDoubt); !strings.Contains(d.st.Note, "a1") || !strings.Contains(d.st.Note, "a2") {
		t.Errorf("F18: the review says %q", d.st.Note)
	}
}

// "M3: ... first without the bodies and words that others gave it": a resolution keeps its word, a
// newer version that has no input any more is noted, and a start has no cause. A start that cannot
// be stored is never parked: there is no work.
func TestM3WhatOthersGave(t *testing.T) {
	v := saga.Resolution{Step: "a", Attempt: 1, Happened: true, ExternalID: "a1", Output: output("a1")}
	d := begin(t, "a at-most-once no-undo").fail(saga.Unknown).feed(Event{Invalid: 1, Signal: &Signal{ID: 7, Kind: SignalResolve, Actor: "anna", Resolution: v}})
	if r := d.wants("rest", saga.Completed).tail(); r.ExternalID != "a1" || r.Body != nil || strings.Contains(r.Said(), "anna") {
		t.Errorf("a resolution is recorded as %+v", r)
	}
	ev := d.news("2", 1, false)
	ev.Invalid = 1
	if r := d.feed(ev).wants("rest", saga.Completed).tail(); r.Kind != KindNoted || r.Body != nil || !strings.Contains(r.Said(), "no input") {
		t.Errorf("a newer version is recorded as %+v", r)
	}
	for n := 1; n < 4; n++ {
		d := newDesk(t, "a find undo").feed(Event{Invalid: n, Start: &Start{Input: output("1"), Cause: "?"}})
		if r := d.wants("act a forward", saga.Running).chain[0]; r.Kind != KindStarted || r.Said() != "" || r.Body == nil {
			t.Errorf("a start is recorded as %+v", r)
		}
	}
}

// "M3: ... then it is parked as poison with words of the machine alone, and a signal is consumed by
// that. A work that has ended stays so".
func TestM3InvalidParksInTheEnd(t *testing.T) {
	t.Run("an outcome: the attempt is open until its deadline, and a person is told of it", func(t *testing.T) {
		d := begin(t, "a find undo\nb find undo").feed(Event{Invalid: 2, Outcome: &program.Outcome{Class: program.Succeeded, ExternalID: "a1"}}).review(saga.ReasonPoison)
		if !strings.Contains(d.st.Note, "a1") {
			t.Errorf("the review says %q", d.st.Note)
		}
		note := d.st.Note
		d.tick().wants("wait until 12:00:30", saga.Review).due().review(saga.ReasonPoison)
		if d.st.Note != note || d.tail().Kind != KindLost {
			t.Errorf("the review is now about %q", d.st.Note)
		}
		d.resolution("a1").wants("act b forward", saga.Running)
	})
	t.Run("a lookup", func(t *testing.T) {
		d := begin(t, "a find undo").fail(saga.Unknown).due()
		d.feed(Event{Invalid: 2, Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound, ExternalID: "a1"}}).review(saga.ReasonPoison)
		if !strings.Contains(d.st.Note, `"found", with the external id "a1"`) {
			t.Errorf("the review says %q", d.st.Note)
		}
		d.resolution("a1").wants("rest", saga.Completed)
	})
	t.Run("in the very end nothing is left but what this program says", func(t *testing.T) {
		d := begin(t, "a find undo").feed(Event{Invalid: 3, Outcome: &program.Outcome{Class: program.Succeeded, ExternalID: "a1"}}).review(saga.ReasonPoison)
		if strings.Contains(d.st.Note, "a1") {
			t.Errorf("the review says %q", d.st.Note)
		}
	})
	t.Run("a signal is consumed", func(t *testing.T) {
		d := begin(t, "a find undo").fail(saga.Unsent).feed(Event{Invalid: 3, Signal: &Signal{ID: 4, Kind: SignalConflict}}).review(saga.ReasonPoison)
		if !d.st.Saw(4) {
			t.Error("it will be read again")
		}
	})
	t.Run("an id that the ledger refuses, too: nothing is left but what the program says", func(t *testing.T) {
		d := begin(t, "a find undo").feed(Event{Invalid: 3, Outcome: &program.Outcome{Class: program.Succeeded, ExternalID: "a1"}}).review(saga.ReasonPoison)
		if d.st.Note != "it cannot go on by itself: the ledger refused what was to be recorded" {
			t.Errorf("the review says %q", d.st.Note)
		}
	})
	t.Run("a step that was not armed", func(t *testing.T) {
		d := newDesk(t, "a find undo")
		d.busy = true
		d.start().feed(Event{Invalid: 2}).review(saga.ReasonPoison).tick().review(saga.ReasonPoison)
		d.busy = false
		d.signal(Signal{Kind: SignalWake}).wants("act a forward", saga.Running) // S13
	})
	t.Run("behind the end", func(t *testing.T) {
		d := begin(t, "a find undo").succeed("1").feed(Event{Invalid: 2, Signal: &Signal{ID: 4, Kind: SignalRevise}})
		d.wants("rest", saga.Completed)
		if !d.st.Saw(4) || d.tail().Kind != KindNoted {
			t.Errorf("recorded %+v", d.tail())
		}
	})
	t.Run("on the way back", func(t *testing.T) {
		d := begin(t, "a find undo\nb find undo").succeed("1").fail(saga.Refused).feed(Event{Invalid: 2, Outcome: &program.Outcome{Class: program.Succeeded}}).review(saga.ReasonPoison)
		d.tick().due().resolution("by hand").wants("rest", saga.Compensated)
	})
}

// "M4: the machine does not panic. What it cannot decide is parked" (core.md, suspicion D7: one bad
// chain was a crash loop of every process that claimed it).
func TestM4NoPanic(t *testing.T) {
	d := begin(t, "a find undo\nb find undo").succeed("1")
	other := structure(t, "x find undo") // the open attempt is of a step that this structure does not have
	dec, err := Decide(other, d.st, d.event(Event{Outcome: &program.Outcome{Class: saga.Unsent, Error: "no"}}))
	if err != nil || dec.Record == nil || dec.Record.Reason != saga.ReasonPoison || !strings.Contains(dec.Record.Said(), "panicked") || dec.Do.Do != Rest {
		t.Fatalf("decided %+v, %v", dec, err)
	}
	dec.Record.Seal(order, Salt{}, d.st.Seq, d.st.TailHash, 7)
	if err := d.st.Follows(dec.Record); err != nil {
		t.Error(err)
	}
	m := &machine{spec: d.spec, st: d.st.clone()}
	if cmd := m.cannotBe(errors.New("x")); cmd.Do != Rest || m.broken == nil {
		t.Errorf("it goes on with %s", cmd)
	}
}

// Follows is what a caller asks before it sends a record: whether its own fold takes it. The state is
// left alone.
func TestFollows(t *testing.T) {
	d := begin(t, "a find undo").succeed("1").wants("rest", saga.Completed)
	before := string(dump(t, d.st))
	good, bad := Record{Kind: KindNoted, Status: saga.Completed}, Record{Kind: KindDispatched, Status: saga.Running, Dispatch: &Dispatch{Step: "a", Direction: saga.Forward, Attempt: 2}}
	for _, r := range []*Record{&good, &bad} {
		r.Seal(order, Salt{}, d.st.Seq, d.st.TailHash, 7)
	}
	next := d.st.clone()
	if err := errors.Join(d.st.Follows(&good), next.Apply(&good)); err != nil || next.Seq != d.st.Seq+1 {
		t.Errorf("a note behind the end: %v", err)
	}
	if err := d.st.Follows(&bad); err == nil {
		t.Error("an arm behind the end folds")
	}
	if after := string(dump(t, d.st)); after != before {
		t.Errorf("the state was\n%s\nand is\n%s", before, after)
	}
}

// A note behind the end that names no signal was written by processes that did not know the
// saga. Such chains fold.
func TestCore1BrokenChainsFoldAgain(t *testing.T) {
	d := beginAt(t, "a find undo").succeed("1")
	d.store(Record{Kind: KindNoted, Status: saga.Completed, Error: "no process that is running knows order-to-invoice version 1"})
	d.revise("2").runs("2", "").wants("act a forward", saga.Running)
	bad := Record{Kind: KindNoted, Status: saga.Running}
	bad.Seal(order, Salt{}, d.st.Seq, d.st.TailHash, 7)
	d = begin(t, "a find undo").succeed("1")
	if d.forged(bad, len(d.chain)) == nil {
		t.Error("a note moves a work that has ended")
	}
}

// A revision takes the newest version of the definition that its holder knows, or
// that the signal or the work names. A holder that does not know it lets go of the work, which is
// due at once for a process that does.
func TestV6TakesTheNewestVersion(t *testing.T) {
	news := func(version int) *Signal {
		return &Signal{ID: 1, Kind: SignalRevise, News: News{Revision: "2", Version: version, Input: inputOf("2")}}
	}
	for name, c := range map[string]struct {
		says, knows, takes int
		do                 Verb
	}{
		"the starter knows less": {1, 2, 2, Wait}, "the holder knows less": {2, 1, 2, Rest}, "both know it": {1, 1, 1, Act},
		"neither names it": {0, 3, 3, Wait},
	} {
		d := beginAt(t, "a find undo").succeed("1")
		ev := d.event(Event{Signal: news(c.says)})
		ev.Newest = &program.Spec{Version: c.knows}
		dec, err := Decide(d.spec, d.st, ev)
		if err != nil || dec.Record.Kind != KindRevised || dec.Record.Version != c.takes || dec.Do.Do != c.do || dec.Record.Wait != 0 || dec.Record.Status != saga.Running {
			t.Errorf("%s: %+v, %v, then %s", name, dec.Record, err, dec.Do)
		}
	}
}
