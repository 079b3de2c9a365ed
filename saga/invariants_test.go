package saga

import "time"

// verify empties the network and holds what is there against the invariants.
func (w *world) verify() {
	w.pass(time.Hour)
	for i := range w.spec.Steps {
		s := &w.spec.Steps[i]
		effects, most := w.dest.effects[s.Name], 1+w.reissue[s.Name]
		switch {
		case s.Repeat == RepeatAtMostOnce && effects > most:
			w.t.Fatalf("I1: %d effects of %s, and %d reissues", effects, s.Name, w.reissue[s.Name])
		case s.Repeat == RepeatFind && effects > most:
			w.t.Fatalf("%d effects of %s under A1-A3, and %d reissues", effects, s.Name, w.reissue[s.Name])
		case w.st.Status == Compensated && s.Undo && !w.hasty[s.Name] && len(w.dest.things[s.Name]) > 0:
			w.t.Fatalf("I4: compensated, and %s is there: %+v", s.Name, w.dest.things[s.Name])
		case w.st.Status == Completed && len(w.dest.things[s.Name]) == 0:
			w.t.Fatalf("I7: completed, and %s is not there", s.Name)
		}
	}
	for key, n := range w.dest.perKey {
		if n > 1 && w.keyed(key) {
			w.t.Fatalf("I2: %d effects under the key %s", n, key)
		}
	}
	w.verifyChain()
}

// keyed reports whether key is one of a Keyed step.
func (w *world) keyed(key string) bool {
	for i := range w.chain {
		if a := w.chain[i].Arm; a != nil && a.Key == key {
			return w.spec.Steps[w.spec.index(a.Step)].Repeat == RepeatKeyed
		}
	}
	return false
}

// verifyChain reads the records as an auditor would, without the fold.
func (w *world) verifyChain() {
	turned := false
	owed, undone := map[string]bool{}, map[string]bool{}
	for i := range w.chain {
		r := &w.chain[i]
		if r.Direction == Forward {
			switch r.Kind { //nolint:exhaustive // no other kind says anything about the effect
			case KindDone, KindUnknown, KindLost, KindFound, KindUnfinished, KindSeveral:
				owed[r.Step] = true
			case KindNotFound:
				owed[r.Step] = false
			case KindResolved:
				owed[r.Step] = r.Class == ""
			}
		}
		if r.Direction == Undo && (r.Kind == KindDone || r.Kind == KindResolved && r.Class == "") {
			undone[r.Step] = true
		}
		before := turned
		turned = turned || r.Status == Compensating || r.Kind == KindCancelled
		if a := r.Arm; a != nil {
			if a.Direction == Forward && turned {
				w.t.Fatalf("I13: record %d arms %s forward while compensating", r.Seq, a.Step)
			}
			if a.Direction == Undo && !before {
				w.t.Fatalf("C13: record %d turns the work and arms the undo of %s", r.Seq, a.Step)
			}
			if a.Direction == Undo && w.pivoted {
				w.t.Fatalf("I13: record %d undoes %s behind the pivot", r.Seq, a.Step)
			}
		}
	}
	for i := range w.spec.Steps {
		s := &w.spec.Steps[i]
		if w.st.Status == Compensated && s.NoUndo == "" && owed[s.Name] && !undone[s.Name] {
			w.t.Fatalf("I15: compensated, and the undo of %s was skipped", s.Name)
		}
	}
	if st, err := Fold(order, w.chain); err != nil || string(dump(w.t, st)) != string(dump(w.t, w.st)) {
		w.t.Fatalf("R4: the whole chain folds to something else (%v)", err)
	}
}
