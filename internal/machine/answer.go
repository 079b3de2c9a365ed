package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a work waits for from outside: an answer (A1 to A11).

// Outside is what a step has to do with answers from outside.
type Outside struct {
	Secret string `json:"secret,omitempty"` // of a request: the id of the one that its callback token is made with
	// WaitsFor is by what it is answered, when it waits for an answer. EndPassedWhileHeld: the end of that wait passed while a person held it.
	// Unanswered: that no answer came is on record.
	WaitsFor           *Asks `json:"waitsFor,omitempty"`
	EndPassedWhileHeld bool  `json:"endPassedWhileHeld,omitempty"`
	Unanswered         bool  `json:"unanswered,omitempty"`
	// Approval is what people decide, or decided, at a step that is an approval.
	Approval *Ballot `json:"approval,omitempty"`
	// EarlierAnswer is the answer that an earlier revision waited for. It counts in this one when that waits for the same (A12).
	EarlierAnswer *Earlier `json:"earlierAnswer,omitempty"`
	// HeldAnswers is what may be its answer, and came before its request was answered, or when it was given up.
	HeldAnswers []program.Message `json:"heldAnswers,omitempty"`
}

// Answering returns what the step has to do with answers; zero: nothing.
func (ss *StepState) Answering() Outside {
	if ss.Outside == nil {
		return Outside{}
	}
	return *ss.Outside
}

// outside returns it to be changed: a copy of the step's own.
func (ss *StepState) outside() *Outside {
	o := ss.Answering()
	ss.Outside = &o
	return ss.Outside
}

// forget forgets the answers that are held.
func (ss *StepState) forget() {
	if len(ss.Answering().HeldAnswers) > 0 {
		ss.outside().HeldAnswers = nil
	}
}

// Asks is by what a step is answered that waits for an answer.
type Asks struct {
	Callback string               `json:"callback,omitempty"` // the step whose request carried the token
	On       []program.MessageKey `json:"on,omitempty"`
}

// Earlier is an answer, and by which messages it was waited for.
type Earlier struct {
	On []program.MessageKey `json:"on"`
	program.Result
}

// earlier is the answer of a step that waits for messages, for the revisions that follow; nil: it has none.
func (ss *StepState) earlier() *Earlier {
	o := ss.Answering()
	if ss.Forward.Phase == Done && o.WaitsFor != nil && len(o.WaitsFor.On) > 0 {
		return &Earlier{o.WaitsFor.On, program.Result{ExternalID: ss.ExternalID, Output: ss.Output}}
	}
	return o.EarlierAnswer
}

// StaysAnswered reports whether the answer of an earlier revision is that of this one, which waits by those messages. Where there is a
// callback, too, the answer belongs to its request (A3).
func (ss *StepState) StaysAnswered(s *program.StepSpec, on []program.MessageKey) bool {
	return s.Once && s.Answer.Callback == "" && ss != nil && ss.Answering().EarlierAnswer != nil && slices.Equal(ss.Answering().EarlierAnswer.On, on)
}

// words say by what, for people.
func (a *Asks) words() (all []string) {
	if a.Callback != "" {
		all = append(all, "callback of "+a.Callback)
	}
	for _, k := range a.On {
		all = append(all, "message "+k.Name+" "+k.Key)
	}
	if len(all) == 0 {
		all = append(all, "what its lookup finds")
	}
	return all
}

// Polled is when the answer was asked for that a step waits for.
type Polled struct {
	Step string
	At   time.Time
}

// Read is how the definition reads what may be an answer.
type Read struct {
	program.Evidence
	Declined string // why it is none
	Fault    string // why the definition could not read it: nothing is known of it
	Left     string // why it is left to other works, whatever it says: a message is used once
}

func ofAnswer(r *Record) bool {
	switch r.Kind { //nolint:exhaustive // all others speak of something else
	case KindAnswered, KindAnswerKept, KindAnsweredNo, KindUnanswered, KindExtended:
		return true
	default:
		return false
	}
}

// learnAsks folds by what a step is answered that began to wait.
func (ss *StepState) learnAsks(r *Record) error {
	ss.forget()
	if len(r.Body) == 0 {
		return nil
	}
	asks := &Asks{}
	if err := json.Unmarshal(r.Body, asks); err != nil {
		return fmt.Errorf("the body of %s does not decode: %w", r.Kind, err)
	}
	ss.outside().WaitsFor = asks
	return nil
}

// learnAnswer folds what r says of an answer: it may come before it is waited for (A1).
func (st *State) learnAnswer(ss *StepState, r *Record) error {
	if ss == nil {
		ss = st.begin(r.Step)
	}
	e := &ss.Forward
	if r.Kind == KindAnswerKept && e.Phase != Done {
		var held program.Message
		var err error
		if r.Digests.Body == (Hash{}) {
			err = json.Unmarshal(r.Body, &held)
		}
		o := ss.outside()
		o.HeldAnswers = append(slices.Clip(o.HeldAnswers), held)
		if r.ErrorClass == saga.Fault { // a person is asked; a retry reads it
			*e = Effort{Phase: Ready, NeedsReview: saga.ReasonPoison, ErrorClass: r.ErrorClass, Error: r.Error}
		}
		return err
	}
	if st.Compensating || e.Phase != Waiting && e.Phase != Ready && e.Phase != "" && (e.Phase != Refused || r.Kind != KindAnswered) {
		return fmt.Errorf("%s speaks of step %q, which is %s, or of a work that goes back", r.Kind, r.Step, e.Phase)
	}
	ss.forget()
	if ss.WaitsUntil.IsZero() {
		ss.WaitsUntil = r.At.UTC()
	}
	switch r.Kind {
	case KindAnswered:
		if o := ss.outside(); o.WaitsFor == nil && o.EarlierAnswer != nil {
			o.WaitsFor = &Asks{On: o.EarlierAnswer.On}
		}
		e.Error, ss.Outside.EarlierAnswer = "", nil
		ss.done(e, r)
	case KindAnsweredNo:
		e.Phase, e.NeedsReview, e.ErrorClass, e.Error = Refused, "", saga.Refused, r.Error
	case KindUnanswered:
		ss.outside().Unanswered = true
		if e.Error = r.Error; r.ErrorClass == saga.Refused {
			e.Phase, e.ErrorClass = Refused, saga.Refused
		} else { // a person is asked
			e.NeedsReview = saga.ReasonUnanswered
		}
	default: // KindExtended
		ss.WaitsUntil, ss.outside().EndPassedWhileHeld = r.Until, false
		e.NeedsReview, e.Error, e.UnclearLookups, e.Failures = "", "", 0, 0
	}
	return nil
}

// beginAsking records until when and by what the step waits for its answer, unless what is held for it is the answer.
func (m *machine) beginAsking(s *program.StepSpec, a *Asked) error {
	if ss := m.st.Step(s.Name); ss.StaysAnswered(s, a.On) {
		r := &Record{Kind: KindAnswered, Step: s.Name, Direction: saga.Forward, Note: "it was answered in an earlier run, and waits for the same"}
		r.bring(ss.Outside.EarlierAnswer.ExternalID, ss.Outside.EarlierAnswer.Output, false)
		return m.fold(r)
	}
	if a.Read != nil && a.Read.Declined == "" {
		return m.fold(answered(s.Name, a.Read))
	}
	body, err := json.Marshal(Asks{s.Answer.Callback, a.On})
	if err != nil {
		return err
	}
	until := ticks(m.ev.Now.Latest.Add(time.Duration(s.Answer.Within)))
	r := &Record{Kind: KindWaiting, Step: s.Name, Direction: saga.Forward, Until: until, Body: body}
	if a.Read != nil {
		r.Note = "what came before was declined: " + a.Read.Declined
	}
	return m.fold(r)
}

// awaitAnswer decides on a step that waits for an answer. It reports false when the answer is there.
func (m *machine) awaitAnswer(i int, s *program.StepSpec, ss *StepState) (Command, bool) {
	switch {
	case m.unasked(s, ss) && m.rec != nil:
		return m.again(), true
	case m.unasked(s, ss):
		if err := m.fold(&Record{Kind: KindLeftOut, Step: s.Name, Direction: saga.Forward, Note: "the request that it waits for was left out"}); err != nil {
			return m.cannotBe(err), true
		}
		m.moving()
		return Command{}, false
	case ss != nil && ss.Forward.NeedsReview != "":
		return m.park(ss.Forward.NeedsReview), true
	case ss != nil && ss.Forward.Phase == Refused:
		return m.refused(i), true
	case ss != nil && ss.Forward.Phase == Waiting:
		return m.unanswered(i, s, ss), true
	case !s.Find && m.adoptedBehind(i):
		return Command{}, false
	}
	m.moving()
	return Command{Do: Ask, Step: s.Name, Direction: saga.Forward}, true
}

// askedBefore reports whether what asked for the answer is of before the ledger was lost: the request that carried the token, or
// for a message what was done last.
func (m *machine) askedBefore(i int, s *program.StepSpec) bool {
	by := s.Answer.Callback
	for j := i - 1; j >= 0 && by == ""; j-- {
		if !m.spec.Steps[j].Waits() {
			by = m.spec.Steps[j].Name
		}
	}
	asked := m.st.Step(by)
	return asked != nil && asked.Evidence == KindAdopted
}

// rebuilt reports whether the answer may have come before the ledger was lost.
func (m *machine) rebuilt(i int, s *program.StepSpec) bool {
	return m.askedBefore(i, s) || m.adoptedBehind(i)
}

// unanswered decides on a step whose answer is not there yet.
func (m *machine) unanswered(i int, s *program.StepSpec, ss *StepState) Command {
	now, e := m.ev.Now.Earliest, &ss.Forward
	over := !now.Before(ss.WaitsUntil)
	look := time.Time{} // when the answer is to be asked for
	switch {
	case !s.Find && m.askedBefore(i, s) && !ss.Answering().Unanswered: // the ledger was lost, and with it what was answered (A7)
		if m.rec != nil || m.ev.Spoken {
			return m.again()
		}
		return m.giveUpOn(i, s, "the ledger was lost, and nothing tells whether the answer had come")
	case s.Find && over && e.UnclearLookups < maxLookups:
		look = later(ss.WaitsUntil, e.BackoffUntil)
	case s.Find && !over && m.polled(s).IsZero() && m.rebuilt(i, s): // it may have come before the ledger was lost
		look = later(e.PolicyStartedAt, e.BackoffUntil)
	case s.Find && !over && s.Answer.Poll > 0:
		look = later(later(e.PolicyStartedAt, m.polled(s)).Add(time.Duration(s.Answer.Poll)), e.BackoffUntil)
	case !over:
	case m.rec != nil || m.ev.Spoken: // what was said in time counts (A4)
		return m.again()
	case s.Find:
		return m.giveUpOn(i, s, "no answer came in time, and its lookup cannot tell: "+e.Error)
	default:
		return m.giveUpOn(i, s, "no answer came in time")
	}
	switch {
	case !look.IsZero() && !now.Before(look) && (m.rec != nil || m.ev.Spoken):
		return m.wait(now, saga.Waiting) // it is asked at once, and waits meanwhile
	case !look.IsZero() && !now.Before(look):
		return Command{Do: Look, Step: s.Name, Direction: saga.Forward}
	case over || !look.IsZero() && look.Before(ss.WaitsUntil):
		return m.wait(look, saga.Waiting)
	}
	return m.wait(ss.WaitsUntil, saga.Waiting)
}

// polled is when this process asked for the answer last, or zero.
func (m *machine) polled(s *program.StepSpec) time.Time {
	if m.ev.Polled == nil || m.ev.Polled.Step != s.Name {
		return time.Time{}
	}
	return m.ev.Polled.At
}

// giveUpOn records that the answer has not come in time, and follows what the step says of that.
func (m *machine) giveUpOn(i int, s *program.StepSpec, why string) Command {
	if err := m.foldUnanswered(s, why, !s.Find); err != nil {
		return m.cannotBe(err)
	}
	if m.rec.ErrorClass == "" {
		return m.park(saga.ReasonUnanswered)
	}
	return m.refused(i)
}

// foldUnanswered records that no answer came. asked: who can be asked for it was, and does not have it.
func (m *machine) foldUnanswered(s *program.StepSpec, words string, asked bool) error {
	r, ss := &Record{Kind: KindUnanswered, Step: s.Name, Direction: saga.Forward, Error: words}, m.st.Step(s.Name)
	held := ss.Answering().EndPassedWhileHeld || !m.ev.HeldUntil.Before(ss.WaitsUntil) // nothing is undone behind a person's back (A11)
	held = held || m.ev.Now.Earliest.Before(ss.WaitsUntil)                             // nor because the ledger was lost (A7)
	if s.Answer.Overdue != program.OverdueAsks && asked && !held {
		r.ErrorClass = saga.Refused
	}
	return m.fold(r)
}

// learnPoll takes what a lookup says of the answer. Before the time is over, one that does not have it is no record.
func (m *machine) learnPoll(ss *StepState, f *program.Evidence) error {
	s := m.step(ss.Name)
	if ss.Forward.Phase != Waiting || m.st.Compensating {
		return errNotFitting
	}
	r := &Record{Step: ss.Name, Direction: saga.Forward, Error: f.Error}
	over := !m.ev.Now.Earliest.Before(ss.WaitsUntil)
	if f.Stack != "" {
		return m.fold(&Record{Kind: KindFault, Step: ss.Name, Direction: saga.Forward, ErrorClass: saga.Fault, Error: f.Error})
	}
	switch f.Answer {
	case program.AnswerFound:
		r.Kind = KindFound
		r.bring(f.ExternalID, f.Output, f.Dropped)
	case program.AnswerFailed:
		r.Kind, r.ErrorClass, r.Note = KindAnsweredNo, saga.Refused, "its lookup says that it has failed"
	case program.AnswerSeveral:
		r.Kind, r.Error = KindSeveral, fmt.Sprintf("the destination has %d of them: %q", len(f.IDs), f.IDs)
	case program.AnswerNotFound, program.AnswerUnfinished:
		if !over {
			return nil
		}
		return m.foldUnanswered(s, "no answer came in time, and its lookup does not have it", true)
	default:
		if !over {
			return nil
		}
		if f.Unput {
			return m.foldUnanswered(s, "no answer came in time, and it could not be asked for", false)
		}
		r.Kind = KindUnclear // it is asked again a few times: an outage keeps no answer for ever
	}
	return m.foldLookup(r, f)
}

// boundary reports whether the work may begin a newer revision now.
func (m *machine) boundary() bool { return m.st.boundary() && !m.jobUnderWay() }

// jobUnderWay reports whether what a request of this revision asked for is not answered yet: no newer version begins over
// its head (A6), unless a person is needed: the version may be what mends it.
func (m *machine) jobUnderWay() bool {
	if m.st.Compensating || m.st.Status.Terminal() || m.st.Status == saga.Review {
		return false
	}
	for i := range m.spec.Steps {
		s := &m.spec.Steps[i]
		if !s.WaitsForAnswer() || s.Answer.Callback == "" {
			continue
		}
		asked, ss := m.st.Step(s.Answer.Callback), m.st.Step(s.Name)
		if asked != nil && asked.Forward.Phase == Done && (ss == nil || ss.Forward.Phase == Waiting && ss.Forward.NeedsReview == "" || ss.Forward.Phase == "") {
			return true
		}
	}
	return false
}

// extend has a step wait longer for its answer.
func (m *machine) extend(s *Signal) error {
	ss := m.st.Step(s.Step)
	switch {
	case m.st.Compensating || ss == nil || !ss.asking():
		return m.note(s, fmt.Sprintf("extend: step %q does not wait for an answer", s.Step))
	case !s.Until.After(m.ev.Now.Latest):
		return m.note(s, "extend: that time has passed")
	}
	m.unparked = m.st.Status == saga.Review && ss.Forward.NeedsReview != ""
	return m.foldSignal(s, &Record{Kind: KindExtended, Step: s.Step, Direction: saga.Forward, Until: ticks(s.Until), Note: "it waits longer"})
}
