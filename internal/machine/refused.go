package machine

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a refusal settles (F6 to F8, F31), and what an undo says that cannot be had (C14).

// refusal is what a refusal of an attempt settles: only what is sure of that attempt's step and direction.
func (m *machine) refusal(step string, dir saga.Direction, o *program.Outcome) saga.Class {
	s := m.step(step)
	switch {
	case o.Maybe:
		return saga.Unknown
	case o.Class == saga.RefusedKey && dir == saga.Forward && s != nil && s.Repeat == program.RepeatKeyed, o.Class == saga.NotUndoable && dir == saga.Undo:
		return o.Class
	}
	return saga.Refused
}

// refused folds a refusal.
func (e *Effort) refused(r *Record) {
	e.Phase = Refused
	switch r.ErrorClass { //nolint:exhaustive // others speak of this attempt alone
	case saga.Unknown: // of its last request; an earlier one may have taken effect
		e.OutcomeUnknownUntil = later(e.OutcomeUnknownUntil, later(e.Deadline, r.At.UTC()))
	case saga.RefusedKey: // no request under it has had an effect, or will
		e.OutcomeUnknownUntil = time.Time{}
	}
}

// CanStand reports whether a person may say of the step, whose undo was refused, that what it made stands.
func (ss *StepState) CanStand(dir saga.Direction) bool {
	return dir == saga.Undo && ss.Undo.Phase == Refused
}

// stood folds that word.
func (ss *StepState) stood() {
	class, words := ss.Undo.ErrorClass, ss.Undo.Error
	ss.Undo.skip()
	ss.Undo.ErrorClass, ss.Undo.Error = class, words
}

// letStand takes a person's word that what the step made stands: the way back goes on without its undo.
func (m *machine) letStand(s *Signal) error {
	if m.stale(s) {
		return m.note(s, "skip: records were forgotten since, and it may have been followed already; look again")
	}
	m.unparked = true
	return m.foldSignal(s, &Record{Kind: KindSkipped, Step: s.Step, Direction: saga.Undo, Attempt: s.Attempt, Note: fmt.Sprintf("step %q cannot be undone, and stands", s.Step)})
}
