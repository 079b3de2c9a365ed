package machine

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// verify empties the network and holds what is there against the invariants.
func (w *world) verify() {
	w.pass(time.Hour)
	for i := range w.spec.Steps {
		w.verifyStep(&w.spec.Steps[i])
	}
	for key, n := range w.dest.perKey {
		if n > 1 && w.keyed(key) {
			w.brokenf("I2: %d effects under the key %s", n, key)
		}
	}
	w.verifyChain()
	w.verifySource()
}

// verifyStep counts the effects of s over all revisions, and looks at what is there in the end. A
// step about which a person spoke in haste may be there, or twice: nobody waited for what was on
// its way.
func (w *world) verifyStep(s *program.StepSpec) {
	there, effects := w.dest.things[s.Name], w.dest.effects[s.Name]
	most := 1 + w.reissue[s.Name] + w.undos(s.Name)
	guarded := s.Repeat == program.RepeatAtMostOnce || s.Repeat == program.RepeatFind
	current := slices.DeleteFunc(slices.Clone(there), func(o object) bool { return o.says != content(w.st.Input) })
	switch {
	case guarded && effects > most:
		w.brokenf("I1: %d effects of %s, and at most %d are allowed", effects, s.Name, most)
	case w.hasty[s.Name]:
	case w.st.Status == saga.Completed && w.st.Step(s.Name).Forward.Phase == Skipped:
	case w.st.Status == saga.Completed && w.st.Step(s.Name).Undo.Phase == Done && w.taken != "": // made good by hand, and then kept
	case w.st.Status == saga.Compensated && s.Undo && len(there) > 0:
		w.brokenf("I4: compensated, and %s is there: %+v", s.Name, there)
	case w.st.Status == saga.Completed && len(there) == 0:
		w.brokenf("I7: completed, and %s is not there", s.Name)
	case w.st.Status == saga.Completed && !s.OncePerInstance() && len(current) != 1:
		w.brokenf("I9: completed with content %s, and of %s there is %+v", w.st.Input, s.Name, there)
	case w.st.Status == saga.Completed && len(there) > 1:
		w.brokenf("I9: completed, and of %s there are several: %+v", s.Name, there)
	}
}

// undos counts how often the step was undone, by the machine or by hand: after each it may be made
// anew.
func (w *world) undos(step string) (n int) {
	for i := range w.chain {
		if r := &w.chain[i]; r.Step == step && r.Direction == saga.Undo && (r.Kind == KindDone || r.Kind == KindResolved && r.ErrorClass == "") {
			n++
		}
	}
	return n
}

// verifySource: what the source said last was heard, nothing waits any more, and the work shows it,
// unless a person took it back or kept what stood.
func (w *world) verifySource() {
	last := strconv.Itoa(w.source.revision)
	switch {
	case w.st.NewestRevision != last || w.st.PendingRevision != nil:
		w.brokenf("liveness: heard %s of %s, and %+v waits at the end", w.st.NewestRevision, last, w.st.PendingRevision)
	case w.taken != "" && saga.CompareRevisions(w.taken, w.settled()) >= 0:
	case w.source.gone && w.st.Status != saga.Compensated:
		w.brokenf("liveness: the source cancelled it, and the work is %s", w.st.Status)
	case !w.source.gone && content(w.st.Input) != w.source.content:
		w.brokenf("liveness: the work is %s at content %s, and the source at %d", w.st.Status, w.st.Input, w.source.content)
	}
}

// settled is the oldest revision that says what the source said last.
func (w *world) settled() string {
	rev := strconv.Itoa(w.source.revision)
	for _, h := range slices.Backward(w.source.history) {
		if (h.Kind == SignalCancel) != w.source.gone || !w.source.gone && string(h.Input) != string(w.source.input()) {
			break
		}
		rev = h.Revision
	}
	return rev
}

// keyed reports whether key is one of a Keyed step.
func (w *world) keyed(key string) bool {
	for i := range w.chain {
		if a := w.chain[i].Dispatch; a != nil && a.Key == key {
			return w.spec.Steps[w.spec.Index(a.Step)].Repeat == program.RepeatKeyed
		}
	}
	return false
}

// audit reads the records as an auditor would, without the fold.
type audit struct {
	turned, bySource bool
	pivot            bool            // done while the work went forward
	owed             map[string]bool // by this revision
	stands           map[string]bool // from earlier ones
	undone           map[string]bool
	lapsed           map[string]bool // armed by what was forgotten, perhaps
}

func (w *world) verifyChain() {
	a := audit{owed: map[string]bool{}, stands: map[string]bool{}, undone: map[string]bool{}, lapsed: map[string]bool{}}
	for i := range w.chain {
		r := &w.chain[i]
		before := a.turned
		a.read(w, r)
		if arm := r.Dispatch; arm != nil {
			if arm.Direction == saga.Forward && a.turned {
				w.brokenf("I13: record %d arms %s forward while compensating", r.Seq, arm.Step)
			}
			if arm.Direction == saga.Undo && !before {
				w.brokenf("C13: record %d turns the work and arms the undo of %s", r.Seq, arm.Step)
			}
			if arm.Direction == saga.Undo && a.pivot && !a.bySource {
				w.brokenf("I13: record %d undoes %s behind the pivot", r.Seq, arm.Step)
			}
		}
	}
	for i := range w.spec.Steps {
		s := &w.spec.Steps[i]
		if w.st.Status == saga.Compensated && s.NoUndoReason == "" && (a.owed[s.Name] || a.stands[s.Name] || a.lapsed[s.Name]) && !a.undone[s.Name] {
			w.brokenf("I15: compensated, and the undo of %s was skipped", s.Name)
		}
	}
	if st, err := Fold(order, w.chain); err != nil || string(dump(w.t, st)) != string(dump(w.t, w.st)) {
		w.brokenf("R4: the whole chain folds to something else (%v)", err)
	}
}

func (a *audit) read(w *world, r *Record) {
	switch {
	case r.Kind == KindRevised:
		a.turned, a.bySource = false, false
		for i := range w.spec.Steps {
			name := w.spec.Steps[i].Name
			a.stands[name] = (a.stands[name] || a.owed[name]) && !a.undone[name]
			a.owed[name], a.undone[name], a.lapsed[name] = false, false, false
		}
	case r.Kind == KindForgotten:
		var lapses []lapse
		if err := json.Unmarshal(r.Body, &lapses); err != nil {
			w.t.Fatal(err)
		}
		for _, l := range lapses {
			a.lapsed[l.Step] = true
		}
	case r.Direction == saga.Undo && (r.Kind == KindDone || r.Kind == KindResolved && r.ErrorClass == ""):
		a.undone[r.Step] = true
	case r.Direction == saga.Forward:
		a.learn(w, r)
	}
	a.turned = a.turned || r.Status == saga.Compensating || r.Kind == KindCancelled
	a.bySource = a.bySource || r.Kind == KindCancelled && r.Revision != ""
	if p := w.spec.PivotIndex(); p < len(w.spec.Steps) && a.undone[w.spec.Steps[p].Name] {
		a.pivot = false
	}
}

func (a *audit) learn(w *world, r *Record) {
	if r.Kind == KindNotFound || r.Kind == KindUnfinished { // then nothing behind it was armed
		for i := w.spec.Index(r.Step); i < len(w.spec.Steps); i++ {
			a.lapsed[w.spec.Steps[i].Name] = false
		}
	}
	switch r.Kind { //nolint:exhaustive // no other kind says anything about the effect
	case KindDone, KindUnknown, KindLost, KindFound, KindUnfinished, KindSeveral:
		a.owed[r.Step] = true
	case KindNotFound:
		a.owed[r.Step] = false
	case KindResolved:
		a.owed[r.Step], a.lapsed[r.Step] = r.ErrorClass == "", false
	case KindRefused: // F31
		settles := r.ErrorClass == saga.RefusedKey
		a.owed[r.Step], a.lapsed[r.Step] = a.owed[r.Step] && !settles, a.lapsed[r.Step] && !settles
	case KindSkipped:
		a.owed[r.Step], a.lapsed[r.Step] = false, false
	}
	done := r.Kind == KindDone || r.Kind == KindFound || r.Kind == KindResolved && r.ErrorClass == ""
	if p := w.spec.PivotIndex(); done && !a.turned && w.spec.Index(r.Step) == p {
		a.pivot = true
	}
}
