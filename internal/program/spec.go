package program

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Repeat is how a step is safe to repeat.
type Repeat string

// From strongest to weakest. What follows from each when a crash falls between effect and record is
// in the package documentation.
const (
	RepeatIdempotent Repeat = "idempotent"   // repeating changes nothing, for ever
	RepeatKeyed      Repeat = "keyed"        // the destination remembers our key for TTL
	RepeatFind       Repeat = "find"         // the destination can be asked for our reference
	RepeatAtMostOnce Repeat = "at-most-once" // the outcome of a lost attempt is unknown
)

// Spec is the structure of a definition: everything about it but the functions. It is what the
// ledger stores and what the machine reads, so that a ledger can be understood without the program
// that filled it.
type Spec struct {
	Saga    string     `json:"saga"`
	Version int        `json:"version"`
	Steps   []StepSpec `json:"steps"`

	// Deadline is how long an instance has from its start; 0: as long as it takes. Overdue is what follows.
	Deadline time.Duration `json:"deadline,omitempty"`
	Overdue  Overdue       `json:"overdue,omitempty"`

	// TakenOver is when the program ended that did this before: what it did is asked for, see StepSpec.FindFirst, when that has settled.
	TakenOver time.Time `json:"takenOver,omitzero"`

	// Retain is how long what is kept of an instance that has ended; nil: as the ledger says.
	Retain *Retention `json:"retain,omitempty"`
}

// Retention is saga.Retention as definitions and ledgers store it.
type Retention struct {
	Bodies  Duration `json:"bodies,omitempty"`
	Records Duration `json:"records,omitempty"`
	Key     Duration `json:"key,omitempty"`
}

const leastRetention = Duration(time.Hour)

// Faults says what is wrong with r.
func (r Retention) Faults() (all []string) {
	before, name := Duration(0), ""
	for _, part := range []struct {
		name string
		keep Duration
	}{{"Bodies", r.Bodies}, {"Records", r.Records}, {"Key", r.Key}} {
		switch {
		case part.keep == 0: // for ever
		case part.keep < leastRetention:
			all = append(all, fmt.Sprintf("%s is %s; the least is %s, and 0 is for ever", part.name, time.Duration(part.keep), time.Duration(leastRetention)))
		case part.keep < before:
			all = append(all, fmt.Sprintf("%s is %s, and %s %s: bodies go first, then records, then the key", part.name, time.Duration(part.keep), name, time.Duration(before)))
		}
		if part.keep > 0 {
			before, name = part.keep, part.name
		}
	}
	return all
}

// Overdue is what follows when the deadline of an instance passes.
type Overdue string

// What may follow.
const (
	OverdueCompensates Overdue = "compensate" // what was done is undone; a person is asked where the pivot may have happened
	OverdueAsks        Overdue = "review"     // a person is asked
)

// Wait is for what a step waits that sends nothing.
type Wait string

// For what steps wait.
const (
	WaitDelay Wait = "delay" // a length of time, from when it is reached
	WaitUntil Wait = "until" // a time that the definition's function says, once
	// WaitAnswer is an answer from outside: a callback that carries the token of an earlier step's request, or a
	// message by name and key.
	WaitAnswer Wait = "answer"
	// WaitVotes is a decision of people about what they are shown.
	WaitVotes Wait = "votes"
)

// Later is what a later run of an instance makes of what an earlier one left at a step.
type Later string

// What a step may say of it.
const (
	LaterUpdate  Later = "update"  // it is changed
	LaterAnother Later = "another" // it stays, and another one is made
)

// StepSpec is the structure of one step. Durations are texts in JSON: "30s".
type StepSpec struct {
	Name               string        `json:"name"`
	Wait               Wait          `json:"wait,omitempty"` // the step sends nothing: what follows but Delay, Answer, Approval, Find and Destination says nothing of it
	Delay              time.Duration `json:"delay,omitempty"`
	Answer             *AnswerSpec   `json:"answer,omitempty"`   // WaitAnswer
	Approval           *ApprovalSpec `json:"approval,omitempty"` // WaitVotes
	Asks               *AsksSpec     `json:"asks,omitempty"`     // the step asks people to vote
	Repeat             Repeat        `json:"repeat,omitempty"`
	TTL                time.Duration `json:"ttl,omitempty"`             // RepeatKeyed
	Find               bool          `json:"find,omitempty"`            // the step has a lookup
	FindFirst          bool          `json:"findFirst,omitempty"`       // which is asked before the first request, too
	Undo               bool          `json:"undo,omitempty"`            // the step has a compensation
	UndoWhenUnknown    bool          `json:"undoWhenUnknown,omitempty"` // which is called also when the result is not known
	NoUndoReason       string        `json:"noUndoReason,omitempty"`
	ResultIsExternalID bool          `json:"resultIsExternalId,omitempty"` // the result is a string, and its own external id
	Pivot              bool          `json:"pivot,omitempty"`
	Conditional        bool          `json:"conditional,omitempty"`     // it is done in the runs in which its condition says so
	Once               bool          `json:"oncePerInstance,omitempty"` // done once for the work, whatever revisions follow
	LaterRuns          Later         `json:"laterRuns,omitempty"`       // what a run makes of what an earlier one left; "": its action knows, or it is done once
	Destination        string        `json:"destination,omitempty"`     // destination, for limits
	Retry              Retry         `json:"retry"`
	Timeout            time.Duration `json:"timeout"`
	Settle             time.Duration `json:"settle"`
}

// AnswerSpec is how the answer comes that a step waits for, and what follows when it does not.
type AnswerSpec struct {
	Callback string   `json:"callback,omitempty"` // the step whose request carries the token
	On       []string `json:"on,omitempty"`       // the names of the messages
	Within   Duration `json:"within"`
	Overdue  Overdue  `json:"overdue"`
	Poll     Duration `json:"poll,omitempty"` // how often Find is asked meanwhile; 0: only when the time is over
}

// ApprovalSpec is who decides about an approval, and until when.
type ApprovalSpec struct {
	Roles         []string `json:"roles"`
	Votes         int      `json:"votes"` // of so many people; one that rejects decides
	NotStarter    bool     `json:"notStarter,omitempty"`
	Within        Duration `json:"within"`
	EscalateAfter Duration `json:"escalateAfter,omitempty"` // from then on those of EscalateTo decide, too; 0: never
	EscalateTo    []string `json:"escalateTo,omitempty"`
}

// AsksSpec is for which approval a step asks, and when.
type AsksSpec struct {
	Approval string   `json:"approval"`
	After    Duration `json:"after,omitempty"` // from when the approval is waited for; not at all when it is decided by then
	// Escalates: it asks those who may vote from then on. Else what has an After is a reminder.
	Escalates bool `json:"escalates,omitempty"`
}

// Structure is a hash over what must not change under one version number: names and order of the
// steps, how each is safe to repeat, whether it can be looked up and undone, the pivot, and by what a wait is answered.
// Timeouts, retries, delays, deadlines, destinations and wordings may be tuned freely.
func (s *Spec) Structure() string {
	type part struct {
		Name, Repeat       string
		TTL                time.Duration
		Find, Undo, NoUndo bool
		Pivot              bool
		When               bool     `json:",omitempty"`
		Once               bool     `json:",omitempty"`
		Wait               Wait     `json:",omitempty"`
		Callback           string   `json:",omitempty"`
		On                 []string `json:",omitempty"`
		AsksFor            string   `json:",omitempty"`
	}
	parts := make([]part, len(s.Steps))
	for i, st := range s.Steps {
		parts[i] = part{
			Name: st.Name, Repeat: string(st.Repeat), TTL: st.TTL, Find: st.Find, Undo: st.Undo, NoUndo: st.NoUndoReason != "",
			Pivot: st.Pivot, When: st.Conditional, Once: st.Once, Wait: st.Wait,
		}
		if a := st.Answer; a != nil {
			parts[i].Callback, parts[i].On = a.Callback, a.On
		}
		if st.Asks != nil {
			parts[i].AsksFor = st.Asks.Approval
		}
	}
	b, err := json.Marshal(parts)
	if err != nil { // strings, durations and booleans always marshal
		panic(fmt.Sprintf("saga: structure of %s: %v", s.Saga, err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Waits reports whether the step sends nothing and only waits.
func (s *StepSpec) Waits() bool { return s.Wait != "" }

// WaitsForAnswer reports whether the step waits for an answer from outside.
func (s *StepSpec) WaitsForAnswer() bool { return s.Wait == WaitAnswer }

// OncePerInstance reports whether the step, once done, stays done when the work is revised. A wait for a time that
// is over stays over (machine/W3); an answer belongs to its revision (machine/A3) or to its key (machine/A12), and votes to what was shown (machine/P2), by which those
// are asked again who vote.
func (s *StepSpec) OncePerInstance() bool {
	return s.Once && !s.WaitsForAnswer() || s.Repeat == RepeatAtMostOnce || s.Asks != nil || s.Wait == WaitDelay || s.Wait == WaitUntil
}

// ForStarter reports whether an approval of the saga is not the starter's: then every start says who starts it.
func (s *Spec) ForStarter() bool {
	return slices.ContainsFunc(s.Steps, func(of StepSpec) bool { return of.Approval != nil && of.Approval.NotStarter })
}

// AnswerTo returns the step that waits for the callback which the named step's request asks for, or nil.
func (s *Spec) AnswerTo(step string) *StepSpec {
	for i := range s.Steps {
		if a := s.Steps[i].Answer; a != nil && a.Callback == step {
			return &s.Steps[i]
		}
	}
	return nil
}

// NeedsNoUndo reports whether the step is known to need no undo: it said NoUndo.
func (s *Spec) NeedsNoUndo(step string) bool {
	if s == nil {
		return false
	}
	i := s.Index(step)
	return i >= 0 && !s.Steps[i].Undo && !s.Steps[i].Waits() // what stands under the name of a wait is of another version
}

// Destination returns the name of what the step talks to: the one that it names, or one of its own,
// as in order-to-invoice/invoice.
func (s *Spec) Destination(step string) string {
	if i := s.Index(step); i >= 0 && s.Steps[i].Destination != "" {
		return s.Steps[i].Destination
	}
	return s.Saga + "/" + step
}

// Index returns the position of the named step, or -1.
func (s *Spec) Index(step string) int {
	for i := range s.Steps {
		if s.Steps[i].Name == step {
			return i
		}
	}
	return -1
}

// PivotIndex returns the position of the pivot, or len(s.Steps) when no step is one: then every
// step has a way back until the last is done.
func (s *Spec) PivotIndex() int {
	for i := range s.Steps {
		if s.Steps[i].Pivot {
			return i
		}
	}
	return len(s.Steps)
}

// ResultOf is the result of which only the external id is known, where the id is the whole of it.
func (s *StepSpec) ResultOf(id string) json.RawMessage {
	if s == nil || !s.ResultIsExternalID || id == "" {
		return nil
	}
	b, err := json.Marshal(id)
	if err != nil { // strings always marshal
		panic(fmt.Sprintf("saga: %v", err))
	}
	return b
}

// KeyMargin is how long before a destination's key window ends we stop trusting it: a twentieth of
// the window, between a millisecond and five minutes, for clock rates and slow appends; and the
// settle time, within which an attempt may still arrive after its deadline.
func (s *StepSpec) KeyMargin() time.Duration {
	return min(max(s.TTL/20, time.Millisecond), 5*time.Minute) + s.Settle
}
