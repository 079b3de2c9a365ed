package program

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"
)

// Program is a definition with its input type taken off, so that one coordinator can run many.
// Every *[saga.Definition] is one.
type Program interface {
	Spec() *Spec
	Accept(work string, input any) (Accepted, error)
	Act(ctx context.Context, inv *Invocation) Outcome
	Look(ctx context.Context, inv *Invocation) Evidence
	// When says until when a step waits that is a [WaitUntil]. It does not panic.
	When(inv *Invocation) (time.Time, error)
	// Applies says whether a step is done in this run that has a condition. It does not panic.
	Applies(inv *Invocation) (bool, error)
	// Keys says by which messages a step is answered that is a [WaitAnswer]. It does not panic.
	Keys(inv *Invocation) ([]MessageKey, error)
	// Read reads what may be the answer that a step waits for. An error declines it. It does not panic.
	Read(inv *Invocation, m Message) (Evidence, error)
	// Shown says what people are shown who vote at a step that is a [WaitVotes], and whether they are asked at all. It
	// does not panic.
	Shown(inv *Invocation) (doc json.RawMessage, asked bool, err error)
}

// MessageKey is the name and the key of a message.
type MessageKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Message is saga.Message: what may be an answer.
type Message struct {
	Name string `json:"name,omitempty"` // empty: a callback
	Key  string `json:"key,omitempty"`
	ID   string `json:"id,omitempty"` // the sender's own; a message that comes again has the same
	Body []byte `json:"body,omitempty"`
}

// Invocation is everything one attempt or lookup needs to know.
type Invocation struct {
	Work       string
	Revision   string
	Step       string
	Direction  Direction // Undo of a lookup: it is to tell the undo what the step made
	Attempt    int
	Key        string
	MadeKey    string // under which the step's own request was first sent
	Input      json.RawMessage
	Results    map[string]Result // of the steps that are done
	Undoing    *Result           // Undo: what is known of what is to be undone; nil when nothing is
	Unfinished *Result           // Forward: what a lookup found half-made
	Previous   *Result           // what an earlier revision left at the destination
	Gate       *Gate             // attempts only
	Token      string            // attempts only: what a callback is to carry
	Brief      *Brief            // of a step that asks for votes
	Decoded    *Decoded          // of Input; may be nil
}

// Decoded keeps an input as it was decoded, so that the steps of one instance decode it once.
type Decoded struct{ last atomic.Pointer[decoded] }

type decoded struct {
	from  json.RawMessage
	value any
}

// Of returns what was kept of these very bytes, or nil. d may be nil.
func (d *Decoded) Of(input json.RawMessage) any {
	if d == nil || len(input) == 0 {
		return nil
	}
	if last := d.last.Load(); last != nil && len(last.from) == len(input) && &last.from[0] == &input[0] {
		return last.value
	}
	return nil
}

// Keep keeps what input was decoded to. Through value nothing can be changed.
func (d *Decoded) Keep(input json.RawMessage, value any) {
	if d != nil {
		d.last.Store(&decoded{input, value})
	}
}

// Brief is what people are asked who vote. It is saga.Brief.
type Brief struct {
	Step   string          // the approval
	Path   string          // of its page below where the handler of package approval is mounted
	Shown  json.RawMessage // what they decide about
	Digest string          // of Shown; a vote says it
	Roles  []string        // who may vote now
	Votes  int             // how many are needed
	Until  time.Time       // the end: without a decision by then it is rejected
	About  About           // what the approval says about itself
	// Reminder: they were asked before. Escalated: those are asked who may vote from now on.
	Reminder, Escalated bool
}

// About is what an approval says about itself. It is saga.About.
type About struct {
	Title  string  `json:"title"`
	Amount string  `json:"amount"`
	Link   string  `json:"link"`
	Fields []Field `json:"fields"`
}

// Field is saga.Field.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AboutOf is what a document that people are shown says about itself, or nil.
func AboutOf(doc json.RawMessage) *About {
	var shown struct {
		About *About `json:"about"`
	}
	_ = json.Unmarshal(doc, &shown) // a definition made it
	return shown.About
}

// Result is what is known of a step that is done.
type Result struct {
	ExternalID string          `json:"externalId,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"` // nil when it was dropped or never known
	WasThere   bool            `json:"-"`                // before anything was sent for it: it was found, or adopted
}

// Known reports whether r says what the action made, and not only what the destination calls it.
func (r *Result) Known() bool {
	return r != nil && len(r.Output) > 0 && string(r.Output) != "null"
}

// Outcome is what came of one attempt.
type Outcome struct {
	Class       Class // succeeded is "done"; else the class of the error
	ExternalID  string
	Output      json.RawMessage
	Dropped     bool // the output could not be kept; Error says why
	Maybe       bool // refused, and an earlier request of the same attempt may have taken effect
	Error       string
	RetryAfter  time.Duration
	HoldBack    bool   // RetryAfter is for everything that is sent to the destination, not for this step alone
	Unreachable bool   // there was no connection to be had
	Answered    bool   // the destination has answered; its request is not at work any more
	Nameless    bool   // it answered with a success that does not say the external id: it works
	Stack       string // of a panic, for the log
	Shutdown    bool   // the attempt ended because its process was told to stop; it does not count as a try
	Outage      bool   // it failed while the destination served no other work; it does not count as a try
}

// Done reports whether the attempt succeeded.
func (o Outcome) Done() bool { return o.Class == Succeeded }

// Answer is what a lookup says of an effect.
type Answer string

// The answers, each also the kind of the record that it becomes.
const (
	AnswerFound      Answer = "found"      // it is there
	AnswerUnfinished Answer = "unfinished" // it is there, half-made
	AnswerOther      Answer = "other"      // it is there, and is not as it should be
	AnswerNotFound   Answer = "not-found"
	AnswerUnclear    Answer = "unclear" // the destination could not tell
	AnswerSeveral    Answer = "several" // more than one is there: a duplicate
	AnswerFailed     Answer = "failed"  // of what is waited for: it has failed, and nothing of it stands
)

// Evidence is what came of one lookup.
type Evidence struct {
	Step        string // which was looked up; set by the coordinator
	Answer      Answer
	ExternalID  string
	Output      json.RawMessage
	Dropped     bool
	IDs         []string // several: all of them
	Error       string
	RetryAfter  time.Duration
	HoldBack    bool   // as in Outcome
	Unreachable bool   // as in Outcome
	Outage      bool   // as in Outcome
	Stack       string // as in Outcome
	Unput       bool   // the last lookup of a wait could not be put: nothing was asked
}

// Accepted is an input that may become a work.
type Accepted struct {
	ForStarter bool // an approval is not the starter\'s: every start says who that is
	Input      json.RawMessage
	Tags       []string // what the work is found by, name=value, sorted
	TagFault   error    // why some are left out; nil: none is
	Identity   string   // hash of the part of the input that makes two starts the same
}

// Apart is the identity, where it is not that of the whole input; else "".
func (a *Accepted) Apart() string {
	if a.Identity == HashHex(a.Input)[:len(a.Identity)] {
		return ""
	}
	return a.Identity
}
