package machine

import (
	"cmp"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Invocation describes the attempt or lookup that c asks for, except its gate.
func (st *State) Invocation(c Command) *program.Invocation {
	inv := &program.Invocation{
		Work: st.ID.Work, Revision: st.Revision, Step: c.Step, Direction: c.Direction,
		Input: st.Input,
	}
	if c.Do == Look && st.Step(c.Step) == nil { // the key under which it would be sent
		inv.Key = StepKey(st.root(), c.Step, saga.Forward, 0)
		inv.MadeKey = inv.Key
	}
	for i := range st.Steps {
		ss := &st.Steps[i]
		if ss.Forward.Phase == Done || ss.Forward.Phase == Skipped && (ss.ExternalID != "" || len(ss.Output) > 0) {
			if inv.Results == nil {
				inv.Results = make(map[string]program.Result, len(st.Steps)-1)
			}
			inv.Results[ss.Name] = program.Result{ExternalID: ss.ExternalID, Output: ss.Output, WasThere: ss.wasThere()}
		}
		if ss.Name != c.Step {
			continue
		}
		dir := c.Direction
		if c.Do == Look { // it asks for what was sent forward, also when its undo wants to know
			dir = saga.Forward
		}
		e := ss.effort(dir)
		inv.Attempt, inv.Key, inv.Undoing, inv.Unfinished, inv.Previous = e.Attempts, e.Key, ss.undoing(), ss.Unfinished, ss.Previous
		if c.Do == Look && ss.PreviousGone { // whatever stands is an answer, of whichever revision
			inv.Previous = nil
		}
		if inv.Key == "" { // adopted, or left by an earlier revision: the key under which it would be sent
			inv.Key = StepKey(st.root(), ss.Name, dir, e.Reissue)
		}
		if inv.MadeKey = cmp.Or(ss.MadeKey, ss.Forward.Key); inv.MadeKey == "" {
			inv.MadeKey = StepKey(st.root(), ss.Name, saga.Forward, ss.Forward.Reissue)
		}
	}
	return inv
}

// wasThere reports whether what the step makes was there before anything was sent for it.
func (ss *StepState) wasThere() bool {
	return (ss.MadeByAnother || ss.Forward.Attempts == 0) && !ss.waits()
}

// undoing is what is known of what the step has to undo; nil when nothing is.
func (ss *StepState) undoing() *program.Result {
	switch {
	case ss.Forward.Phase == Done:
		return &program.Result{ExternalID: ss.ExternalID, Output: ss.Output}
	case ss.Unfinished != nil:
		return ss.Unfinished
	default:
		return ss.Previous
	}
}
