package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a work waits for that sends nothing: the time of a step, of its start, of its deadline (W1 to W9).

// Asked is what the definition's function said when it was asked until when a step waits.
type Asked struct {
	Step    string
	Applies *bool                // of a step with a condition: whether it is done in this run. It is asked before all else
	Until   time.Time            // zero, as any time that is past: it does not wait
	On      []program.MessageKey // of a wait for an answer: by which messages it comes
	Read    *Read                // what is held for it, if anything is
	Shown   *Shown               // of a step at which people decide
	Error   string               // it failed, or said what cannot be
}

// waits reports whether the step is one that only waits: it has no effect anywhere.
func (ss *StepState) waits() bool { return !ss.WaitsUntil.IsZero() }

// learnWait folds what r says of a wait.
func (st *State) learnWait(r *Record) error {
	ss := st.Step(r.Step)
	switch {
	case r.Kind == KindOverdue:
		st.DeadlinePassed = true
	case ofVotes(r):
		return st.learnVotes(r)
	case ofAnswer(r):
		return st.learnAnswer(ss, r)
	case r.Kind == KindApplies, r.Kind == KindLeftOut:
		return st.learnWhen(ss, r)
	case r.Kind == KindOver && r.Step == "":
		st.StartsAt = time.Time{}
	case r.Kind == KindOver:
		if ss == nil || ss.Forward.Phase != Waiting {
			return fmt.Errorf("%s speaks of step %q, which does not wait", r.Kind, r.Step)
		}
		ss.Forward.Phase, ss.Evidence = Done, KindOver
	case st.Compensating || ss != nil && ss.Forward.Phase != Ready && ss.Forward.Phase != "" && (ss.Forward.Phase != Waiting && ss.Forward.Phase != InDoubt || r.Kind != KindFault):
		return fmt.Errorf("%s speaks of step %q, which has begun, or of a work that goes back", r.Kind, r.Step)
	default:
		if ss == nil {
			ss = st.begin(r.Step)
		}
		if r.Kind == KindWaiting {
			ss.WaitsUntil, ss.Forward = r.Until, Effort{Phase: Waiting, PolicyStartedAt: r.At.UTC()}
			return ss.learnAsks(r)
		} else { // the definition could not say until when, or its lookup panicked
			e := &ss.Forward
			if e.NeedsReview, e.ErrorClass, e.Error = saga.ReasonPoison, r.ErrorClass, r.Error; e.Phase != InDoubt {
				e.Phase = Ready
			}
		}
	}
	return nil
}

// ofWait reports whether r speaks of a wait and of no attempt.
func ofWait(r *Record) bool {
	switch r.Kind { //nolint:exhaustive // all others are of attempts
	case KindWaiting, KindOver, KindOverdue, KindAnswered, KindAnswerKept, KindAnsweredNo, KindUnanswered, KindExtended,
		KindOpened, KindVoted, KindApproved, KindRejected, KindApplies, KindLeftOut:
		return true
	default:
		return r.Kind == KindFault && r.Attempt == 0
	}
}

// learnAsked takes what the definition's function said.
func (m *machine) learnAsked(a *Asked) error {
	s := m.step(a.Step)
	if s != nil && m.st.AsksWhen(s) {
		return m.learnApplies(s, a)
	}
	if ss := m.st.Step(a.Step); s == nil || !s.Waits() || s.Wait == program.WaitDelay || m.st.Compensating ||
		ss != nil && (ss.Forward.Phase != Ready && ss.Forward.Phase != "" || ss.Forward.NeedsReview != "") {
		return errNotFitting
	}
	switch {
	case a.Error != "":
		return m.fold(&Record{Kind: KindFault, Step: s.Name, Direction: saga.Forward, ErrorClass: saga.Fault, Error: a.Error})
	case s.Wait == program.WaitVotes:
		return m.beginVoting(s, a.Shown)
	case s.WaitsForAnswer():
		return m.beginAsking(s, a)
	}
	return m.beginWait(s, later(a.Until, m.ev.Now.Earliest))
}

// beginWait records until when the step waits (W1).
func (m *machine) beginWait(s *program.StepSpec, until time.Time) error {
	return m.fold(&Record{Kind: KindWaiting, Step: s.Name, Direction: saga.Forward, Until: ticks(until)})
}

// ticks is a point in time as a record keeps it, not before t.
func ticks(t time.Time) time.Time {
	return t.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// awaitStep decides on a step that only waits. It reports false when the wait is over.
func (m *machine) awaitStep(i int, s *program.StepSpec) (Command, bool) {
	ss := m.st.Step(s.Name)
	switch {
	case s.WaitsForAnswer():
		return m.awaitAnswer(i, s, ss)
	case s.Wait == program.WaitVotes:
		return m.awaitVotes(i, s, ss)
	case ss != nil && ss.Forward.NeedsReview != "":
		return m.park(ss.Forward.NeedsReview), true
	case ss != nil && ss.Forward.Phase == Waiting:
		switch {
		case m.ev.Now.Earliest.Before(ss.WaitsUntil):
			return m.wait(ss.WaitsUntil, saga.Waiting), true
		case m.rec != nil:
			return m.again(), true
		}
		if err := m.fold(&Record{Kind: KindOver, Step: s.Name, Direction: saga.Forward}); err != nil {
			return m.cannotBe(err), true
		}
		m.moving()
		return Command{}, false
	case m.adoptedBehind(i):
		return Command{}, false
	case s.Wait == program.WaitUntil:
		m.moving()
		return Command{Do: Ask, Step: s.Name, Direction: saga.Forward}, true
	case m.rec != nil:
		return m.again(), true
	}
	if err := m.beginWait(s, m.ev.Now.Latest.Add(s.Delay)); err != nil {
		return m.cannotBe(err), true
	}
	return m.wait(m.st.Step(s.Name).WaitsUntil, saga.Waiting), true
}

// renamed parks a work of which an earlier version of the definition calls something else by the step's name:
// one waits, the other acts.
func (m *machine) renamed(s *program.StepSpec) Command {
	cmd := m.park(saga.ReasonPoison)
	m.rec.Note = fmt.Sprintf("step %q only waits in one version of the definition, and acts in another: give it a name of its own", s.Name)
	return cmd
}

// adoptedBehind reports whether a step behind i was found done when the ledger was lost: what stands
// before it was over by then (D4).
func (m *machine) adoptedBehind(i int) bool {
	return slices.ContainsFunc(m.spec.Steps[i+1:], func(s program.StepSpec) bool {
		ss := m.st.Step(s.Name)
		return ss != nil && (ss.Evidence == KindAdopted || ss.StoodBeforeLoss && !s.FindFirst) && ss.Forward.Phase == Done
	})
}

// begun reports whether a step is known to have begun: one that a fail-over alone put into doubt is not.
func (st *State) begun() bool {
	return slices.ContainsFunc(st.Steps, func(ss StepState) bool { return ss.Forward.Phase != InDoubt || ss.Forward.Attempts > 0 })
}

// holdsOff decides on what keeps the work from going on to its next step at all: a start that is for
// later, and a deadline that has passed.
func (m *machine) holdsOff() (Command, bool) {
	st := m.st
	switch {
	case !st.begun() && m.ev.Now.Earliest.Before(st.StartsAt):
		return m.wait(st.StartsAt, saga.Waiting), true
	case m.deadline().IsZero() || m.ev.Now.Earliest.Before(st.Deadline):
		return Command{}, false
	case m.rec != nil || m.ev.Spoken:
		return m.again(), true
	}
	if err := m.fold(&Record{Kind: KindOverdue, Note: "its deadline has passed"}); err != nil {
		return m.cannotBe(err), true
	}
	if !m.ev.HeldUntil.Before(st.Deadline) {
		m.rec.Note = "its deadline passed before a person let the saga, or everything, go on again: nothing follows"
		return Command{}, false
	}
	if pivot := m.spec.PivotIndex(); m.spec.Overdue != program.OverdueCompensates || m.pastPivot() || m.pivotStands(pivot) {
		return m.park(saga.ReasonDeadline), true
	}
	return m.turn(""), true
}

// deadline is when the work has to be at its end, or zero: it has no deadline, that was missed already, or
// a person has the work, or had it then (W6).
func (m *machine) deadline() time.Time {
	st := m.st
	held := st.Status.Parked() && st.Reason != saga.ReasonHung && (!m.unparked || !m.ev.Now.Latest.Before(st.Deadline))
	ended := st.Status.Terminal() && (m.rec == nil || m.rec.Kind != KindRevised)
	if st.DeadlinePassed || st.Compensating || ended || held {
		return time.Time{}
	}
	return st.Deadline
}

// passes marks the deadline of a work that r takes out of a person's hands, or from its end, as missed, when it
// was (W6), and the end of a wait for an answer (A11).
func (st *State) passes(r *Record) {
	if st.Status.Live() || !r.Status.Live() || st.Reason == saga.ReasonHung { // that is in no person's hands
		return
	}
	if !st.Deadline.IsZero() && !r.At.Before(st.Deadline) {
		st.DeadlinePassed = true
	}
	for i := range st.Steps {
		if ss := &st.Steps[i]; ss.asking() {
			ss.outside().EndPassedWhileHeld = !r.At.Before(ss.WaitsUntil)
		}
	}
}

// wakeUp ends the wait that the work is in, because a person says so (W2, W8).
func (m *machine) wakeUp(s *Signal) error {
	st := m.st
	switch {
	case st.Status == saga.Paused:
		return m.note(s, "wake: the work is paused; let it go on first")
	case st.Status != saga.Waiting:
		return m.note(s, fmt.Sprintf("wake: the work is %s, and waits for no time", st.Status))
	case len(st.Steps) == 0:
		return m.foldSignal(s, &Record{Kind: KindOver, Note: "it begins before its time"})
	}
	ss := st.front(m.spec)
	if ss == nil || ss.Forward.Phase != Waiting || s.Step != ss.Name || ss.asking() {
		return m.note(s, fmt.Sprintf("wake: step %q does not wait for a time", s.Step))
	}
	return m.foldSignal(s, &Record{Kind: KindOver, Step: ss.Name, Direction: saga.Forward, Note: "it waits no longer"})
}
