package machine

import (
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

func (ss *StepState) evidence(e *Effort, r *Record) {
	if r.Kind == KindUnclear {
		e.unclear(r)
		return
	}
	e.UnclearLookups = 0
	switch r.Kind {
	case KindFound:
		if ss.PreviousGone && ss.Previous != nil && r.ExternalID == ss.Previous.ExternalID { // it is there: the update may go on
			ss.PreviousGone = false
			return
		}
		ss.StoodBeforeLoss = e.Phase == InDoubt && e.Attempts == ss.EarlierAttempts // no attempt of this run is known: the ledger was lost, or went back
		ss.done(e, r)
	case KindUnfinished:
		e.Phase, e.OutcomeUnknownUntil, e.QuietUntil = Ready, time.Time{}, time.Time{}
		ss.Unfinished = &program.Result{ExternalID: r.ExternalID, Output: r.Body}
	case KindOther:
		if r.ErrorClass == saga.Unknown {
			break
		}
		ss.MadeByAnother = ss.MadeByAnother || e.Attempts == 0
		if e.Attempts > 0 { // what was sent under its key says something else
			e.reissue()
		}
		e.Phase, e.OutcomeUnknownUntil, e.QuietUntil = Ready, time.Time{}, time.Time{}
		ss.Previous, ss.Unfinished, ss.Evidence = &program.Result{ExternalID: r.ExternalID, Output: r.Body}, nil, ""
	case KindNotFound:
		e.Phase, e.OutcomeUnknownUntil, e.QuietUntil = Ready, time.Time{}, time.Time{}
		ss.Unfinished, ss.Evidence = nil, ""
		if ss.PreviousGone && r.ErrorClass != saga.Unknown {
			e.reissue()
			ss.forgetLeft()
		}
	default: // KindSeveral
		e.NeedsReview, ss.Unfinished = saga.ReasonInDoubt, nil
	}
	if r.ErrorClass == saga.Unknown { // F17: it stays a person's matter, whatever happens to the work until then
		e.NeedsReview = saga.ReasonInDoubt
	}
}

// reissue has the step made under a new key: nothing happened under the old one.
func (e *Effort) reissue() { *e = Effort{Phase: Ready, Attempts: e.Attempts, Reissue: e.Reissue + 1} }

// forgetLeft forgets what an earlier revision left, when it is gone.
func (ss *StepState) forgetLeft() {
	if ss.PreviousGone {
		ss.Previous, ss.MadeKey, ss.PreviousGone, ss.StoodBefore, ss.MadeByAnother = nil, "", false, true, false
	}
}

// unclear counts a lookup that could not tell.
func (e *Effort) unclear(r *Record) {
	if e.failed(r); r.ErrorClass != program.Outage {
		e.UnclearLookups++
	}
}

// taught folds the answer of a lookup that was to tell the undo what the step made.
func (ss *StepState) taught(e *Effort, r *Record) {
	if e.PolicyStartedAt.IsZero() {
		e.PolicyStartedAt = r.At.UTC() // the undo's policy begins with the question what is to be undone
	}
	if e.unclear(r); r.Kind != KindUnclear {
		e.UnclearLookups = 0
	}
	result := &program.Result{ExternalID: r.ExternalID, Output: r.Body}
	switch {
	case r.ErrorClass != saga.Unknown && r.Kind == KindUnclear:
	case r.Kind == KindNotFound && ss.Unconfirmed: // it counted as done because it could not be told
		e.Phase = Skipped
	case r.ErrorClass != "":
		e.NeedsReview = saga.ReasonUndoFailed
	case ss.Forward.Phase == Done:
		ss.ExternalID, ss.Output, ss.OutputDropped = result.ExternalID, result.Output, r.dropped()
	case ss.Unfinished != nil:
		ss.Unfinished = result
	default:
		ss.Previous = result
	}
}

func (ss *StepState) resolve(e *Effort, r *Record) {
	if r.Direction == saga.Forward && ss.Undo.Phase == Skipped { // it is known now
		ss.Undo.Phase = ""
	}
	if r.ErrorClass == "" { // it happened
		ss.done(e, r)
		return
	}
	quiet := e.unsettled()
	e.reissue()
	e.QuietUntil = quiet
	if r.Direction == saga.Forward {
		ss.forgetLeft()
		ss.Unfinished, ss.ExternalID, ss.Evidence, ss.Unconfirmed = nil, "", "", false // what stood in quarantine is not ours
	}
}

func (ss *StepState) done(e *Effort, r *Record) {
	e.Phase, e.NeedsReview, e.ErrorClass, e.Crashes, e.ConcurrentSteps = Done, "", "", 0, nil
	if r.Direction == saga.Undo {
		ss.Previous, ss.MadeKey, ss.PreviousGone, ss.StoodBefore, ss.MadeByAnother = nil, "", false, false, false // whichever attempt made it, it is gone
		return
	}
	ss.ExternalID, ss.Output, ss.OutputDropped, ss.Evidence, ss.Unfinished = r.ExternalID, r.Body, r.dropped(), r.Kind, nil
	ss.Unconfirmed = false
	if ss.Previous != nil && ss.ExternalID == "" {
		ss.ExternalID = ss.Previous.ExternalID // an update need not say again what it updated
	}
	ss.MadeByAnother = ss.MadeByAnother && (ss.Previous == nil || ss.Previous.ExternalID == ss.ExternalID) // else it is another one, which is ours
	ss.Previous, ss.PreviousGone = nil, false
	if r.Kind == KindFound && len(r.Signals) == 0 { // a settled lookup: no earlier attempt is still on its way
		e.OutcomeUnknownUntil, e.QuietUntil = time.Time{}, time.Time{}
	}
}
