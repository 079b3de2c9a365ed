package machine

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a person does to a work by hand: pause it, let it go on, have a step tried again, leave one
// out (S14 to S17).

// pause holds the work where it is, going forward or back: by a person's word, or with a revision by its source's, which says that the object
// is being changed and is not to be gone on with yet (V18).
func (m *machine) pause(s *Signal) error {
	switch {
	case s.Revision != "" && saga.CompareRevisions(s.Revision, m.st.NewestRevision) <= 0:
		return m.note(s, fmt.Sprintf("not yet: revision %s is not newer than %s", s.Revision, m.st.NewestRevision))
	case m.st.Status.Terminal():
		return m.note(s, "pause: the work has ended")
	case m.st.Status.Parked() && (m.st.HeldRevision == "" || s.Revision != "" && saga.CompareRevisions(s.Revision, m.st.HeldRevision) <= 0):
		return m.note(s, fmt.Sprintf("pause: the work is in %s already", m.st.Status))
	}
	r := &Record{Kind: KindPaused, Revision: s.Revision, Note: "paused"}
	if s.Revision != "" {
		r.Note = "its source says: not yet"
	}
	return m.foldSignal(s, r)
}

// goOn lets a work go on where it was that a person holds, or whose deadline has passed.
func (m *machine) goOn(s *Signal) error {
	if s.Revision != "" && (m.st.HeldRevision == "" || saga.CompareRevisions(s.Revision, m.st.HeldRevision) < 0) {
		return m.note(s, "the source does not hold it")
	}
	if m.st.Status != saga.Paused && (m.st.Status != saga.Review || !Resumable(m.st.Reason)) {
		return m.note(s, "resume: the work is neither paused nor in review for its deadline or a late answer")
	}
	m.unparked = true
	return m.foldSignal(s, &Record{Kind: KindResumed, Revision: s.Revision, Note: "it goes on"})
}

// Resumable reports whether a person lets a work go on that is in review for why, without saying more.
func Resumable(why saga.Reason) bool { return why == saga.ReasonDeadline || why == saga.ReasonLate }

// retry tries the step at issue again, under the key that it has, with a fresh policy and at once.
func (m *machine) retry(s *Signal) error {
	ss, dir := m.st.Issue(m.spec)
	switch why := m.st.notRetriable(m.spec, ss, dir, m.ev.Now); {
	case m.st.Status.Terminal():
		return m.note(s, "retry: the work has ended")
	case ss == nil || s.Step != ss.Name || s.Direction != dir:
		return m.note(s, fmt.Sprintf("retry: step %q is not the one at issue", s.Step))
	case s.Attempt != ss.effort(dir).Attempts:
		return m.note(s, fmt.Sprintf("retry: it speaks of attempt %d, and the step has moved on to %d", s.Attempt, ss.effort(dir).Attempts))
	case why != "":
		return m.note(s, "retry: "+why)
	}
	m.unparked = true
	return m.foldSignal(s, &Record{Kind: KindRetried, Step: ss.Name, Direction: dir, Attempt: s.Attempt, Note: "it is tried again"})
}

// CanRetry reports whether the step at issue can be tried again under its key, at a time that is not before the latest record; zero: as
// far as that tells.
func (st *State) CanRetry(spec *program.Spec, at time.Time) bool {
	ss, dir := st.Issue(spec)
	return spec != nil && st.notRetriable(spec, ss, dir, Moment{Latest: later(at, st.Updated)}) == ""
}

// notRetriable says why the step at issue cannot be tried again under its key; "" when it can. now
// is only asked about the window of a key.
func (st *State) notRetriable(spec *program.Spec, ss *StepState, dir saga.Direction, now Moment) string {
	if ss == nil || spec.Index(ss.Name) < 0 {
		return "no step of this version of the definition is at issue"
	}
	m := machine{spec: spec, st: st, ev: Event{Now: now}}
	s, e := m.step(ss.Name), ss.effort(dir)
	maybe := e.Phase == InDoubt || !e.OutcomeUnknownUntil.IsZero()
	switch {
	case e.Phase == Done || e.Phase == Skipped || e.Phase == Waiting:
		return "the step is " + string(e.Phase)
	case s.Waits() && ss.mayHaveHappened():
		return "it only waits in this version of the definition, and what stands is of an earlier one; undo that by hand, and say so"
	case dir == saga.Undo, asksFirst(s, ss): // it is repeated under its key (C7), or asked for again (T1)
		return ""
	case e.quarantined():
		return "something stands under the step's mark that was not taken over; say whether it is the step's"
	case e.NeedsReview == saga.ReasonInDoubt && !maybe, maybe && !s.Find && !m.resendable(s, e): // F17, F19
		return "it cannot be told whether the step happened; look, and say so"
	default:
		return ""
	}
}

// quarantined reports whether something stands under the step's mark that was not taken over.
func (e *Effort) quarantined() bool {
	return e.NeedsReview == saga.ReasonInDoubt && e.ErrorClass == saga.Refused
}

// retried folds a retry: what was counted is forgotten, what may have happened is not.
func (e *Effort) retried() {
	e.CountedAttempts, e.Failures, e.UnclearLookups, e.Crashes, e.ConcurrentSteps, e.NeedsReview = 0, 0, 0, 0, nil, ""
	e.PolicyStartedAt, e.Failed, e.BackoffUntil = time.Time{}, time.Time{}, time.Time{}
	switch {
	case e.Phase != Refused:
		return
	case e.ErrorClass == saga.RefusedKey: // it would be refused again
		e.reissue()
		return
	}
	if e.Phase = Ready; !e.OutcomeUnknownUntil.IsZero() {
		e.Phase = InDoubt
	}
}

// skip takes a person's word that the step at issue did not happen and will not, with the result
// that later steps are to find, if one was given. A result may be given later, too.
func (m *machine) skip(s *Signal) error {
	ss, dir := m.st.Issue(m.spec)
	if again := m.st.Step(s.Step); again != nil && again.Forward.Phase == Skipped {
		ss, dir = again, saga.Forward
	}
	switch {
	case m.st.Status != saga.Review && m.st.Status != saga.Paused:
		return m.note(s, fmt.Sprintf("skip: the work is %s, neither in review nor paused", m.st.Status))
	case m.st.Compensating && (ss == nil || !ss.CanStand(dir)):
		return m.note(s, "skip: the work is being undone; what is undone by hand has happened")
	case m.st.Compensating && s.Step == ss.Name && s.Direction == dir && s.Attempt == ss.Undo.Attempts:
		return m.letStand(s)
	case ss == nil || s.Step != ss.Name || dir != saga.Forward:
		return m.note(s, fmt.Sprintf("skip: step %q is not the one at issue", s.Step))
	case s.Attempt != ss.Forward.Attempts:
		return m.note(s, fmt.Sprintf("skip: it speaks of attempt %d, and the step has moved on to %d", s.Attempt, ss.Forward.Attempts))
	case ss.Forward.Phase == Done || ss.Forward.Phase == Waiting:
		return m.note(s, fmt.Sprintf("skip: the step is %s", ss.Forward.Phase))
	case m.decidedByPeople(s.Step) && m.st.NotLeft(m.spec) != "":
		return m.note(s, "skip: "+m.st.NotLeft(m.spec))
	case m.stale(s):
		return m.note(s, "skip: records were forgotten since, and it may have been followed already; look again")
	}
	m.unparked = true
	r := &Record{Kind: KindSkipped, Step: ss.Name, Direction: saga.Forward, Attempt: s.Attempt, Note: "it did not happen and will not"}
	if ss.Rejected() {
		r.Note = "people said no, and it is left at that: nothing behind it is done"
	}
	r.bring(s.ExternalID, s.Output, false)
	if len(s.Output) == 0 {
		r.Body = m.step(ss.Name).ResultOf(r.ExternalID)
	}
	return m.foldSignal(s, r)
}

// stale reports whether the database went back behind a person's word that nothing happened (F27).
func (m *machine) stale(s *Signal) bool {
	return !m.st.Forgotten.IsZero() && !s.At.After(m.st.Forgotten)
}

// skipped folds a person's word that the step did not happen and will not. What may still arrive is
// undone with the rest when the work goes back (S6).
func (ss *StepState) skipped(r *Record) {
	e := &ss.Forward
	if r.Direction == saga.Undo {
		ss.stood()
		return
	}
	e.skip()
	ss.forgetLeft()
	ss.ExternalID, ss.Output, ss.OutputDropped, ss.Evidence, ss.Unfinished, ss.Unconfirmed = r.ExternalID, r.Body, r.dropped(), KindSkipped, nil, false
}

// stay keeps a parked work where it is.
func (m *machine) stay() {
	if m.rec != nil {
		if m.rec.Status, m.rec.Reason = m.st.Status, m.st.Reason; m.rec.Kind == KindPaused {
			m.rec.Status = saga.Paused
		}
		if m.rec.Said() == "" {
			m.rec.Note = m.st.Note
		}
	}
}

// skip has nothing of it follow. What may still be on its way settles first.
func (e *Effort) skip() {
	*e = Effort{Phase: Skipped, Attempts: e.Attempts, Reissue: e.Reissue, Key: e.Key, QuietUntil: e.unsettled(), MayHaveReached: e.MayHaveReached || e.Phase == InDoubt}
}
