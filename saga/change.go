package saga

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
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
)

// Applier carries changes out: a coordinator.Coordinator.
type Applier interface {
	// Apply makes the change durable; it does not wait for what follows.
	Apply(ctx context.Context, c Change) error
}

// Start has c start an instance of the saga: it is durable when Start returns, and runs without it.
// work is its business identity, for ever: a second start of the same work runs nothing. One with
// another input is an error.
func (d *Definition[In]) Start(ctx context.Context, c Applier, work string, input In) error {
	return c.Apply(ctx, Change{ID: ID{Saga: d.spec.Saga, Work: work}, Input: input})
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
