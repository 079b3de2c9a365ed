package machine

import (
	"fmt"

	"github.com/amends-dev/amends/internal/program"
)

// What becomes of a no of people behind the pivot, where nothing is undone for it (P11).

// Rejected reports whether people said no at the step, or did not say yes in time.
func (ss *StepState) Rejected() bool { return ss.Ballot() != nil && ss.Forward.Phase == Refused }

// leftAtThat reports whether a person left it at the people's no: nothing behind it is done in this run.
func (ss *StepState) leftAtThat() bool {
	return ss.Ballot() != nil && ss.Forward.Phase == Skipped && ss.Evidence == KindSkipped
}

// NotLeft says why a person cannot leave it at the people's no at the step at issue; "" when it can be left.
func (st *State) NotLeft(spec *program.Spec) string {
	ss, _ := st.Issue(spec)
	if spec == nil || ss == nil || spec.Index(ss.Name) < 0 {
		return ""
	}
	m := machine{spec: spec, st: st}
	i := spec.Index(ss.Name)
	switch {
	case !m.decidedByPeople(ss.Name):
		return ""
	case !ss.Rejected():
		return fmt.Sprintf("people decide at step %q", ss.Name)
	case i <= spec.PivotIndex() && !m.pivotStands(i):
		return fmt.Sprintf("people said no at step %q before the pivot, so what was done is undone", ss.Name)
	}
	for _, s := range spec.Steps[i+1:] {
		if behind := st.Step(s.Name); behind != nil && (behind.Forward.Phase == InDoubt || behind.Unfinished != nil) {
			return fmt.Sprintf("step %q behind it may have happened: have people decide again", behind.Name)
		}
	}
	return ""
}
