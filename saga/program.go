package saga

import (
	"context"
	"encoding/json"
	"time"
)

// Program is a definition with its input type taken off, so that one coordinator can run many. Every
// *[Definition] is one.
type Program interface {
	Spec() *Spec
	Accept(work string, input any) (Accepted, error)
	Act(ctx context.Context, inv *Invocation) Outcome
	Look(ctx context.Context, inv *Invocation) Evidence
}

// Invocation is everything one attempt or lookup needs to know.
type Invocation struct {
	Work       string
	Revision   string
	Step       string
	Direction  Direction
	Attempt    int
	Key        string
	Input      json.RawMessage
	Results    map[string]Result // of the steps that are done
	Undoing    *Result           // Undo: the result to undo; nil when it is not known
	Unfinished *Result           // Forward: what a lookup found half-made
	Previous   *Result           // what an earlier revision left at the destination
	Gate       *Gate             // attempts only
}

// Result is what is known of a step that is done.
type Result struct {
	ExternalID string
	Output     json.RawMessage // nil when it was dropped or never known
}

// succeeded is the class of an attempt without error.
const succeeded Class = "done"

// Outcome is what came of one attempt.
type Outcome struct {
	Class      Class // succeeded is "done"; else the class of the error
	ExternalID string
	Output     json.RawMessage
	Dropped    bool // the output could not be kept
	Maybe      bool // refused, and an earlier request of the same attempt may have taken effect
	Error      string
	RetryAfter time.Duration
	HoldBack   bool // RetryAfter is for everything that is sent to the destination, not for this step alone
	Shutdown   bool // the attempt ended because its process was told to stop; it does not count as a try
}

// Done reports whether the attempt succeeded.
func (o Outcome) Done() bool { return o.Class == succeeded }

// Evidence is what came of one lookup.
type Evidence struct {
	Step       string // which was looked up; set by the coordinator
	Kind       Kind   // found, unfinished, not-found, unclear, several
	ExternalID string
	Output     json.RawMessage
	Dropped    bool
	IDs        []string // several: all of them
	Error      string
	RetryAfter time.Duration
	HoldBack   bool // as in Outcome
}

// Invocation describes the attempt or lookup that c asks for, except its gate.
func (st *State) Invocation(c Command) *Invocation {
	inv := &Invocation{
		Work: st.ID.Work, Revision: st.Revision, Step: c.Step, Direction: c.Direction,
		Input: st.Input, Results: make(map[string]Result, len(st.Steps)),
	}
	for i := range st.Steps {
		ss := &st.Steps[i]
		if ss.Forward.Phase == Done {
			inv.Results[ss.Name] = Result{ExternalID: ss.ExternalID, Output: ss.Output}
		}
		if ss.Name != c.Step {
			continue
		}
		e := ss.effort(c.Direction)
		inv.Attempt, inv.Key, inv.Unfinished, inv.Previous = e.Attempts, e.Key, ss.Unfinished, ss.Previous
		switch {
		case ss.Forward.Phase == Done:
			inv.Undoing = &Result{ExternalID: ss.ExternalID, Output: ss.Output}
		case ss.Unfinished != nil:
			inv.Undoing = ss.Unfinished
		default:
			inv.Undoing = ss.Previous
		}
	}
	return inv
}
