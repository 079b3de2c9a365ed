package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a work waits for that people decide (P1 to P9).

// Ballot is what people decide at a step, and how they voted. It is shared by copies of the state, and never changed.
type Ballot struct {
	Digest      string          `json:"digest"` // of Shown and of the run; a vote is bound to it
	Shown       json.RawMessage `json:"shown"`
	AskingSteps []string        `json:"askingSteps,omitempty"` // by which people are asked
	Since       time.Time       `json:"since,omitzero"`
	Until       time.Time       `json:"until,omitzero"` // of what an earlier revision left; else the step's own counts
	Votes       []saga.Vote     `json:"votes,omitempty"`
}

// Shown is what the definition wants to be decided.
type Shown struct {
	Document json.RawMessage
	Asked    bool // false: no decision is needed
}

// Cast is what a vote says. Who says so, and why, is the signal's.
type Cast struct {
	Approve bool     `json:"approve"`
	Roles   []string `json:"roles"`
	Shown   string   `json:"shown"` // the digest of what that person was shown
}

// Objections to a vote: it is on record, and does not count.
var (
	// ErrNotOpen: nothing is to be decided at that step, or not any more.
	ErrNotOpen = errors.New("nothing is to be decided there")
	// ErrOtherShown: what is to be decided is not what the vote is about.
	ErrOtherShown = errors.New("what is to be decided has changed since it was shown: look at it again")
	// ErrNoVote: that person has no vote.
	ErrNoVote = errors.New("no vote")
	// ErrVoted: that person has voted so before.
	ErrVoted = errors.New("this vote is counted already")
)

// Ballot returns what people decide, or decided, at the step; nil: nothing.
func (ss *StepState) Ballot() *Ballot { return ss.Answering().Approval }

// asking reports whether the step waits for what comes from outside: an answer, or votes.
func (ss *StepState) asking() bool {
	o := ss.Answering()
	return ss.Forward.Phase == Waiting && (o.WaitsFor != nil || o.Approval != nil)
}

func (b *Ballot) approvals() (n int) {
	for i := range b.Votes {
		if b.Votes[i].Approve {
			n++
		}
	}
	return n
}

// digest is what a vote on the document is bound to: a run of its own has another one, whatever is shown.
func (st *State) digest(doc json.RawMessage) string {
	return program.HashHex(append([]byte(RootKey(st.ID.Saga, st.ID.Work, st.Run)+"\n"), doc...))
}

// without is the ballot without the votes of a person.
func (b *Ballot) without(who string) *Ballot {
	c := *b
	c.Votes = slices.DeleteFunc(slices.Clone(b.Votes), func(v saga.Vote) bool { return samePerson(v.By, who) })
	return &c
}

func (b *Ballot) with(v saga.Vote) *Ballot {
	c := *b
	c.Votes = append(slices.Clip(b.Votes), v)
	return &c
}

// wantsVotes says for whose decision it waits, for people. spec may be nil.
func (st *State) wantsVotes(spec *program.Spec, ss *StepState) string {
	if spec == nil || spec.Index(ss.Name) < 0 || spec.Steps[spec.Index(ss.Name)].Approval == nil {
		return "approval"
	}
	a := spec.Steps[spec.Index(ss.Name)].Approval
	words := "approval by " + strings.Join(Voters(a, ss.Forward.PolicyStartedAt, st.Updated), " or ")
	if a.Votes > 1 {
		words += fmt.Sprintf(" (%d of %d)", ss.Ballot().approvals(), a.Votes)
	}
	return words
}

// Voters are the roles that may vote at a time, on what was begun at another.
func Voters(a *program.ApprovalSpec, since, at time.Time) []string {
	if a.EscalateAfter > 0 && !at.Before(since.Add(time.Duration(a.EscalateAfter))) {
		return slices.Concat(a.Roles, a.EscalateTo)
	}
	return a.Roles
}

// Objection is why a vote does not count that came at s.At, or nil (P3).
func Objection(spec *program.Spec, st *State, s *Signal) error {
	ss, i := st.Step(s.Step), -1
	if spec != nil {
		i = spec.Index(s.Step)
	}
	if i < 0 || spec.Steps[i].Approval == nil || ss == nil || ss.Ballot() == nil || s.Vote == nil {
		return ErrNotOpen
	}
	if err := voted(ss.Ballot(), s); err != nil {
		return err
	}
	if st.Compensating || st.Status.Terminal() || ss.Forward.Phase != Waiting {
		return ErrNotOpen
	}
	b, a := ss.Ballot(), spec.Steps[i].Approval
	if !s.At.Before(ss.WaitsUntil) && ss.Forward.NeedsReview == "" {
		return fmt.Errorf("%w: its time was over at %s", ErrNotOpen, ss.WaitsUntil.UTC().Format(time.RFC3339))
	}
	if s.Vote.Shown != b.Digest || st.PendingRevision != nil && !st.PendingRevision.Withdrawn {
		return ErrOtherShown
	}
	voters, admin := Voters(a, b.Since, s.At), slices.Contains(s.Vote.Roles, saga.Admin)
	switch {
	case !admin && !slices.ContainsFunc(s.Vote.Roles, func(r string) bool { return slices.Contains(voters, r) }):
		return fmt.Errorf("%w: it takes one of the roles %s, and %s has %s", ErrNoVote, strings.Join(voters, ", "), s.Actor, anyOf(s.Vote.Roles))
	case a.NotStarter && (len(st.Starters) == 0 || slices.Contains(st.Starters, "")) && !admin:
		return fmt.Errorf("%w: it is not the starter's, and who started it is not known any more: an admin decides", ErrNoVote)
	case a.NotStarter && slices.ContainsFunc(st.Starters, func(by string) bool { return samePerson(by, s.Actor) }):
		return fmt.Errorf("%w: %s started it, or brought a version of it, and another has to decide", ErrNoVote, s.Actor)
	}
	return nil
}

// voted says that the very same vote counts already, also when what it decides is decided by now.
func voted(b *Ballot, s *Signal) error {
	for _, v := range b.Votes {
		if s.Vote.Shown == b.Digest && v.Approve == s.Vote.Approve && samePerson(v.By, s.Actor) {
			return fmt.Errorf("%w: %s said so at %s", ErrVoted, v.By, v.At.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

func anyOf(roles []string) string {
	if len(roles) == 0 {
		return "none"
	}
	return strings.Join(roles, ", ")
}

func samePerson(a, b string) bool { return Person(a) == Person(b) }

// Person is a name by which people are compared: in one normal form (NFKC), without case, blanks and what is not seen, such as a
// zero-width space.
func Person(name string) string {
	seen := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, norm.NFKC.String(name))
	return norm.NFKC.String(cases.Fold().String(seen))
}

// startedBy notes who started the work, or brought a version of it.
func (st *State) startedBy(who string) {
	if !slices.ContainsFunc(st.Starters, func(by string) bool { return samePerson(by, who) }) {
		st.Starters = append(slices.Clip(st.Starters), who)
	}
}

// hearVote consumes a vote.
func (m *machine) hearVote(s *Signal) error {
	ss, word := m.st.Step(s.Step), "approve"
	if s.Vote != nil && !s.Vote.Approve {
		word = "reject"
	}
	if err := Objection(m.spec, m.st, s); err != nil {
		return m.note(s, fmt.Sprintf("a vote to %s step %q does not count: %s", word, s.Step, err))
	}
	v := saga.Vote{By: s.Actor, Roles: s.Vote.Roles, Approve: s.Vote.Approve, Reason: s.Reason, At: s.At.UTC()}
	b, need := ss.Ballot().with(v), m.step(s.Step).Approval.Votes
	r := &Record{Kind: KindVoted, Step: s.Step, Direction: saga.Forward, Note: fmt.Sprintf("approved, %d of %d", b.approvals(), need)}
	var said any = v
	switch {
	case !v.Approve:
		r.Kind, r.ErrorClass, r.Note, r.Error = KindRejected, saga.Refused, "", "rejected"
	case b.approvals() >= need:
		r.Kind, r.Note, said = KindApproved, "approved", b.Votes
	}
	var err error
	if r.Body, err = json.Marshal(said); err != nil {
		return err
	}
	m.unparked = m.st.Status == saga.Review && r.Kind != KindVoted && (ss.Forward.NeedsReview != "" || m.reviewsAsk(s.Step))
	return m.foldSignal(s, r)
}

// reviewsAsk reports whether the review is about a step that asks for the approval: when that is decided, it is over.
func (m *machine) reviewsAsk(approval string) bool {
	at, _ := m.st.Issue(m.spec)
	if at == nil {
		return false
	}
	s := m.step(at.Name)
	return s != nil && s.Asks != nil && s.Asks.Approval == approval
}

// beginVoting records what people decide (P1), or that no decision is needed. What an earlier revision left counts on where
// the same is shown (P2).
func (m *machine) beginVoting(s *program.StepSpec, shown *Shown) error {
	r := &Record{Kind: KindApproved, Step: s.Name, Direction: saga.Forward, Note: "no decision is needed", Body: json.RawMessage("[]")}
	if shown == nil {
		return errNotFitting
	}
	if !shown.Asked {
		return m.fold(r)
	}
	b := Ballot{Digest: m.st.digest(shown.Document), Shown: shown.Document}
	for i := range m.spec.Steps {
		if a := m.spec.Steps[i].Asks; a != nil && a.Approval == s.Name {
			b.AskingSteps = append(b.AskingSteps, m.spec.Steps[i].Name)
		}
	}
	r.Kind, r.Until, r.Note = KindOpened, ticks(m.ev.Now.Latest.Add(time.Duration(s.Approval.Within))), ""
	if ss := m.st.Step(s.Name); ss != nil && ss.Ballot() != nil {
		switch was := ss.Ballot(); {
		case was.Digest == b.Digest && !was.Until.After(m.ev.Now.Latest): // it passed while no decision could be taken
			r.Note = fmt.Sprintf("what is shown is the same, and its time is over: earlier votes (%d) stand, and people have as long again", len(was.Votes))
		case was.Digest == b.Digest:
			r.Until, r.Note = was.Until, fmt.Sprintf("what is shown is the same: earlier votes (%d) stand", len(was.Votes))
		default:
			r.Note = fmt.Sprintf("what is shown has changed: earlier votes (%d) are void, and people are asked again", len(was.Votes))
		}
	}
	var err error
	if r.Body, err = json.Marshal(b); err != nil {
		return err
	}
	return m.fold(r)
}

func ofVotes(r *Record) bool {
	return r.Kind == KindOpened || r.Kind == KindVoted || r.Kind == KindApproved || r.Kind == KindRejected
}

// learnVotes folds what r says of a decision of people.
func (st *State) learnVotes(r *Record) error {
	ss := st.Step(r.Step)
	if ss == nil {
		ss = st.begin(r.Step)
	}
	e := &ss.Forward
	begins := r.Kind == KindOpened || r.Kind == KindApproved && e.Phase != Waiting
	switch {
	case st.Compensating || begins && e.Phase != Ready && e.Phase != "" || !begins && (e.Phase != Waiting || ss.Ballot() == nil):
		return fmt.Errorf("%s speaks of step %q, which is %s, or of a work that goes back", r.Kind, r.Step, e.Phase)
	case r.Kind == KindOpened:
		return st.open(ss, r)
	}
	var v saga.Vote
	var all []saga.Vote
	into := any(&v)
	if r.Kind == KindApproved {
		into = &all
	}
	if len(r.Body) > 0 { // else it was erased
		if err := json.Unmarshal(r.Body, into); err != nil {
			return fmt.Errorf("the body of %s does not decode: %w", r.Kind, err)
		}
	}
	if r.Kind == KindApproved {
		if begins { // no decision is needed, whatever an earlier revision needed
			ss.WaitsUntil, ss.Outside = r.At.UTC(), nil
		} else {
			decided := *ss.Ballot()
			decided.Votes, ss.outside().Approval = all, &decided
		}
		e.Error = ""
		ss.done(e, r)
		return nil
	}
	ss.outside().Approval = ss.Ballot().with(v)
	if r.Kind == KindRejected {
		e.Phase, e.NeedsReview, e.ErrorClass, e.Error = Refused, "", saga.Refused, r.Said()
	}
	return nil
}

// open folds what people are shown. Where that is not what they were shown before, they are asked again.
func (st *State) open(ss *StepState, r *Record) error {
	b, was := &Ballot{}, ss.Ballot()
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, b); err != nil {
			return fmt.Errorf("the body of %s does not decode: %w", r.Kind, err)
		}
	}
	switch b.Since = r.At.UTC(); {
	case was != nil && was.Digest == b.Digest:
		b.Since, b.Votes = was.Since, was.Votes
	default:
		for _, name := range b.AskingSteps {
			if asks := st.Step(name); asks != nil && (was != nil || asks.Forward.Phase == Done || asks.Forward.Phase == Skipped) {
				asks.again()
			}
		}
	}
	ss.WaitsUntil, ss.Forward = r.Until, Effort{Phase: Waiting, PolicyStartedAt: b.Since}
	ss.outside().Approval = b
	return nil
}

// kept is what a newer revision keeps of a ballot: the votes count there, too, if the document that is shown is the same (P2).
func (ss *StepState) kept() *Outside {
	if ss.Ballot() == nil || ss.Forward.Phase == Refused {
		return nil
	}
	b := *ss.Ballot()
	if ss.waits() { // else it is of a revision before the one that ends
		b.Until = ss.WaitsUntil
	}
	return &Outside{Approval: &b}
}

// awaitVotes decides on a step at which people decide. It reports false when they have approved.
func (m *machine) awaitVotes(i int, s *program.StepSpec, ss *StepState) (Command, bool) {
	switch {
	case ss != nil && ss.Forward.NeedsReview != "":
		return m.park(ss.Forward.NeedsReview), true
	case ss != nil && ss.Forward.Phase == Refused:
		return m.refused(i), true
	case ss == nil || ss.Forward.Phase != Waiting:
		if m.approvedBefore(i) {
			return Command{}, false
		}
		m.moving()
		return Command{Do: Ask, Step: s.Name, Direction: saga.Forward}, true
	}
	b, over := ss.Ballot(), !m.ev.Now.Earliest.Before(ss.WaitsUntil)
	enough := b.approvals() >= s.Approval.Votes // they stood over a newer version, or fewer are needed by now
	switch {
	case !over && !enough:
		return m.wait(ss.WaitsUntil, saga.Waiting), true
	case m.rec != nil || m.ev.Spoken: // what was said in time counts
		return m.again(), true
	}
	r := &Record{Kind: KindUnanswered, Step: s.Name, Direction: saga.Forward, Error: "it was not approved in time"}
	if enough {
		body, err := json.Marshal(b.Votes)
		if err != nil {
			return m.cannotBe(err), true
		}
		r.Kind, r.Body, r.Error, r.Note = KindApproved, body, "", "approved"
	} else if asked := m.wereAsked(s.Name); !asked {
		r.Error = "it was not approved in time, and it could not be asked for"
	} else if !ss.Answering().EndPassedWhileHeld && m.ev.HeldUntil.Before(ss.WaitsUntil) { // else nothing is undone behind a person's back
		r.ErrorClass = saga.Refused
	}
	if err := m.fold(r); err != nil {
		return m.cannotBe(err), true
	}
	switch {
	case enough:
		m.moving()
		return Command{}, false
	case r.ErrorClass == "":
		return m.park(saga.ReasonUnanswered), true
	}
	return m.refused(i), true
}

// approvedBefore reports whether a step behind i is known to stand since before the ledger was lost. One that only counts as done tells
// nothing: people are asked again (P9).
func (m *machine) approvedBefore(i int) bool {
	return slices.ContainsFunc(m.spec.Steps[i+1:], func(s program.StepSpec) bool {
		ss := m.st.Step(s.Name)
		return ss != nil && ss.StoodBeforeLoss && ss.Forward.Phase == Done && !ss.Unconfirmed && (ss.Evidence == KindAdopted || !s.FindFirst)
	})
}

// askVoters decides on a step by which people are asked: when its time has come, and as long as nothing is decided (P5). It
// reports false when the work goes on behind it.
func (m *machine) askVoters(s *program.StepSpec, ss *StepState) (Command, bool) {
	i := m.spec.Index(s.Asks.Approval)
	decision := &m.spec.Steps[i]
	ws := m.st.Step(decision.Name)
	if ws == nil || ws.Forward.Phase == Ready || ws.Forward.Phase == "" || ws.Forward.NeedsReview != "" {
		return m.awaitVotes(i, decision, ws)
	}
	now := m.ev.Now.Earliest
	over := ws.Forward.Phase != Waiting || ws.Ballot().approvals() >= decision.Approval.Votes || !now.Before(ws.WaitsUntil)
	due := ws.Forward.PolicyStartedAt.Add(time.Duration(s.Asks.After))
	switch {
	case over && (ss == nil || ss.Forward.Phase == ""):
		return Command{}, false
	case over && (m.rec != nil || m.ev.Spoken):
		return m.again(), true
	case over: // it was sent, or was to be sent again
		r := &Record{Kind: KindSkipped, Step: s.Name, Direction: saga.Forward, Attempt: ss.Forward.Attempts, Note: "it is decided, and people are asked no more"}
		if err := m.fold(r); err != nil {
			return m.cannotBe(err), true
		}
		return m.again(), true
	case now.Before(due):
		return m.wait(due, saga.Waiting), true
	}
	var cmd Command
	if ss == nil {
		cmd = m.arm(s, saga.Forward)
	} else {
		cmd = m.resume(m.spec.Index(s.Name), s, ss)
	}
	switch { // the end is not missed over a question
	case cmd.Do == Slot && (cmd.Until.IsZero() || ws.WaitsUntil.Before(cmd.Until)):
		cmd.Until = ws.WaitsUntil
	case cmd.Do == Wait && ws.WaitsUntil.Before(cmd.Until):
		cmd = m.wait(ws.WaitsUntil, saga.Retrying)
	}
	if m.rec != nil && m.rec.Status == saga.Running { // people may decide already, whatever becomes of the question
		m.rec.Status = saga.Waiting
	}
	return cmd, true
}

// wereAsked reports whether people may have been asked for a decision: one of the steps that ask at once has got through, or there is
// none (A15).
func (m *machine) wereAsked(decision string) bool {
	none := true
	for i := range m.spec.Steps {
		s := &m.spec.Steps[i]
		if s.Asks == nil || s.Asks.Approval != decision || s.Asks.After > 0 {
			continue
		}
		if ss := m.st.Step(s.Name); ss != nil && (ss.Forward.Phase == Done || ss.Forward.MayHaveReached) {
			return true
		}
		none = false
	}
	return none
}

// askedBy reports whether a step may have asked by now: its time has come.
func (m *machine) askedBy(s *program.StepSpec) bool {
	ws := m.st.Step(s.Asks.Approval)
	if ws == nil || ws.Forward.Phase == Ready || ws.Forward.Phase == "" {
		return s.Asks.After == 0
	}
	return ws.Forward.Phase == Waiting && !m.ev.Now.Latest.Before(ws.Forward.PolicyStartedAt.Add(time.Duration(s.Asks.After)))
}

// decidedByPeople reports whether the step is an approval: no other word of a person stands for their votes.
func (m *machine) decidedByPeople(step string) bool {
	s := m.step(step)
	return s != nil && s.Wait == program.WaitVotes
}

// BriefOf is what a step says to people whom it asks to vote, or nil where it does not.
func BriefOf(spec *program.Spec, st *State, step string) *program.Brief {
	i := spec.Index(step)
	if i < 0 || spec.Steps[i].Asks == nil {
		return nil
	}
	asks := spec.Steps[i].Asks
	at := st.Step(asks.Approval)
	if at == nil || at.Ballot() == nil {
		return nil
	}
	a, b := spec.Steps[spec.Index(asks.Approval)].Approval, at.Ballot()
	brief := &program.Brief{
		Step: asks.Approval, Shown: b.Shown, Digest: b.Digest, Votes: a.Votes, Until: at.WaitsUntil,
		Roles: Voters(a, time.Time{}, time.Time{}.Add(time.Duration(asks.After))), Reminder: asks.After > 0 && !asks.Escalates, Escalated: asks.Escalates,
	}
	if asks.Escalates {
		brief.Roles = a.EscalateTo
	}
	if about := program.AboutOf(b.Shown); about != nil {
		brief.About = *about
	}
	return brief
}
