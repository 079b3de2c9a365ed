package machine

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a person can do about an instance as it stands: as values, without words. A command line, a button and a sentence are made of them
// elsewhere.

// The verbs of people: what they do to an instance.
const (
	VerbRetry    = "retry"
	VerbResolve  = "resolve"
	VerbSkip     = "skip"
	VerbPause    = "pause"
	VerbResume   = "resume"
	VerbWake     = "wake"
	VerbComplete = "complete"
	VerbFail     = "fail"
	VerbExtend   = "extend"
	VerbApprove  = "approve"
	VerbReject   = "reject"
	VerbCancel   = "cancel"
	VerbRerun    = "rerun"
	VerbUndo     = "undo"
)

// Saying is something that a person says with a verb besides who and why. Its words are its name where it is said.
type Saying string

// What is said.
const (
	SayReason       Saying = "reason"
	SayStep         Saying = "step"
	SayHappened     Saying = "happened" // under an external id
	SayHappenedNoID Saying = "happened-without-id"
	SayDidNotHappen Saying = "did-not-happen"
	SayKeep         Saying = "keep"
	SayBody         Saying = "body"
	SayBy           Saying = "by" // how much longer
	SayResult       Saying = "result"
	SayBehindPivot  Saying = "behind-pivot" // it is meant although the pivot has happened
)

// Case is when a choice is right.
type Case int

// The cases.
const (
	CaseHolds          Case = iota + 1 // a person holds it, and it may go on
	CaseStillWanted                    // it is undone, and its source still wants it
	CaseAnswerKnown                    // of what it waits for
	CaseAnswerFailed                   // what it waits for has failed, and nothing of it stands
	CaseWaitLonger                     //
	CaseApproves                       // having looked at what is to be decided
	CaseRejects                        //
	CaseDecideLonger                   // people get longer
	CaseLateSettled                    // what a late answer is about was looked for
	CaseWaitOver                       // it waits for a time
	CaseNoDeadline                     // it goes on without one
	CaseMadeGood                       // what cannot be undone by itself was made good by hand
	CaseLeft                           // all of it, although its source cancelled it
	CaseAskPeople                      // they said no, or no decision counts
	CaseLeftAtNo                       // nothing behind their no is done
	CaseSameKey                        // the step at issue is tried again under the key it has
	CaseNewKey                         // everything under the old key is refused
	CaseIsUndone                       //
	CaseStands                         // it cannot be undone
	CaseNotUndone                      // and is tried under a new key
	CaseHappened                       //
	CaseHappenedNoID                   //
	CaseNotNeeded                      // it did not happen, and nothing comes behind it
	CaseNotNeededNext                  // and later steps find a result
	CaseGone                           // nothing stands of what an earlier revision left
	CaseDidNot                         // it did not happen, and Choice.Newer says what that makes way for
	CaseDidNotBack                     // on the way back there is nothing to undo
	CaseDidNotNeeded                   // it did not happen, and is done under a new key
	CaseUnconfirmed                    // of a step that could not be told after a rebuild: it happened
	CaseUnconfirmedID                  // without an id
	CaseUnconfirmedNot                 // it did not
	CaseWait                           // it is to be held where it is
	CaseGiveUp                         //
	CaseUndo                           // it is completed, and should not stand
	CaseTryNow                         // it is tried again, and not only when its time comes
	CaseRunAgain                       // what it made is to be made again
	CaseResultOf                       // of a step that was skipped
	CaseResultNotKept                  // of a step that is done
)

// Choice is something that a person can do about an instance, and when that is right.
type Choice struct {
	Verb  string
	Case  Case
	Step  string   // that it names; "": the one at issue
	Says  Saying   // of a resolution; "": nothing
	Asks  []Saying // what only the person can say
	Newer *Newer   // what a resolution makes way for; nil: nothing
}

// Choices are what a person can do about an instance that waits for one, the harmless first. at is the ledger's time.
func Choices(spec *program.Spec, st *State, at time.Time) []Choice {
	return st.possible(st.choices(spec, at))
}

func (st *State) choices(spec *program.Spec, at time.Time) []Choice {
	goOn := Choice{Verb: VerbResume, Case: CaseHolds, Asks: []Saying{SayReason}}
	ss, dir := st.Issue(spec)
	waits := st.Status == saga.Waiting || st.Status == saga.Review
	switch {
	case st.Status == saga.Compensated && !st.Withdrawn:
		return []Choice{{Verb: VerbRerun, Case: CaseStillWanted, Asks: []Saying{SayReason}}}
	case ss.decides() && st.Status == saga.Paused:
		return append([]Choice{goOn}, votes()...)
	case ss.decides() && waits:
		return votes()
	case ss.awaits() && st.Status == saga.Paused:
		return append([]Choice{goOn}, answers()...)
	case ss.awaits() && waits:
		return answers()
	case st.Status == saga.Paused && (ss == nil || ss.effort(dir).Phase == Done || ss.effort(dir).Phase == Waiting):
		return []Choice{goOn}
	case st.Status == saga.Paused:
		return append([]Choice{goOn}, st.atIssue(spec, ss, dir, at)...)
	case st.Status == saga.Review && st.Reason == saga.ReasonLate:
		return []Choice{{Verb: VerbResume, Case: CaseLateSettled, Asks: []Saying{SayReason}}}
	case st.Status == saga.Review && st.Reason == saga.ReasonHung: // whatever is said is heard when it returns
		return nil
	case st.Status == saga.Waiting:
		return []Choice{{Verb: VerbWake, Case: CaseWaitOver, Asks: []Saying{SayReason}}}
	case st.Status == saga.Review && st.Reason == saga.ReasonDeadline:
		return []Choice{{Verb: VerbResume, Case: CaseNoDeadline, Asks: []Saying{SayReason}}}
	case st.Status != saga.Review:
		return st.unconfirmedChoices()
	case ss == nil:
		return nil
	}
	return st.atIssue(spec, ss, dir, at)
}

// Besides are choices that an instance takes, too: that are no answer to what it waits for, or bolder than those are. at is the ledger's time.
func Besides(spec *program.Spec, st *State, at time.Time) (all []Choice) {
	reason := []Saying{SayReason}
	if st.Status.Live() || st.HeldRevision != "" {
		all = append(all, Choice{Verb: VerbPause, Case: CaseWait, Asks: reason})
	}
	undone := st.Compensating && st.PendingRevision == nil
	if !st.Status.Terminal() && st.Status != saga.Compensating && !undone && (!st.PastPivot(spec) || st.Adopting || st.pivotOpen(spec)) {
		all = append(all, Choice{Verb: VerbCancel, Case: CaseGiveUp, Asks: reason})
	}
	if st.Status == saga.Completed {
		undo := Choice{Verb: VerbUndo, Case: CaseUndo, Asks: reason}
		if st.PastPivot(spec) {
			undo.Says = SayBehindPivot
		}
		all = append(all, undo)
	}
	if !st.Withdrawn && st.Status == saga.Completed || st.Status == saga.Review && st.Reason == saga.ReasonExhausted && st.boundary() {
		all = append(all, Choice{Verb: VerbRerun, Case: CaseRunAgain, Asks: reason})
	}
	offered := Choices(spec, st, at)
	for _, c := range st.bolder(spec, at) {
		if !slices.ContainsFunc(offered, c.is) && !slices.ContainsFunc(all, c.is) {
			all = append(all, c)
		}
	}
	return st.possible(all)
}

// bolder are what can be said of the step at issue while no attempt is under way, and of those that were skipped.
func (st *State) bolder(spec *program.Spec, at time.Time) (all []Choice) {
	ss, dir := st.Issue(spec)
	if ss == nil || st.Adopting || st.Status.Terminal() || st.Attempting() {
		return nil
	}
	held := st.Status == saga.Review || st.Status == saga.Paused
	waits := ss.effort(dir).Phase == Waiting || ss.effort(dir).Phase == Done
	if st.Status == saga.Review && st.Reason == saga.ReasonDeadline {
		all = append(all, Choice{Verb: VerbResume, Case: CaseNoDeadline, Asks: []Saying{SayReason}})
	}
	if held && !waits {
		all = append(all, st.atIssue(spec, ss, dir, at)...)
	}
	if (held || st.Status == saga.Retrying || st.Status == saga.Compensating && !ss.effort(dir).BackoffUntil.IsZero()) && st.CanRetry(spec, at) {
		all = append(all, Choice{Verb: VerbRetry, Case: CaseTryNow, Asks: []Saying{SayReason}})
	}
	if held && !waits && st.Reason != saga.ReasonConflict && !ss.Rejected() && st.NotLeft(spec) == "" {
		not := st.didNot(ss)
		if dir == saga.Undo {
			not = ss.says(CaseNotUndone, SayDidNotHappen)
		}
		all = append(all, not)
	}
	for i := range st.Steps {
		switch one := &st.Steps[i]; {
		case !held || st.Compensating:
		case one.Forward.Phase == Skipped:
			all = append(all, Choice{Verb: VerbSkip, Case: CaseResultOf, Step: one.Name, Asks: []Saying{SayResult, SayReason}})
		case one.lacksResult():
			all = append(all, Choice{Verb: VerbResolve, Case: CaseResultNotKept, Step: one.Name, Says: SayHappenedNoID, Asks: []Saying{SayResult, SayReason}})
		}
	}
	return all
}

// lacksResult reports whether the step is done, and its result was not kept: it was too large, or no JSON.
func (ss *StepState) lacksResult() bool {
	return ss.Forward.Phase == Done && ss.OutputDropped && !ss.Unconfirmed
}

// Attempting reports whether an attempt that was begun has no answer yet.
func (st *State) Attempting() bool {
	return slices.ContainsFunc(st.Steps, func(ss StepState) bool { return ss.Forward.Phase == Started || ss.Undo.Phase == Started })
}

// pivotOpen reports whether all that may have happened of the pivot is under way, so that it may come to nothing.
func (st *State) pivotOpen(spec *program.Spec) bool {
	ss := st.Step(spec.Steps[spec.PivotIndex()].Name)
	return ss.Forward.Phase == Started && ss.Forward.OutcomeUnknownUntil.IsZero() && ss.Unfinished == nil
}

// Takes reports whether an act is a choice of an instance, or one that it takes besides.
func Takes(spec *program.Spec, st *State, at time.Time, act Choice) bool {
	return slices.ContainsFunc(slices.Concat(Choices(spec, st, at), Besides(spec, st, at)), act.is)
}

// is reports whether a choice is that of another one: what happened without an id may have one.
func (c Choice) is(other Choice) bool {
	says := c.Verb != VerbResolve || c.Says == other.Says || c.Says == SayHappened && other.Says == SayHappenedNoID
	return c.Verb == other.Verb && c.Step == other.Step && says
}

func answers() []Choice {
	return []Choice{
		{Verb: VerbComplete, Case: CaseAnswerKnown, Asks: []Saying{SayBody, SayReason}},
		{Verb: VerbFail, Case: CaseAnswerFailed, Asks: []Saying{SayReason}},
		{Verb: VerbExtend, Case: CaseWaitLonger, Asks: []Saying{SayBy, SayReason}},
	}
}

func votes() []Choice {
	return []Choice{{Verb: VerbApprove, Case: CaseApproves}, {Verb: VerbReject, Case: CaseRejects}, {Verb: VerbExtend, Case: CaseDecideLonger, Asks: []Saying{SayBy, SayReason}}}
}

// decides reports whether people decide at the step.
func (ss *StepState) decides() bool {
	return ss != nil && ss.Ballot() != nil && ss.Forward.Phase == Waiting
}

// awaits reports whether the step waits for an answer.
func (ss *StepState) awaits() bool {
	return ss != nil && ss.Answering().WaitsFor != nil && ss.Forward.Phase == Waiting
}

// Awaited is the step that waits for an answer, or at which people decide; nil: none does.
func (st *State) Awaited() *StepState {
	for i := range st.Steps {
		if ss := &st.Steps[i]; ss.awaits() || ss.decides() {
			return ss
		}
	}
	return nil
}

// says is a resolution of the step.
func (ss *StepState) says(c Case, what Saying) Choice {
	asks := []Saying{SayReason}
	if what == SayHappened {
		asks = []Saying{SayHappened, SayReason}
	}
	return Choice{Verb: VerbResolve, Case: c, Step: ss.Name, Says: what, Asks: asks}
}

// atIssue are the choices about the step at issue. A new key is offered only where nothing else is left.
func (st *State) atIssue(spec *program.Spec, ss *StepState, dir saga.Direction, at time.Time) (all []Choice) {
	if st.Reason == saga.ReasonConflict {
		return []Choice{ss.says(CaseMadeGood, SayHappenedNoID), {Verb: VerbResolve, Case: CaseLeft, Says: SayKeep, Asks: []Saying{SayReason}}}
	}
	retry := func(c Case) Choice { return Choice{Verb: VerbRetry, Case: c, Asks: []Saying{SayReason}} }
	if left := st.NotLeft(spec); dir == saga.Forward && (ss.Rejected() || left != "") { // people decide
		if all = append(all, retry(CaseAskPeople)); left == "" {
			all = append(all, Choice{Verb: VerbSkip, Case: CaseLeftAtNo, Asks: []Saying{SayReason}})
		}
		return all
	}
	final := dir == saga.Undo && ss.Undo.Phase == Refused && ss.Undo.ErrorClass == saga.NotUndoable
	again := !final && st.CanRetry(spec, at)
	if again {
		c := CaseSameKey
		if dir == saga.Forward && ss.Forward.Phase == Refused && ss.Forward.ErrorClass == saga.RefusedKey {
			c = CaseNewKey
		}
		all = append(all, retry(c))
	}
	if dir == saga.Undo {
		all = append(all, ss.says(CaseIsUndone, SayHappenedNoID))
		if ss.CanStand(dir) {
			all = append(all, Choice{Verb: VerbSkip, Case: CaseStands, Asks: []Saying{SayReason}})
		}
		if !again && !final {
			all = append(all, ss.says(CaseNotUndone, SayDidNotHappen))
		}
		return all
	}
	happened := []Choice{ss.says(CaseHappened, SayHappened), ss.says(CaseHappenedNoID, SayHappenedNoID)}
	switch {
	case st.Compensating:
		all = append(all, happened...)
	case ss.Forward.Phase == Refused: // its destination said that it did not
		all = append(append(all, st.leaveOut(spec, ss)), happened...)
	default:
		all = append(append(all, happened...), st.leaveOut(spec, ss))
	}
	switch {
	case ss.PreviousGone:
		all = append(all, ss.says(CaseGone, SayDidNotHappen))
	case !again:
		all = append(all, st.didNot(ss))
	}
	return all
}

// didNot is to say that the step at issue did not happen.
func (st *State) didNot(ss *StepState) Choice {
	c := ss.says(CaseDidNotNeeded, SayDidNotHappen)
	switch {
	case st.Compensating:
		c.Case = CaseDidNotBack
	case st.PendingRevision != nil:
		c.Case, c.Newer = CaseDidNot, st.PendingRevision
	}
	return c
}

// leaveOut is to go on without the step at issue.
func (st *State) leaveOut(spec *program.Spec, ss *StepState) Choice {
	if len(StepsBehind(spec, ss.Name)) == 0 {
		return Choice{Verb: VerbSkip, Case: CaseNotNeeded, Asks: []Saying{SayReason}}
	}
	return Choice{Verb: VerbSkip, Case: CaseNotNeededNext, Asks: []Saying{SayResult, SayReason}}
}

// StepsBehind are the steps of a definition behind one.
func StepsBehind(spec *program.Spec, step string) (names []string) {
	if spec == nil || spec.Index(step) < 0 {
		return nil
	}
	for i := range spec.Steps[spec.Index(step)+1:] {
		names = append(names, spec.Steps[spec.Index(step)+1+i].Name)
	}
	return names
}

// unconfirmedChoices are about the steps that were adopted as done because it could not be told.
func (st *State) unconfirmedChoices() (all []Choice) {
	if st.Status == saga.Compensating || st.Status == saga.Compensated {
		return nil
	}
	for _, step := range st.Unconfirmed() {
		ss := st.Step(step)
		all = append(all, ss.says(CaseUnconfirmed, SayHappened), ss.says(CaseUnconfirmedID, SayHappenedNoID), ss.says(CaseUnconfirmedNot, SayDidNotHappen))
	}
	return all
}
