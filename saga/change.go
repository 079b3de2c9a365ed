package saga

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Change says what an instance should be by the word of its source: the event to which
// [machine.SignalRevise] and [machine.SignalCancel] are the answers, in the words of a program.
type Change struct {
	ID       ID
	Revision string // version of the source object, if it has one; see [CompareRevisions]
	Want     Want
	// Input of the saga. What is withdrawn may have one as well: a reconciler compares what is left
	// of it.
	Input any
	// Message says that the object is no instance of its own, but a message to those that wait for its name and key (see
	// [Await]); the other fields say nothing then. Without an ID of its own it is one for each object and revision.
	Message *Message

	Starter   string    // who starts it, if that is not Actor
	NotBefore time.Time // when it begins, at the earliest; see [StartOptions]

	Actor  string // who says so: webhook, reconcile, a person
	Reason string // why it is withdrawn, for people
	Cause  string // what led to it: the name of a webhook, a plan
}

// Want is what is to become of an instance.
type Want string

// What a source can want.
const (
	WantRun       Want = ""          // it runs with the Input; a newer Revision is the same saga once more
	WantNothing   Want = "nothing"   // nothing is to be done for this state of the object, and nothing is undone
	WantWithdrawn Want = "withdrawn" // the object is cancelled or deleted: what was done is undone
	// WantHeld: the object is being changed, and nothing is to be done for it yet. What was not begun is not begun; what runs goes no
	// further than the step that it is in, and is paused. A newer Revision that wants something else lets it go on by itself, with what that one
	// says; a person may resume it before. What is in review, or paused by a person, waits for that person alone; what a rebuild takes over goes on.
	WantHeld Want = "held"
)

// Applier carries changes out: a coordinator.Coordinator.
type Applier interface {
	// Apply makes the change durable; it does not wait for what follows.
	Apply(ctx context.Context, c Change) error
}

// Start has c start an instance of the saga: it is durable when Start returns, and runs without it.
// work is its business identity, for ever: a second start of the same work runs nothing. One with
// another input is an error. Options may be given, of which the last ones count.
func (d *Definition[In]) Start(ctx context.Context, c Applier, work string, input In, options ...StartOptions) error {
	ch := Change{ID: ID{Saga: d.spec.Saga, Work: work}, Input: input}
	for _, o := range options {
		ch.Revision, ch.Actor, ch.Cause, ch.Starter, ch.NotBefore = o.Revision, o.Source, o.Cause, o.Starter, o.NotBefore
	}
	return c.Apply(ctx, ch)
}

// StartOptions says more about a start.
type StartOptions struct {
	// Revision is the version of the source object, if it has one: a whole number, or a time as RFC
	// 3339 has it; see [CompareRevisions]. A start with a newer revision than the work has
	// heard of re-runs the saga for it.
	Revision string
	// Source names who sends the start (webhook, cron), for the counters of blocked duplicates, which stay for
	// ever: a kind of sender, not one request or one customer.
	Source string
	// Cause names what caused the start (an event's id, a run of a schedule, a person). It is kept
	// on the first record, and on the signal that brings a newer version.
	Cause string
	// Starter names who starts it, for the approvals that are not the starter's ([ApproveStep.NotStarter]). It is kept as
	// Cause is.
	Starter string
	// NotBefore is when the instance begins, at the earliest, by the ledger's clock. Zero, or a time that is
	// past: at once. It says nothing to an instance that is known.
	NotBefore time.Time
}

// Actor is who does something by hand, and why: it is kept in the history.
type Actor struct {
	Name   string `json:"actor"`
	Reason string `json:"reason,omitempty"`
}

// Validate says what is missing.
func (a Actor) Validate() error {
	var faults []error
	if strings.TrimSpace(a.Name) == "" {
		faults = append(faults, errors.New("say who you are (actor)"))
	}
	if strings.TrimSpace(a.Reason) == "" {
		faults = append(faults, errors.New("say why (reason); it is kept in the ledger"))
	}
	return errors.Join(faults...)
}

// ID names one unit of work.
type ID struct {
	Saga string // the definition's name: order-to-invoice
	Work string // the business identity: shop:order:10492
}

// String returns "saga work".
func (id ID) String() string { return id.Saga + " " + id.Work }

// Resolution is what a resolve, a retry, a skip or a late answer says about a step. Zero for other
// kinds.
type Resolution struct {
	Step       string          `json:"step,omitempty"`
	Direction  Direction       `json:"direction,omitempty"`
	Attempt    int             `json:"attempt,omitempty"` // the attempt it speaks of; stale when another was armed since
	StepKey    string          `json:"stepKey,omitempty"` // a late answer: the key it was sent under
	Happened   bool            `json:"happened,omitempty"`
	ExternalID string          `json:"externalId,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
}
