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
	Direction  Direction // Undo of a lookup: it is to tell the undo what the step made
	Attempt    int
	Key        string
	Input      json.RawMessage
	Results    map[string]Result // of the steps that are done
	Undoing    *Result           // Undo: what is known of what is to be undone; nil when nothing is
	Unfinished *Result           // Forward: what a lookup found half-made
	Previous   *Result           // what an earlier revision left at the destination
	Gate       *Gate             // attempts only
}

// Result is what is known of a step that is done.
type Result struct {
	ExternalID string          `json:"externalId,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"` // nil when it was dropped or never known
}

// known reports whether r says what the action made, and not only what the destination calls it.
func (r *Result) known() bool {
	return r != nil && len(r.Output) > 0 && string(r.Output) != "null"
}

// succeeded is the class of an attempt without error.
const succeeded Class = "done"

// Outcome is what came of one attempt.
type Outcome struct {
	Class      Class // succeeded is "done"; else the class of the error
	ExternalID string
	Output     json.RawMessage
	Dropped    bool // the output could not be kept; Error says why
	Maybe      bool // refused, and an earlier request of the same attempt may have taken effect
	Error      string
	RetryAfter time.Duration
	HoldBack   bool   // RetryAfter is for everything that is sent to the destination, not for this step alone
	Answered   bool   // the destination has answered; its request is not at work any more
	Stack      string // of a panic, for the log
	Shutdown   bool   // the attempt ended because its process was told to stop; it does not count as a try
	Outage     bool   // it failed while the destination served no other work; it does not count as a try
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
	HoldBack   bool   // as in Outcome
	Outage     bool   // as in Outcome
	Stack      string // as in Outcome
}

// Invocation describes the attempt or lookup that c asks for, except its gate.
func (st *State) Invocation(c Command) *Invocation {
	inv := &Invocation{
		Work: st.ID.Work, Revision: st.Revision, Step: c.Step, Direction: c.Direction,
		Input: st.Input, Results: make(map[string]Result, len(st.Steps)),
	}
	for i := range st.Steps {
		ss := &st.Steps[i]
		if ss.Forward.Phase == Done || ss.Forward.Phase == Skipped && (ss.ExternalID != "" || len(ss.Output) > 0) {
			inv.Results[ss.Name] = Result{ExternalID: ss.ExternalID, Output: ss.Output}
		}
		if ss.Name != c.Step {
			continue
		}
		dir := c.Direction
		if c.Do == Look { // it asks for what was sent forward, also when its undo wants to know
			dir = Forward
		}
		e := ss.effort(dir)
		inv.Attempt, inv.Key, inv.Undoing, inv.Unfinished, inv.Previous = e.Attempts, e.Key, ss.undoing(), ss.Unfinished, ss.Previous
		if inv.Key == "" { // adopted, or left by an earlier revision: the key under which it would be sent
			inv.Key = StepKey(RootKey(st.ID.Saga, st.ID.Work, st.Revision), ss.Name, dir, e.Reissue)
		}
	}
	return inv
}

// undoing is what is known of what the step has to undo; nil when nothing is.
func (ss *StepState) undoing() *Result {
	switch {
	case ss.Forward.Phase == Done:
		return &Result{ExternalID: ss.ExternalID, Output: ss.Output}
	case ss.Unfinished != nil:
		return ss.Unfinished
	default:
		return ss.Previous
	}
}
