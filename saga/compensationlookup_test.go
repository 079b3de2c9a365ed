package saga

import (
	"errors"
	"strings"
	"testing"
)

// "C5: a step in doubt with a lookup is looked up first, to learn its external id".
func TestC5LookBeforeUndo(t *testing.T) {
	for _, repeat := range []string{"find", "idempotent lookup", "keyed=1h lookup"} {
		d := begin(t, "a "+repeat+" undo").cancelAfter(Unknown).wants("wait", Compensating).due()
		d.wants("look a forward", Compensating).found(KindUnclear).wants("wait", Compensating).due()
		d.wants("look a forward", Compensating).found(KindFound, "inv_9").wants("act a undo", Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "inv_9" {
			t.Errorf("%s: the undo gets %+v", repeat, in.Undoing)
		}
	}
}

// "C5": a lookup that cannot tell for too long brings a person in here, too, and his word counts.
func TestC5CannotTell(t *testing.T) {
	d := begin(t, "a find undo").cancelAfter(Unknown).due()
	for range maxLookups - 1 {
		d.found(KindUnclear).due()
	}
	d.found(KindUnclear).review(ReasonInDoubt)
	d.verdict("").wants("look a forward", Compensating) // the attempts have settled: ask once more
	d.found(KindNotFound).wants("rest", Compensated)
}

// "C5: ... So is one whose result is not on record (a person's verdict, an adoption, a result too large to keep), where
// its undo takes no nil" (A4).
func TestC5LookForTheResult(t *testing.T) {
	without := func(t *testing.T, line string) *desk { // done, by the word of a person who knows the id only
		t.Helper()
		return begin(t, line+"\nb find undo").fail(Unknown).due().found(KindSeveral, "1", "2").review(ReasonInDoubt).verdict("inv_9").
			wants("act b forward", Running).fail(Refused).wants("look a undo", Compensating)
	}
	const a = "a find undo"
	t.Run("it tells the result", func(t *testing.T) {
		d := without(t, a)
		if in := d.st.Invocation(d.last.Do); in.Key != d.st.Step("a").Forward.Key || in.Direction != Undo {
			t.Errorf("the lookup is called with %+v", in)
		}
		d.found(KindFound, "inv_9").wants("act a undo", Compensating)
		if in := d.st.Invocation(d.last.Do); string(in.Undoing.Output) != `{"id":"inv_9"}` {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
		d.succeed("").wants("rest", Compensated)
	})
	t.Run("it tells no id: the one on record stays", func(t *testing.T) {
		d := without(t, a).feed(Event{Evidence: &Evidence{Step: "a", Kind: KindFound, Output: output("?")}}).wants("act a undo", Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing.ExternalID != "inv_9" || string(in.Undoing.Output) != `{"id":"?"}` {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
	})
	t.Run("half-made", func(t *testing.T) {
		without(t, a).found(KindUnfinished, "inv_9").wants("act a undo", Compensating)
	})
	t.Run("it cannot tell, and then it does", func(t *testing.T) {
		without(t, a).found(KindUnclear).wants("wait", Compensating).due().wants("look a undo", Compensating).
			found(KindFound, "inv_9").wants("act a undo", Compensating)
	})
	for what, answer := range map[string]func(*desk) *desk{
		"found nothing":                             func(d *desk) *desk { return d.found(KindNotFound) },
		`found 2 of them: ["1" "2"]`:                func(d *desk) *desk { return d.found(KindSeveral, "1", "2") },
		`found "inv_8" beside the recorded "inv_9"`: func(d *desk) *desk { return d.found(KindFound, "inv_8") },
		"found it with a result that cannot be kept": func(d *desk) *desk {
			return d.feed(Event{Evidence: &Evidence{Step: "a", Kind: KindFound, ExternalID: "inv_9", Dropped: true}})
		},
		"could not tell: ": func(d *desk) *desk {
			for range maxLookups - 1 {
				d.found(KindUnclear).due()
			}
			return d.found(KindUnclear)
		},
	} {
		t.Run(what, func(t *testing.T) {
			d := answer(without(t, a)).review(ReasonUndoFailed)
			if r := d.tail(); r.Body != nil || r.ExternalID != "" && r.ExternalID != "inv_9" {
				t.Errorf("another's thing is recorded as what the step made: %q %s", r.ExternalID, r.Body)
			}
			if want := `what step "a" made is not on record, and the lookup that was to tell it ` + what; d.st.Note != want {
				t.Errorf("the review says %q, want %q", d.st.Note, want)
			}
			if ss, dir := d.st.Issue(d.spec); ss == nil || ss.Name != "a" || dir != Undo {
				t.Errorf("the review is about %+v %s", ss, dir)
			}
			if next := Next(d.spec, d.st); !strings.Contains(next, `Undo step "a" at its destination by hand`) {
				t.Errorf("next: %s", next)
			}
			d.verdict("").wants("look a undo", Compensating).found(KindNotFound).review(ReasonUndoFailed)
			d.verdict("void it was").wants("rest", Compensated)
		})
	}
	t.Run("an answer on the way forward tells no undo anything", func(t *testing.T) {
		d := begin(t, a+"\nb find undo").outcome(Outcome{Class: succeeded, ExternalID: "inv_9", Dropped: true}).fail(Unsent)
		if err := d.try(Event{Evidence: &Evidence{Step: "a", Kind: KindFound, ExternalID: "inv_8"}}); !errors.Is(err, errNotFitting) {
			t.Errorf("it is taken: %v, %+v", err, d.tail())
		}
	})
	t.Run("nor does one on what is not there", func(t *testing.T) {
		d := begin(t, a+"\nb find undo").succeed("1").fail(Unknown).due()
		d.busy = true
		d.cancel().found(KindNotFound).feed(Event{Evidence: &Evidence{Step: "b", Kind: KindFound, ExternalID: "late", Output: output("late")}}).wants("slot b undo", Compensating)
		if r := d.tail(); r.Direction != Forward || !d.st.Step("b").stands(d.spec) { // so it is undone, too
			t.Errorf("recorded %+v", r)
		}
	})
	t.Run("an undo that takes a nil does not ask", func(t *testing.T) {
		begin(t, "a find undo-maybe\nb find undo").fail(Unknown).due().found(KindSeveral, "1", "2").verdict("inv_9").
			fail(Refused).wants("act a undo", Compensating)
	})
	t.Run("too large to keep", func(t *testing.T) {
		d := begin(t, a+"\nb find undo").outcome(Outcome{Class: succeeded, ExternalID: "inv_9", Dropped: true}).fail(Refused)
		d.wants("look a undo", Compensating)
	})
	t.Run("left by an earlier revision", func(t *testing.T) {
		d := beginAt(t, "b find undo\na find undo").succeed("b").outcome(Outcome{Class: succeeded, ExternalID: "inv_9", Dropped: true}).
			revise("2").fail(Refused).wants("look a undo", Compensating)
		if in := d.st.Invocation(d.last.Do); in.Key == "" || in.Previous.ExternalID != "inv_9" {
			t.Errorf("the lookup is called with %+v", in)
		}
		d.found(KindNotFound).review(ReasonUndoFailed).verdict("void").wants("act b undo", Compensating)
	})
	t.Run("adopted", func(t *testing.T) {
		adoption := told(t, "17 cancelled", "a inv_9", "b unknown")
		adoption.Effects["a"] = Effect{ExternalID: "inv_9"} // and what the books say about it is not known
		d := lost(t, "a find undo\nb at-most-once lookup undo").takeOver(adoption).tick()
		d.wants("look b undo", Compensating).found(KindNotFound).wants("look a undo", Compensating) // of b nothing is owed
		if in := d.st.Invocation(d.last.Do); in.Key != StepKey(RootKey(order.Saga, order.Work, "17"), "a", Forward, 0) {
			t.Errorf("the lookup is called with key %q", in.Key)
		}
		d.found(KindFound, "inv_9").wants("act a undo", Compensating).succeed("").wants("rest", Compensated)
	})
}
