package machine

import (
	"errors"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Steps that are done on a condition (N1 to N4).

// AsksWhen reports whether the condition of a step is to be asked: it has one, and it is not known that the step was begun in this run.
// A fail-over may put one in doubt that was never come to.
func (st *State) AsksWhen(s *program.StepSpec) bool {
	ss := st.Step(s.Name)
	return s.Conditional && (ss == nil || !ss.Applies && ss.Forward.NeedsReview == "" && ss.Forward.undecided())
}

func (e *Effort) undecided() bool { return e.Phase == "" || e.Phase == Ready || e.Phase == InDoubt }

// learnApplies takes what the condition of a step says. What it says and the attempt that follows are one record.
func (m *machine) learnApplies(s *program.StepSpec, a *Asked) error {
	r := &Record{Kind: KindApplies, Step: s.Name, Direction: saga.Forward, Note: "its condition says yes"}
	switch {
	case m.st.Compensating || a.Applies == nil || m.st.live() != nil:
		return errNotFitting
	case a.Error != "":
		r.Kind, r.ErrorClass, r.Error, r.Note = KindFault, saga.Fault, a.Error, ""
	case !*a.Applies:
		r.Kind, r.Note = KindLeftOut, "its condition says no: it is skipped"
	}
	return m.fold(r)
}

// learnWhen folds what a condition said.
func (st *State) learnWhen(ss *StepState, r *Record) error {
	if ss == nil {
		ss = st.begin(r.Step)
	}
	if e := &ss.Forward; st.Compensating || !e.undecided() {
		return errors.New("a condition is asked of a step that has begun, or of a work that goes back")
	}
	if ss.Applies = r.Kind == KindApplies; !ss.Applies {
		ss.Forward.skip()
		ss.Evidence = r.Kind
	}
	return nil
}

// unasked reports whether a step waits for the answer to a request that a condition left out, and nothing else answers it.
func (m *machine) unasked(s *program.StepSpec, ss *StepState) bool {
	if !s.WaitsForAnswer() || len(s.Answer.On) > 0 || ss != nil && !ss.Forward.undecided() {
		return false
	}
	asked := m.st.Step(s.Answer.Callback)
	return asked != nil && asked.Forward.Phase == Skipped && asked.Evidence == KindLeftOut
}
