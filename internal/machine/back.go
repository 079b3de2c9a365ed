package machine

import (
	"cmp"
	"fmt"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// The way back: what is undone, in which order, and what comes after it.

// turn begins the way back. It is on record before anything is done about it.
func (m *machine) turn(why saga.Reason) Command {
	m.st.Compensating = true
	m.record(KindNoted)
	if m.rec.Said() == "" {
		m.rec.Note = parkedBecause[why]
	}
	return m.back()
}

// back undoes what may have happened, strictly in the reverse order of arming.
func (m *machine) back() Command {
	for _, ss := range m.st.newestFirst(m.spec) {
		if ss.Undo.Phase == Done || !ss.stands(m.spec) || m.st.keepsBefore(m.spec, ss) {
			continue
		}
		s := m.step(ss.Name)
		if s == nil || s.Waits() { // its name is a wait's by now
			return m.park(saga.ReasonAfterPivot)
		}
		if s.Undo {
			return m.undo(s, ss)
		}
	}
	if ss := m.leftOver(); ss != nil {
		cmd := m.park(saga.ReasonLate)
		m.rec.Note = lateWords(ss.Name)
		return cmd
	}
	if m.st.PendingRevision != nil && !m.st.PendingRevision.Withdrawn {
		return m.revive()
	}
	if m.st.UndoneFrom != "" {
		return m.finish(saga.Completed)
	}
	return m.finish(saga.Compensated)
}

// keepsBefore reports whether the step comes before the one with which the way back ends, so that it stays. One that this version of the
// definition does not have does: nothing says that it came later.
func (st *State) keepsBefore(spec *program.Spec, ss *StepState) bool {
	return st.UndoneFrom != "" && spec != nil && spec.Index(ss.Name) < spec.Index(st.UndoneFrom)
}

// revive begins the newer version that was heard while the work went back, or after it. What was
// left in doubt, because it need not be undone, is asked about first: the newer revision would make
// it a second time.
func (m *machine) revive() Command {
	if ss := m.st.leftInDoubt(m.spec); ss != nil {
		if s := m.step(ss.Name); s != nil && s.Find && ss.Forward.NeedsReview == "" {
			return m.look(s, &ss.Forward)
		}
		return m.park(saga.ReasonInDoubt)
	}
	if m.rec != nil {
		return m.again()
	}
	if err := m.fold(m.revised(*m.st.PendingRevision, nil)); err != nil { // it is undone, so it can begin again
		return m.cannotBe(err)
	}
	m.turned = false
	m.moving()
	return m.forward()
}

// undo decides on one step that is owed an undo.
func (m *machine) undo(s *program.StepSpec, ss *StepState) Command {
	f, u := &ss.Forward, &ss.Undo
	switch {
	case f.NeedsReview == saga.ReasonInDoubt && ss.Unfinished == nil: // a lookup found several: which one to undo is a person's choice
		return m.park(saga.ReasonInDoubt)
	case u.NeedsReview != "":
		return m.park(u.NeedsReview)
	case m.poisonous(u):
		return m.poison(u)
	case u.Phase == Refused && u.ErrorClass == saga.NotUndoable:
		return m.park(saga.ReasonCannotUndo)
	case u.Phase == Refused, m.exhausted(s, u):
		return m.park(saga.ReasonUndoFailed)
	}
	until := m.notBefore(s, u)
	if open := f.unsettled(); !open.IsZero() { // an earlier attempt may still arrive, and would outlive its undo
		if s.Find && f.Phase != Done {
			return m.look(s, f)
		}
		until = later(until, open.Add(s.Settle))
	}
	if !u.QuietUntil.IsZero() {
		until = later(until, u.QuietUntil.Add(s.Settle))
	}
	if m.ev.Now.Earliest.Before(until) {
		return m.wait(until, saga.Compensating)
	}
	if m.owesResult(ss) {
		m.moving()
		return Command{Do: Look, Step: s.Name, Direction: saga.Undo}
	}
	return m.arm(s, saga.Undo)
}

// owesResult reports whether the next thing about the step is a lookup that tells its undo what it
// made (C5): the undo takes no nil, and what made it is settled.
func (m *machine) owesResult(ss *StepState) bool {
	s, f := m.step(ss.Name), &ss.Forward
	settled := f.Phase == Done || f.Phase != InDoubt && f.unsettled().IsZero()
	return m.st.Compensating && s != nil && s.Undo && !s.UndoWhenUnknown && settled && ss.stands(m.spec) && !ss.undoing().Known()
}

// learnResult takes a lookup's answer that was to tell what the step made. One that does not tell
// it brings the work to review: an undo that has to guess could undo another's thing.
func (m *machine) learnResult(ss *StepState, f *program.Evidence) error {
	r := &Record{Kind: Kind(f.Answer), Step: ss.Name, Direction: saga.Undo, Attempt: ss.Undo.Attempts, Error: f.Error}
	recorded := ""
	if known := ss.undoing(); known != nil {
		recorded = known.ExternalID
	}
	why := ""
	switch r.Kind {
	case KindFound, KindUnfinished, KindOther:
		if r.Kind == KindOther { // what it should be is no question any more
			r.Kind = KindFound
		}
		r.bring(cmp.Or(f.ExternalID, recorded), f.Output, f.Dropped)
		if recorded != "" && f.ExternalID != "" && f.ExternalID != recorded {
			r.Kind, why = KindSeveral, fmt.Sprintf("found %q beside the recorded %q", f.ExternalID, recorded)
			r.ExternalID, r.Body, r.BodyDropped = "", nil, false
		} else if !(&program.Result{Output: r.Body}).Known() {
			why = "found it with a result that cannot be kept"
		}
	case KindSeveral:
		why = fmt.Sprintf("found %d of them: %q", len(f.IDs), f.IDs)
	case KindNotFound:
		why = "found nothing"
	default:
		if r.Kind = KindUnclear; f.Outage {
			r.ErrorClass = program.Outage
		} else if ss.Undo.UnclearLookups+1 >= maxLookups {
			why = "could not tell: " + f.Error
		}
	}
	if why != "" {
		r.ErrorClass = saga.Unknown
		r.Error = fmt.Sprintf("what step %q made is not on record, and the lookup that was to tell it %s", ss.Name, why)
	}
	return m.foldLookup(r, f)
}
