package machine

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// learnSignal consumes a signal by a record that names it. A signal that comes too late, or speaks
// of an attempt that has moved on, changes nothing and is noted.
func (m *machine) learnSignal(s *Signal) error {
	if m.st.Saw(s.ID) || m.st.live() != nil {
		return errNotFitting
	}
	switch s.Kind {
	case SignalRevise:
		return m.hearNews(s)
	case SignalCancel:
		if s.Revision != "" {
			return m.hearNews(s)
		}
		return m.cancel(s)
	case SignalKeep:
		if m.st.Status == saga.Review && m.st.Reason == saga.ReasonConflict {
			m.unparked = true
			return m.foldSignal(s, &Record{Kind: KindResumed, Note: "it stays as it is, although the source cancelled it"})
		}
		return m.note(s, "keep: the work is not in review for a conflict")
	case SignalResolve:
		return m.resolve(s)
	case SignalPause:
		return m.pause(s)
	case SignalResume:
		return m.goOn(s)
	case SignalRetry:
		return m.retry(s)
	case SignalSkip:
		return m.skip(s)
	case SignalLate:
		return m.lateAnswer(s)
	case SignalWake:
		return m.wake(s)
	case SignalEndWait:
		return m.wakeUp(s)
	case SignalAnswer:
		return m.hearAnswer(s)
	case SignalVote:
		return m.hearVote(s)
	case SignalExtend:
		return m.extend(s)
	case SignalConflict:
		return m.note(s, "the work was started again with another identity; it goes on with the first")
	default:
		return m.note(s, fmt.Sprintf("a signal of unknown kind %q", s.Kind))
	}
}

func (m *machine) cancel(s *Signal) error {
	switch {
	case m.st.Status.Terminal():
		return m.note(s, "cancel came too late: the work has ended")
	case m.st.Compensating && m.st.PendingRevision == nil:
		return m.note(s, "cancel: the work is being undone already")
	case !m.st.Compensating && m.pastPivot():
		return m.note(s, "cancel came too late: the pivot may have happened")
	}
	m.unparked = true
	r := &Record{Kind: KindCancelled, Note: "cancelled"}
	if m.st.Compensating { // it takes back what waits, and undoes no more than was to be undone
		r.Step = m.st.UndoneFrom
	}
	return m.foldSignal(s, r)
}

// PastPivot reports whether the pivot has happened or may have, so that a cancel only comes too late.
func (st *State) PastPivot(spec *program.Spec) bool {
	return spec != nil && !st.Compensating && (&machine{spec: spec, st: st}).pastPivot()
}

// pastPivot reports whether the pivot may have happened.
func (m *machine) pastPivot() bool {
	i := m.spec.PivotIndex()
	if i == len(m.spec.Steps) {
		return false
	}
	ss := m.st.Step(m.spec.Steps[i].Name)
	return ss != nil && (ss.mayHaveHappened() || m.spec.Steps[i].Waits() && (ss.Forward.Phase == Done || ss.StoodBefore))
}

// resolve applies a person's resolution to the step the review is about.
func (m *machine) resolve(s *Signal) error {
	if ss := m.st.Step(s.Step); ss != nil && ss.Unconfirmed {
		if _, dir := m.st.IssueOf(m.spec, s.Step); s.Direction == saga.Forward || s.Direction == "" && dir == saga.Forward {
			return m.confirm(s, ss)
		}
	}
	ss, dir := m.st.Issue(m.spec)
	done := m.st.Step(s.Step)
	given := done != nil && done.lacksResult() && s.Happened && len(s.Output) > 0 && !m.st.Compensating // the result of what is done
	if given {
		ss, dir = done, saga.Forward
	}
	switch {
	case m.st.Status != saga.Review && m.st.Status != saga.Paused:
		return m.note(s, "resolution: the work is neither in review nor paused")
	case ss == nil || s.Step != ss.Name || s.Direction != "" && s.Direction != dir:
		return m.note(s, fmt.Sprintf("resolution: the review is not about step %q", s.Step))
	case s.Attempt != ss.effort(dir).Attempts:
		return m.note(s, fmt.Sprintf("resolution: it speaks of attempt %d, and the step has moved on to %d", s.Attempt, ss.effort(dir).Attempts))
	case !given && ss.effort(dir).Phase == Done || ss.effort(dir).Phase == Waiting:
		return m.note(s, fmt.Sprintf("resolution: the step is %s", ss.effort(dir).Phase))
	case m.decidedByPeople(s.Step):
		return m.note(s, fmt.Sprintf("resolution: people decide at step %q", s.Step))
	case !s.Happened && m.stale(s):
		return m.note(s, "resolution: records were forgotten since, and it may have been followed already; look again")
	case !s.Happened && dir == saga.Forward && m.answeredAlready(ss):
		return m.note(s, fmt.Sprintf("resolution: an answer to step %q came, so it happened", ss.Name))
	case m.st.Reason == saga.ReasonConflict && !s.Happened:
		return m.note(s, "resolution: the step stands until a person undoes it; say that the undo happened, or keep the work as it is")
	}
	m.unparked = !given // a result alone lets nothing go on
	return m.foldSignal(s, m.resolutionOn(s, ss, dir))
}

// confirm applies a person's resolution to a step that was adopted as done because it could not be
// told (D10), whatever the work's status is.
func (m *machine) confirm(s *Signal, ss *StepState) error {
	switch {
	case s.Attempt != ss.Forward.Attempts:
		return m.note(s, fmt.Sprintf("resolution: it speaks of attempt %d, and the step has moved on to %d", s.Attempt, ss.Forward.Attempts))
	case ss.Undo.Attempts > 0 || ss.Undo.Phase == Done:
		return m.note(s, "resolution: the step is undone, or its undo may be under way")
	case !s.Happened && m.stale(s):
		return m.note(s, "resolution: records were forgotten since, and it may have been followed already; look again")
	}
	m.unparked = !s.Happened // a review may have been about what stands
	return m.foldSignal(s, m.resolutionOn(s, ss, saga.Forward))
}

// resolutionOn is the record of a person's resolution.
func (m *machine) resolutionOn(s *Signal, ss *StepState, dir saga.Direction) *Record {
	r := &Record{Kind: KindResolved, Step: ss.Name, Direction: dir, Attempt: s.Attempt, ErrorClass: saga.Unsent, Note: "it did not happen"}
	if s.Happened {
		r.ErrorClass, r.Note = "", "it happened"
		id := s.ExternalID
		if dir == saga.Forward && ss.lacksResult() { // its id was kept
			id, r.Note = cmp.Or(ss.ExternalID, id), "its result, which was not kept"
		}
		r.bring(id, s.Output, false)
		if dir == saga.Forward && len(s.Output) == 0 {
			r.Body = m.step(ss.Name).ResultOf(r.ExternalID)
		}
	}
	return r
}

// wake takes up again a work that the machine has given up (M1), now that its cause is mended. Else
// a work that should have moved only needed a process that looks at it.
func (m *machine) wake(s *Signal) error {
	ss, dir := m.st.Issue(m.spec)
	stuck := ss != nil && ss.effort(dir).Phase != Done
	if m.st.Status != saga.Review || m.st.Reason != saga.ReasonPoison || stuck {
		return m.note(s, "it was looked at again")
	}
	m.unparked = true
	return m.foldSignal(s, &Record{Kind: KindResumed, Note: "it is taken up again"})
}

// lateAnswer takes an answer that came after its attempt was closed as evidence.
func (m *machine) lateAnswer(s *Signal) error {
	ss := m.st.Step(s.Step)
	switch {
	case ss != nil && m.foreign(ss, s):
		return m.note(s, fmt.Sprintf("a late answer of attempt %d of step %q says %q; it belongs to an earlier revision", s.Attempt, s.Step, s.ExternalID))
	case ss == nil || !s.Happened || s.Direction == saga.Undo:
		return m.note(s, fmt.Sprintf("a late answer of attempt %d of step %q", s.Attempt, s.Step))
	case ss.Forward.Phase == Done && ss.ExternalID != s.ExternalID:
		return m.note(s, fmt.Sprintf("a late answer of attempt %d of step %q says %q, beside the recorded %q: look for a duplicate", s.Attempt, s.Step, s.ExternalID, ss.ExternalID))
	case ss.Forward.Phase == Done || ss.Undo.Attempts > 0:
		return m.note(s, fmt.Sprintf("a late answer of attempt %d of step %q confirms what is recorded", s.Attempt, s.Step))
	}
	if m.st.Status.Terminal() {
		return m.note(s, fmt.Sprintf("a late answer of attempt %d of step %q says %q, and the work has ended: look for what it left", s.Attempt, s.Step, s.ExternalID))
	}
	if issue, dir := m.st.Issue(m.spec); issue == ss && dir == saga.Forward {
		m.unparked = m.st.Status != saga.Paused
	}
	r := &Record{
		Kind: KindFound, Step: s.Step, Direction: saga.Forward, Attempt: ss.Forward.Attempts,
		Note: fmt.Sprintf("the answer of attempt %d came late", s.Attempt),
	}
	r.bring(s.ExternalID, s.Output, false)
	return m.foldSignal(s, r)
}

// foreign reports whether a late answer belongs to another revision. Its key says so; its attempt's
// number does, too, unless a fail-over forgot some.
func (m *machine) foreign(ss *StepState, s *Signal) bool {
	if s.Attempt <= ss.EarlierAttempts && ss.EarlierAttempts > 0 {
		return true
	}
	root := m.st.root()
	for n := range ss.Forward.Reissue + 2 { // a new key may have been forgotten, too
		if s.StepKey == "" || s.StepKey == StepKey(root, ss.Name, saga.Forward, n) {
			return false
		}
	}
	return true
}

// note consumes a signal that changes nothing.
func (m *machine) note(s *Signal, words string) error {
	return m.foldSignal(s, &Record{Kind: KindNoted, Note: words})
}

func (m *machine) foldSignal(s *Signal, r *Record) error {
	r.Signals, r.Actor, r.Why = []int64{s.ID}, s.Actor, s.Reason
	return m.fold(r)
}

// keep returns the body of a signal or an adoption in the form in which the ledger stores it. A
// body that is too large, or no JSON, is dropped: it must not make the record, or a later snapshot,
// unstorable.
func keep(body json.RawMessage, limit int) (kept json.RawMessage, dropped bool) {
	if len(body) == 0 {
		return nil, false
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, true
	}
	return sound(b, limit)
}
