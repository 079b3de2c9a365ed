package machine

import "github.com/amends-dev/amends/saga"

// Phase says where one direction of one step stands.
type Phase string

// The phases. Forward a step is ready, started, in doubt, done, refused or skipped; its undo is
// ready, started, in doubt, done, failed or skipped.
const (
	Ready   Phase = "ready"    // not armed; every earlier attempt is provably without effect
	Started Phase = "started"  // armed: the attempt may be on its way
	InDoubt Phase = "in-doubt" // an attempt's outcome is unknown
	Waiting Phase = "waiting"  // forward, of a step that sends nothing: its time has not come
	Done    Phase = "done"     // the effect is there and recorded
	Refused Phase = "refused"  // the destination said no
	Skipped Phase = "skipped"  // forward: a person says that it did not happen and will not; undo: there is nothing to undo
)

// parkedBecause says what a reason means where the record has no words of its own.
var parkedBecause = map[saga.Reason]string{
	saga.ReasonInDoubt:    "it cannot be told whether the step happened",
	saga.ReasonUndoFailed: "the undo was given up",
	saga.ReasonCannotUndo: "what the undo should undo cannot be undone any more",
	saga.ReasonAfterPivot: "the step is behind the point of no return",
	saga.ReasonExhausted:  "the retry policy is used up",
	saga.ReasonPoison:     "the step was in flight too often when its process died",
	saga.ReasonDeadline:   "its deadline has passed",
	saga.ReasonUnanswered: "the answer that it waits for, or a decision, has not come in time",
	saga.ReasonHung:       "the action has not returned long behind its deadline",
	saga.ReasonConflict:   "the source cancelled it, and a step that stands is not in this version of the definition, or what it was made from has gone by retention",
}
