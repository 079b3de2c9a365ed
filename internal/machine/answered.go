package machine

import (
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What becomes of what may be an answer (A1, A3, A5, A9).

// hearAnswer consumes what may be the answer that a step waits for.
func (m *machine) hearAnswer(s *Signal) error {
	spec, ss, read := m.step(s.Step), m.st.Step(s.Step), m.ev.Read
	what := fmt.Sprintf("an answer for step %q", s.Step)
	note := func(words string) error { return m.note(s, what+" "+words) }
	switch {
	case spec == nil || !spec.WaitsForAnswer():
		return note("came, and no step of that name waits for one")
	case s.StepKey != "" && !m.ours(spec.Answer.Callback, s.StepKey) && !m.ours(s.Step, s.StepKey):
		return note("is about another revision")
	case ss != nil && ss.Forward.Phase == Done:
		return note("came, and it has one already")
	case s.StepKey == "" && !m.st.Compensating && !m.st.Status.Terminal() && !m.reached(s.Step): // it was found by what an older version waited for
		return note("came when it was not waited for yet")
	case read != nil && read.Left != "":
		return note(read.Left)
	case s.Declined != "": // where it came in
		return note("was declined: " + s.Declined)
	case !m.open(ss, s) && s.Failed == "":
		return m.lateSuccess(s, spec, note)
	case s.Failed != "" && ss != nil && len(ss.Answering().HeldAnswers) > 0:
		return note("says that it has failed, and another answer came before")
	case !m.open(ss, s):
		return note("says that it has failed, and it is given up already")
	case s.Failed == "" && m.unsettled(spec, s):
		return m.keepAnswer(s, &Record{Note: "its request is not answered yet"})
	case s.Failed != "":
		return m.answer(s, ss, &Record{Kind: KindAnsweredNo, Step: s.Step, Direction: saga.Forward, ErrorClass: saga.Refused, Error: s.Failed, Note: "that is the answer"})
	case read == nil:
		return errNotFitting
	case read.Fault != "":
		return m.keepAnswer(s, &Record{ErrorClass: saga.Fault, Error: read.Fault, Note: "it could not be read, and is kept"})
	case read.Declined != "":
		return note("was declined: " + read.Declined)
	}
	r := answered(s.Step, read)
	if m.ofEarlierKey(spec, s) {
		r.Note = fmt.Sprintf("the answer came to the request of step %q that a person had said did not happen: look whether there are two", spec.Answer.Callback)
	}
	return m.answer(s, ss, r)
}

// ofEarlierKey reports whether an answer is to a request of which a person said that it did not happen: another was sent since.
func (m *machine) ofEarlierKey(spec *program.StepSpec, s *Signal) bool {
	asked := m.st.Step(spec.Answer.Callback)
	return s.Message == "" && s.StepKey != "" && asked != nil && asked.Forward.Reissue > 0 && asked.Forward.Key != s.StepKey
}

func answered(step string, read *Read) *Record {
	r := &Record{Kind: KindAnswered, Step: step, Direction: saga.Forward, Note: "the answer came", Error: read.Error}
	r.bring(read.ExternalID, read.Output, read.Dropped)
	return r
}

// unsettled reports whether an answer came before the request that asked for it was answered: its definition reads it when
// the request's result is there (A1).
func (m *machine) unsettled(spec *program.StepSpec, s *Signal) bool {
	return s.StepKey != "" && s.Message == "" && !m.st.Requested(spec)
}

// Requested reports whether the request is done whose answer the step waits for.
func (st *State) Requested(s *program.StepSpec) bool {
	asked := st.Step(s.Answer.Callback)
	return asked != nil && asked.Forward.Phase == Done
}

// keepAnswer keeps an answer until it can be read, or a person has looked at it.
func (m *machine) keepAnswer(s *Signal, r *Record) error {
	body, err := json.Marshal(program.Message{Name: s.Message, Key: s.Said.MessageKey, ID: s.Said.MessageID, Body: s.Body})
	if err != nil {
		return err
	}
	r.Kind, r.Step, r.Direction, r.Body = KindAnswerKept, s.Step, saga.Forward, body
	return m.foldSignal(s, r)
}

// answer folds an answer. A review for want of it is over; what else a person holds stays where it is.
func (m *machine) answer(s *Signal, ss *StepState, r *Record) error {
	m.unparked = m.st.Status == saga.Review && ss != nil && (ss.Forward.NeedsReview != "" || ss.Forward.Phase == Refused)
	return m.foldSignal(s, r)
}

// Open reports whether the named step may be answered: it waits, or it is not its turn yet.
func (st *State) Open(step string) bool {
	if st.Compensating || st.Status.Terminal() {
		return false
	}
	ss := st.Step(step)
	return ss == nil || ss.Forward.Phase == Waiting || ss.Forward.Phase == Ready || ss.Forward.Phase == ""
}

// open is Open for a success or a failure. A success also ends a review about what was answered with no, or not at all.
func (m *machine) open(ss *StepState, s *Signal) bool {
	return m.st.Open(s.Step) || s.Failed == "" && !m.st.Compensating && !m.st.Status.Terminal() && ss.Forward.Phase == Refused
}

// reached reports whether every step before the named one is over. Those by which people are asked hold nothing up.
func (m *machine) reached(step string) bool {
	for i := range m.spec.Steps {
		s := &m.spec.Steps[i]
		if ss := m.st.Step(s.Name); s.Name == step {
			return true
		} else if s.Asks == nil && (ss == nil || ss.Forward.Phase != Done && ss.Forward.Phase != Skipped) && !m.passedOver(i, ss) {
			return false
		}
	}
	return false
}

// passedOver reports whether a wait has not begun and is over all the same: what stands behind it was found when the ledger was lost.
func (m *machine) passedOver(i int, ss *StepState) bool {
	switch s := &m.spec.Steps[i]; {
	case !s.Waits() || s.WaitsForAnswer() && s.Find || ss != nil && ss.Forward.Phase != Ready && ss.Forward.Phase != "":
		return false
	case s.Wait == program.WaitVotes:
		return m.approvedBefore(i)
	}
	return m.adoptedBehind(i)
}

// ours reports whether a key is that of the step's request in this revision.
func (m *machine) ours(step, key string) bool {
	root, n := m.st.root(), 0
	if ss := m.st.Step(step); ss != nil {
		if n = ss.Forward.Reissue; key == ss.Forward.Key { // also one that an earlier revision made, and this one keeps
			return true
		}
	}
	for i := range n + 2 { // a new key may have been forgotten
		if key == StepKey(root, step, saga.Forward, i) {
			return true
		}
	}
	return false
}

// lateSuccess takes a success that comes when it is given up already: a person is asked once everything else is undone, unless what
// it is about is undone by its result (A5).
func (m *machine) lateSuccess(s *Signal, spec *program.StepSpec, note func(string) error) error {
	switch {
	case m.needsNoUndo(spec):
		return note("came when it was given up: nothing of it is to be undone")
	case m.st.LateAnswersLookedAt:
		return note("came when it was given up, and a person has looked for what such answers are about")
	case m.undoneByResult(spec):
		return note("came when it was given up: what it is about is undone by its result")
	case !m.st.Status.Terminal():
		return m.keepAnswer(s, &Record{Note: "it came when it was given up: a person looks at it in the end"})
	}
	m.late = true
	return m.foldSignal(s, &Record{Kind: KindParked, Step: s.Step, Direction: saga.Forward, Note: lateWords(s.Step)})
}

func lateWords(step string) string {
	return fmt.Sprintf("a success came for step %q that was given up: look for what it left, undo that by hand, then let it go on", step)
}

// needsNoUndo reports whether the definition says so of what a late success is about.
func (m *machine) needsNoUndo(spec *program.StepSpec) bool {
	by := m.step(spec.Answer.Callback)
	return spec.NoUndoReason != "" || by != nil && by.NoUndoReason != ""
}

// undoneByResult reports whether the request is undone, or will be, by its result.
func (m *machine) undoneByResult(spec *program.StepSpec) bool {
	asked, by := m.st.Step(spec.Answer.Callback), m.step(spec.Answer.Callback)
	known := asked != nil && asked.Forward.Phase == Done && (asked.ExternalID != "" || len(asked.Output) > 0)
	return known && by != nil && by.Undo
}

// leftOver is the step of which a success was heard that came to nothing, and a person has not looked at it yet; nil: there is none.
func (m *machine) leftOver() *StepState {
	for i := range m.st.Steps {
		ss := &m.st.Steps[i]
		if s := m.step(ss.Name); len(ss.Answering().HeldAnswers) > 0 && (s == nil || !s.WaitsForAnswer() || !m.undoneByResult(s)) {
			return ss
		}
	}
	return nil
}

// answeredAlready reports whether an answer to the request of the step is kept until it can be read.
func (m *machine) answeredAlready(asked *StepState) bool {
	s := m.spec.AnswerTo(asked.Name)
	if s == nil {
		return false
	}
	ss := m.st.Step(s.Name)
	return ss != nil && len(ss.Answering().HeldAnswers) > 0
}

// lookedAt forgets what a person has looked at.
func (st *State) lookedAt() {
	st.LateAnswersLookedAt = true
	for i := range st.Steps {
		st.Steps[i].forget()
	}
}
