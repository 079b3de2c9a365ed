package coordinator

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// Errors of what reads the ledger.
var (
	// ErrNotFound: there is no such instance.
	ErrNotFound = ledger.ErrNotFound
	// ErrDefinitionChanged: a definition was registered whose structure differs from what the
	// ledger knows under the same name and version.
	ErrDefinitionChanged = ledger.ErrDefinitionChanged
)

// Instance is where one instance of a saga stands.
type Instance struct {
	ID       saga.ID
	Version  int    // of the definition
	Revision string // of the source object: the one it was started with, or revised for
	Status   saga.Status
	Reason   saga.Reason // why it is in review
	Step     string      // the one at issue, while it is retrying, compensating, in review or paused
	WaitsFor string      // the destination that it waits for; with [RetryPrefix]: which failed it; empty: for none
	Due      time.Time   // when it is taken up again; zero: a process has it, or it does not move by itself
	Started  time.Time
	Updated  time.Time
	Ended    time.Time // zero: it has not
}

// Filter narrows a listing of instances. Zero fields do not narrow.
type Filter struct {
	Saga       string
	Prefix     string // of the work id; the listing is in the order of work ids then
	Status     saga.Status
	Reason     saga.Reason
	Step       string // the one at issue
	WaitsFor   string // a destination
	ExternalID string // that a step recorded
	Newest     bool   // those that were started last come first
}

// List lists instances, in the order of starting, from page to page of the ledger for as long as
// the caller goes on. It ends with an error when the ledger cannot be read.
func (op *Operator) List(ctx context.Context, f Filter) iter.Seq2[Instance, error] {
	return func(yield func(Instance, error) bool) {
		page := ledger.Filter{
			Saga: f.Saga, Prefix: f.Prefix, Status: f.Status, Reason: f.Reason, Step: f.Step, WaitsFor: f.WaitsFor,
			ExternalID: f.ExternalID, Newest: f.Newest, Limit: 500,
		}
		for {
			p, err := op.ledger.List(ctx, page)
			if err != nil {
				yield(Instance{}, fmt.Errorf("list instances: %w", err))
				return
			}
			for i := range p.Instances {
				if !yield(instanceOf(&p.Instances[i]), nil) {
					return
				}
			}
			if page.After = p.Next; p.Next == "" {
				return
			}
		}
	}
}

func instanceOf(h *ledger.Instance) Instance {
	return Instance{
		ID: h.ID, Version: h.Version, Revision: h.Revision, Status: h.Status, Reason: h.Reason, Step: h.Step, WaitsFor: h.WaitsFor,
		Due: h.Due, Started: h.Created, Updated: h.Updated, Ended: h.Finished,
	}
}
