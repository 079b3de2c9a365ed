package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Rule (D1 to D9): whatever happened to a work, when its ledger is lost at any moment and rebuilt
// from what its source and its destinations have: adopting sends nothing; cut off and repeated, or
// done twice, it folds to the same state; a work that had ended folds to what it was, with the same
// ids; and when it goes on, nothing that stands is made again.
func TestRebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.live(rapid.IntRange(0, 60).Draw(t, "faulty rounds"))
		if rapid.Bool().Draw(t, "to its end") {
			w.calm()
		}
		w.rebuild()
	})
}

// rebuild loses the ledger, once everything that was sent has settled, and everything that anybody
// knew.
func (w *world) rebuild() {
	if w.last.Do.Do == Act {
		w.dies()
	}
	w.pass(time.Hour)
	w.quiet = false
	w.late, w.unread, w.source.news = nil, nil, nil
	w.dest.keys = map[string]memory{} // they are over, too
	old, taken, before := w.st, w.taken, maps.Clone(w.dest.effects)
	thorough := w.chance(60, "everything is looked at")
	a := w.remains(thorough)
	w.taken = ""

	w.adoptAnew(a)
	once := string(dump(w.t, w.st))
	if w.adoptAnew(a); string(dump(w.t, w.st)) != once {
		w.brokenf("D8: adopted twice it folds to\n%s\nand\n%s", once, dump(w.t, w.st))
	}
	if !maps.Equal(w.dest.effects, before) || len(w.dest.network) > 0 {
		w.brokenf("D1: adopting sent something: %v, before %v", w.dest.effects, before)
	}
	if taken == "" && thorough {
		w.equals(old)
	}
	adopted := w.st.clone()
	w.last = Decision{}
	w.calm()
	w.pass(time.Hour)
	w.verifyRebuilt(a, adopted, before)
	w.verifySource()
	w.confirmAll(a, adopted, before)
}

// adoptAnew begins with nothing. Whoever adopts may be cut off, and somebody else looks at the work
// meanwhile.
func (w *world) adoptAnew(a *Adoption) {
	w.chain, w.st, w.tally = nil, &State{ID: order}, tally{}
	if n := rapid.IntRange(0, 4).Draw(w.t, "cut off after"); n > 0 {
		w.adoptSome(a, n)
		if dec, err := Decide(w.spec, w.st, w.event(Event{})); w.st.Adopting && (err != nil || dec.Record != nil || dec.Do.Do != Rest) {
			w.brokenf("D1: between its records the machine says %+v, %v", dec, err)
		}
	}
	w.adoptSome(a, 0)
	if w.st.Adopting || w.st.live() != nil {
		w.brokenf("D5: the adoption is not at its end: %s", dump(w.t, w.st))
	}
	for i := range w.chain {
		w.diary = append(w.diary, show(&w.chain[i]))
		storable(w.t, &w.chain[i])
	}
}

func (w *world) adoptSome(a *Adoption, most int) {
	if err := w.adopt(a, most); err != nil {
		w.brokenf("an adoption that is refused: %v\n%+v", err, a)
	}
}

// remains is what source and destinations have, looked at by somebody honest. Not everything is
// looked at.
func (w *world) remains(thorough bool) *Adoption {
	a := &Adoption{
		Revision: strconv.Itoa(w.source.revision), Input: w.source.input(), Cancelled: w.source.gone, Effects: map[string]Effect{}, Actor: "rebuild",
	}
	for i := range w.spec.Steps {
		s := &w.spec.Steps[i]
		there := w.dest.things[s.Name]
		present := len(there) == 1 && (s.OncePerInstance() || there[0].says == w.source.content) && !there[0].half
		mail := s.Repeat == program.RepeatAtMostOnce && (len(there) == 0 || !a.Cancelled || !s.Undo)
		look := mail && w.chance(50, "evidence") || !mail && (thorough || a.Cancelled || !w.chance(50, "not looked at"))
		switch {
		case mail && !look: // no evidence of a mail
		case len(there) > 1:
			w.t.Skip("somebody spoke in haste, and there are two")
		case len(there) == 0 && look:
			a.Effects[s.Name] = Effect{NotDone: true}
		case present && look:
			a.Effects[s.Name] = Effect{ExternalID: there[0].id, Output: output(there[0].id)}
		case len(there) == 1 && (a.Cancelled || !present && (!there[0].half || there[0].says != w.source.content)): // a lookup would not see it
			a.Effects[s.Name] = Effect{ExternalID: there[0].id, Output: output(there[0].id), Revision: "0"}
		case len(there) == 0 && unguarded(s): // it would count as done
			a.Effects[s.Name] = Effect{NotDone: true}
		}
	}
	return a
}

// equals holds an adopted work against what it was, if it had ended as the source wants it.
func (w *world) equals(old *State) {
	switch {
	case old.PendingRevision != nil || old.NewestRevision != strconv.Itoa(w.source.revision):
		return // it had not heard everything
	case slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(w.dest.things))...), func(o object) bool { return o.half }):
		return // a late answer, and nobody posted it
	case len(w.hasty) > 0:
		return // a person was wrong
	case slices.ContainsFunc(old.Steps, func(ss StepState) bool { return ss.Forward.Phase == Skipped }):
		return // that it was skipped is lost, and it is done (D4)
	case w.source.gone && old.Status == saga.Compensated && w.st.Status != saga.Compensated:
		w.brokenf("it was compensated, and is %s %s: %s", w.st.Status, w.st.Reason, dump(w.t, w.st))
	case w.source.gone || old.Status != saga.Completed:
		return
	case w.st.Status != saga.Completed || saga.CompareRevisions(w.st.NewestRevision, old.NewestRevision) != 0 || string(w.st.Input) != string(old.Input):
		w.brokenf("it was completed, and is %s at %s: %s", w.st.Status, w.st.Revision, dump(w.t, w.st))
	}
	for i := range w.spec.Steps {
		name := w.spec.Steps[i].Name
		was, is := old.Step(name), w.st.Step(name)
		if is == nil || is.Forward.Phase != Done || !is.Unconfirmed && is.ExternalID != was.ExternalID {
			w.brokenf("%s was %s, and is %s", name, dump(w.t, was), dump(w.t, is))
		}
	}
}

// verifyRebuilt looks at what there is when the work has ended.
func (w *world) verifyRebuilt(a *Adoption, adopted *State, before map[string]int) {
	for i := range w.spec.Steps {
		s := &w.spec.Steps[i]
		there, made := w.dest.things[s.Name], w.dest.effects[s.Name]-before[s.Name]
		ss, e := adopted.Step(s.Name), a.Effects[s.Name]
		stood := ss != nil && (ss.Forward.Phase == Done || ss.Previous != nil)
		switch {
		case w.hasty[s.Name]:
		case stood && made > 0 && w.reissue[s.Name] == 0 && w.undos(s.Name) == 0:
			w.brokenf("%s stood, and %d more were made: %+v", s.Name, made, there)
		case w.st.Status == saga.Completed && len(there) > 1:
			w.brokenf("completed, and of %s there are several: %+v", s.Name, there)
		case w.st.Status == saga.Completed && len(there) == 0 && !ss.unsure() && w.st.Step(s.Name).Undo.Phase != Done:
			w.brokenf("completed, and %s is not there (%+v)", s.Name, e)
		case w.st.Status == saga.Compensated && s.Undo && len(there) > 0:
			w.brokenf("compensated, and %s is there: %+v", s.Name, there)
		}
	}
	if st, err := Fold(order, w.chain); err != nil || string(dump(w.t, st)) != string(dump(w.t, w.st)) {
		w.brokenf("R4: the whole chain folds to something else (%v)", err)
	}
}

// unsure reports whether the step was adopted as done because nobody can tell.
func (ss *StepState) unsure() bool { return ss != nil && ss.Unconfirmed }

// Rule: the same for every definition of one step, every class and every moment at which the ledger
// is lost, without luck.
func TestRebuildAtEveryRecord(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"idempotent undo", "keyed=1h undo", "find undo", "at-most-once undo"} {
		lines := "a idempotent undo\nx " + class + "\nz at-most-once no-undo pivot"
		if class == "at-most-once undo" {
			lines = "a idempotent undo\nx at-most-once lookup undo\nz at-most-once no-undo pivot"
		}
		for stands := range 4 { // so many steps took effect
			t.Run(fmt.Sprintf("%s, %d stand", class, stands), func(t *testing.T) {
				t.Parallel()
				a := told(t, "17")
				for i, step := range []string{"a", "x", "z"} {
					a.Effects[step] = Effect{NotDone: i >= stands}
					if i < stands {
						a.Effects[step] = Effect{ExternalID: step + "_1", Output: output(step + "_1")}
					}
				}
				d := lost(t, lines).takeOver(a)
				if n := len(d.chain); n != 1+max(stands, 1) {
					t.Errorf("%d records", n)
				}
				d.tick()
				for i, step := range []string{"a", "x", "z"} {
					if i < stands {
						continue
					}
					d.wants("act "+step+" forward", saga.Running).succeed(step + "_2")
				}
				if d.st.Status != saga.Completed || slices.ContainsFunc(d.chain[:1+stands], func(r Record) bool { return r.Dispatch != nil && r.Kind == KindAdopted }) {
					t.Errorf("the work is %s", d.st.Status)
				}
			})
		}
	}
}
