package machine

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Rule (F17): AtMostOnce is never sent again without a person's word, whatever lookups
// answer, on no path: not when it is found half-made, not behind a revision, not when the work went
// back meanwhile, not over a fail-over. And once lookups tell the truth again the work ends.
func TestLookupsThatLie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorldOf(t, drawDefinition(t, "at-most-once lookup", "at-most-once lookup", "at-most-once lookup"))
		w.liar = true
		w.live(rapid.IntRange(5, 120).Draw(t, "faulty rounds"))
		w.calm()
		w.pass(time.Hour)
		w.verifyChain()
		for i := range w.spec.Steps {
			s := &w.spec.Steps[i]
			if n := w.dest.effects[s.Name]; s.Repeat == program.RepeatAtMostOnce && n > 1+w.tally.allowed[s.Name] {
				w.brokenf("I1: %d effects of %s, and at most %d are allowed", n, s.Name, 1+w.tally.allowed[s.Name])
			}
		}
	})
}

// lie answers a lookup with what luck wants.
func (w *world) lie(step string) {
	f := program.Evidence{Step: step, IDs: []string{"l1", "l2"}, Answer: rapid.SampledFrom([]program.Answer{
		program.AnswerFound, program.AnswerNotFound, program.AnswerNotFound, program.AnswerUnfinished, program.AnswerUnfinished, program.AnswerSeveral, program.AnswerUnclear,
	}).Draw(w.t, "lie")}
	if f.Answer == program.AnswerFound || f.Answer == program.AnswerUnfinished {
		f.ExternalID, f.Output = "l1", output("l1")
	}
	w.feedSafe(Event{Evidence: &f})
}

// "F17: ... Review", on every path that leads from a lookup to another send.
func TestF17NoPathToASecondSend(t *testing.T) {
	const noUndo, undo = "a idempotent undo\nm at-most-once lookup no-undo\nz find undo", "a idempotent undo\nm at-most-once lookup undo\nz find undo"
	t.Run("found half-made", func(t *testing.T) {
		d := beginAt(t, noUndo).succeed("a1").fail(saga.Unknown).due().found(KindUnfinished, "draft").review(saga.ReasonInDoubt)
		d.wait(24 * time.Hour).review(saga.ReasonInDoubt)
		d.resolution("m1").wants("act z forward", saga.Running)
	})
	t.Run("half-made, and a newer version waits", func(t *testing.T) {
		d := beginAt(t, noUndo).succeed("a1").fail(saga.Unknown).revise("2").due().found(KindUnfinished, "draft").review(saga.ReasonInDoubt)
		d.resolution("m1").runs("2", "")
	})
	t.Run("half-made, and a person cancels: what is known of it is undone", func(t *testing.T) {
		d := beginAt(t, undo).succeed("a1").fail(saga.Unknown).due().found(KindUnfinished, "draft").review(saga.ReasonInDoubt).cancel()
		if in := d.wants("act m undo", saga.Compensating).st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "draft" {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
	})
	t.Run("half-made on the way back, and there is no undo: the next version asks", func(t *testing.T) {
		d := beginAt(t, noUndo).succeed("a1").fail(saga.Unknown).due().found(KindUnfinished, "draft").cancel().succeed("").resolutionIs(saga.Compensated)
		d.revise("2").review(saga.ReasonInDoubt)
	})
	t.Run("not found, and a newer version waits", func(t *testing.T) {
		d := beginAt(t, noUndo).succeed("a1").fail(saga.Unknown).revise("2").due().found(KindNotFound).review(saga.ReasonInDoubt)
		d.resolution("").runs("2", "").wants("act a forward", saga.Running)
	})
	t.Run("not found on the way back, and then a newer version", func(t *testing.T) {
		d := beginAt(t, undo).succeed("a1").fail(saga.Unknown).cancel().due().found(KindNotFound)
		d.wants("act a undo", saga.Compensating).succeed("").resolutionIs(saga.Compensated)
		d.revise("2").review(saga.ReasonInDoubt)
		d.resolution("").runs("2", "").wants("act a forward", saga.Running)
	})
	t.Run("not found, and the newer version comes on the way back", func(t *testing.T) {
		d := beginAt(t, undo).succeed("a1").fail(saga.Unknown).cancel().revise("2").due().found(KindNotFound)
		d.wants("act a undo", saga.Compensating).succeed("").review(saga.ReasonInDoubt)
		d.resolution("m1").wants("look m undo", saga.Compensating).found(KindFound, "m1")
		d.wants("act m undo", saga.Compensating).succeed("").runs("2", "") // it stands, so it is undone first
	})
	t.Run("a fail-over, and another step is not found", func(t *testing.T) {
		d := begin(t, "z find undo\nm at-most-once no-undo")
		if err := d.failover(0); err != nil {
			t.Fatal(err)
		}
		d.due()
		d.due()
		d.found(KindNotFound).succeed("z1").review(saga.ReasonInDoubt)
	})
}

// F17 holds for a step that this version of the definition does not have: nothing says how it is
// safe to repeat.
func TestF17OfAStepThatIsNotInThisVersion(t *testing.T) {
	for _, kind := range []Kind{KindNotFound, KindUnfinished} {
		d := beginAt(t, "a idempotent undo\nm find no-undo").succeed("a1").fail(saga.Unknown).due().wants("look m forward", saga.Running)
		dec, err := Decide(structure(t, "a idempotent undo"), d.st, d.event(Event{Evidence: &program.Evidence{Step: "m", Answer: program.Answer(kind), ExternalID: "m1"}}))
		if err != nil || dec.Record == nil || dec.Record.ErrorClass != saga.Unknown {
			t.Errorf("%s is recorded as %+v, %v", kind, dec.Record, err)
		}
	}
}

// A step that one version of the definition leaves out, and the next has again, is not sent a
// second time.
func TestF17OverVersions(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nm at-most-once no-undo").through()
	for _, next := range []struct {
		version int
		lines   string
	}{{2, "a idempotent undo"}, {3, "a idempotent undo\nm at-most-once no-undo"}} {
		spec, err := define(order.Saga, next.version, next.lines)
		if err != nil {
			t.Fatal(err)
		}
		d.next = spec
		revision := string(rune('0' + next.version))
		d.feed(Event{Signal: &Signal{ID: int64(next.version), Kind: SignalRevise, News: News{Revision: revision, Version: next.version, Input: json.RawMessage(`"x"`)}}})
		for d.last.Do.Do == Act {
			d.succeed(d.last.Do.Step + revision)
		}
		d.wants("rest", saga.Completed)
	}
	if ss := d.st.Step("m"); ss.Forward.Attempts != 1 || ss.ExternalID != "m-1" {
		t.Errorf("the mail is %+v", ss)
	}
}
