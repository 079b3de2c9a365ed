package machine

import (
	"errors"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// "C5: a step in doubt with a lookup is looked up first, to learn its external id".
func TestC5LookBeforeUndo(t *testing.T) {
	for _, repeat := range []string{"find", "idempotent lookup", "keyed=1h lookup"} {
		d := begin(t, "a "+repeat+" undo").cancelAfter(saga.Unknown).wants("wait", saga.Compensating).due()
		d.wants("look a forward", saga.Compensating).found(KindUnclear).wants("wait", saga.Compensating).due()
		d.wants("look a forward", saga.Compensating).found(KindFound, "inv_9").wants("act a undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "inv_9" {
			t.Errorf("%s: the undo gets %+v", repeat, in.Undoing)
		}
	}
}

// "C5": a lookup that cannot tell for too long brings a person in here, too, and his word counts.
func TestC5CannotTell(t *testing.T) {
	d := begin(t, "a find undo").cancelAfter(saga.Unknown).due()
	for range maxLookups - 1 {
		d.found(KindUnclear).due()
	}
	d.found(KindUnclear).review(saga.ReasonInDoubt)
	d.resolution("").wants("look a forward", saga.Compensating) // the attempts have settled: ask once more
	d.found(KindNotFound).wants("rest", saga.Compensated)
}

// "C5: ... So is one whose result is not on record (a person's resolution, an adoption, a result
// too large to keep), where its undo takes no nil".
func TestC5LookForTheResult(t *testing.T) {
	without := func(t *testing.T, line string) *desk { // done, by the word of a person who knows the id only
		t.Helper()
		return begin(t, line+"\nb find undo").fail(saga.Unknown).due().found(KindSeveral, "1", "2").review(saga.ReasonInDoubt).resolution("inv_9").
			wants("act b forward", saga.Running).fail(saga.Refused).wants("look a undo", saga.Compensating)
	}
	const a = "a find undo"
	t.Run("it tells the result", func(t *testing.T) {
		d := without(t, a)
		if in := d.st.Invocation(d.last.Do); in.Key != d.st.Step("a").Forward.Key || in.Direction != saga.Undo {
			t.Errorf("the lookup is called with %+v", in)
		}
		d.found(KindFound, "inv_9").wants("act a undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); string(in.Undoing.Output) != `{"id":"inv_9"}` {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
		d.succeed("").wants("rest", saga.Compensated)
	})
	t.Run("it tells no id: the one on record stays", func(t *testing.T) {
		d := without(t, a).feed(Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound, Output: output("?")}}).wants("act a undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing.ExternalID != "inv_9" || string(in.Undoing.Output) != `{"id":"?"}` {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
	})
	t.Run("half-made", func(t *testing.T) {
		without(t, a).found(KindUnfinished, "inv_9").wants("act a undo", saga.Compensating)
	})
	t.Run("it cannot tell, and then it does", func(t *testing.T) {
		without(t, a).found(KindUnclear).wants("wait", saga.Compensating).due().wants("look a undo", saga.Compensating).
			found(KindFound, "inv_9").wants("act a undo", saga.Compensating)
	})
	for what, answer := range map[string]func(*desk) *desk{
		"found nothing":                             func(d *desk) *desk { return d.found(KindNotFound) },
		`found 2 of them: ["1" "2"]`:                func(d *desk) *desk { return d.found(KindSeveral, "1", "2") },
		`found "inv_8" beside the recorded "inv_9"`: func(d *desk) *desk { return d.found(KindFound, "inv_8") },
		"found it with a result that cannot be kept": func(d *desk) *desk {
			return d.feed(Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound, ExternalID: "inv_9", Dropped: true}})
		},
		"could not tell: ": func(d *desk) *desk {
			for range maxLookups - 1 {
				d.found(KindUnclear).due()
			}
			return d.found(KindUnclear)
		},
	} {
		t.Run(what, func(t *testing.T) {
			d := answer(without(t, a)).review(saga.ReasonUndoFailed)
			if r := d.tail(); r.Body != nil || r.ExternalID != "" && r.ExternalID != "inv_9" {
				t.Errorf("another's thing is recorded as what the step made: %q %s", r.ExternalID, r.Body)
			}
			if want := `what step "a" made is not on record, and the lookup that was to tell it ` + what; d.st.Note != want {
				t.Errorf("the review says %q, want %q", d.st.Note, want)
			}
			if ss, dir := d.st.Issue(d.spec); ss == nil || ss.Name != "a" || dir != saga.Undo {
				t.Errorf("the review is about %+v %s", ss, dir)
			}
			if next := Next(d.spec, d.st); !strings.Contains(next, `Look at its destination whether step "a" (inv_9) is undone already`) {
				t.Errorf("next: %s", next)
			}
			d.resolution("").wants("look a undo", saga.Compensating).found(KindNotFound).review(saga.ReasonUndoFailed)
			d.resolution("void it was").wants("rest", saga.Compensated)
		})
	}
	t.Run("an answer on the way forward tells no undo anything", func(t *testing.T) {
		d := begin(t, a+"\nb find undo").outcome(program.Outcome{Class: program.Succeeded, ExternalID: "inv_9", Dropped: true}).fail(saga.Unsent)
		if err := d.try(Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerFound, ExternalID: "inv_8"}}); !errors.Is(err, errNotFitting) {
			t.Errorf("it is taken: %v, %+v", err, d.tail())
		}
	})
	t.Run("nor does one on what is not there", func(t *testing.T) {
		d := begin(t, a+"\nb find undo").succeed("1").fail(saga.Unknown).due()
		d.busy = true
		d.cancel().found(KindNotFound).feed(Event{Evidence: &program.Evidence{Step: "b", Answer: program.AnswerFound, ExternalID: "late", Output: output("late")}}).wants("slot b undo", saga.Compensating)
		if r := d.tail(); r.Direction != saga.Forward || !d.st.Step("b").stands(d.spec) { // so it is undone, too
			t.Errorf("recorded %+v", r)
		}
	})
	t.Run("an undo that takes a nil does not ask", func(t *testing.T) {
		begin(t, "a find undo-maybe\nb find undo").fail(saga.Unknown).due().found(KindSeveral, "1", "2").resolution("inv_9").
			fail(saga.Refused).wants("act a undo", saga.Compensating)
	})
	t.Run("too large to keep", func(t *testing.T) {
		d := begin(t, a+"\nb find undo").outcome(program.Outcome{Class: program.Succeeded, ExternalID: "inv_9", Dropped: true}).fail(saga.Refused)
		d.wants("look a undo", saga.Compensating)
	})
	t.Run("left by an earlier revision", func(t *testing.T) {
		d := beginAt(t, "b find undo\na find undo").succeed("b").outcome(program.Outcome{Class: program.Succeeded, ExternalID: "inv_9", Dropped: true}).
			revise("2").fail(saga.Refused).wants("look a undo", saga.Compensating)
		if in := d.st.Invocation(d.last.Do); in.Key == "" || in.Previous.ExternalID != "inv_9" {
			t.Errorf("the lookup is called with %+v", in)
		}
		d.found(KindNotFound).review(saga.ReasonUndoFailed).resolution("void").wants("act b undo", saga.Compensating)
	})
	t.Run("adopted", func(t *testing.T) {
		adoption := told(t, "17 cancelled", "a inv_9", "b unknown")
		adoption.Effects["a"] = Effect{ExternalID: "inv_9"} // and what the books say about it is not known
		d := lost(t, "a find undo\nb at-most-once lookup undo").takeOver(adoption).tick()
		d.wants("look b undo", saga.Compensating).found(KindNotFound).wants("look a undo", saga.Compensating) // of b nothing is owed
		if in := d.st.Invocation(d.last.Do); in.Key != StepKey(RootKey(order.Saga, order.Work, "17"), "a", saga.Forward, 0) {
			t.Errorf("the lookup is called with key %q", in.Key)
		}
		d.found(KindFound, "inv_9").wants("act a undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	})
}
