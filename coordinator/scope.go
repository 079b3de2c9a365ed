package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// Scope is more than one work that is paused at once: those that want a destination, those of a
// saga, or all.
type Scope struct {
	kind ledger.ControlKind
	name string
}

// Everything is every work of the ledger.
func Everything() Scope { return Scope{ledger.ControlPause, "all"} }

// OfSaga is every work of a saga.
func OfSaga(name string) Scope { return Scope{ledger.ControlPause, "saga:" + name} }

// OfDestination is whatever wants a destination, of whichever saga. A step that names none with To
// has one of its own, order-to-invoice/invoice.
func OfDestination(name string) Scope { return Scope{ledger.ControlDestination, name} }

// String names the scope: all, saga:order-to-invoice, or a destination.
func (s Scope) String() string { return s.name }

// PauseScope holds whatever is in the scope where it is, going forward or back, until it is
// resumed: every process learns of it within a poll ([Options].Poll), and nothing passes a send
// gate from then on. What has passed it is answered. Pausing again changes who and why.
func (op *Operator) PauseScope(ctx context.Context, s Scope, by saga.Actor) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("pause %s:\n%w", s, err)
	}
	return op.setScope(ctx, "pause", s, by, true)
}

// ResumeScope lets whatever is in the scope go on, but for what something else holds. Resuming what
// is not paused matches [ErrNotPaused].
func (op *Operator) ResumeScope(ctx context.Context, s Scope, by saga.Actor) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("resume %s:\n%w", s, err)
	}
	return op.setScope(ctx, "resume", s, by, false)
}

// setScope sets the control of a scope, as often as others set it meanwhile.
func (op *Operator) setScope(ctx context.Context, verb string, s Scope, by saga.Actor, pause bool) error {
	for range 20 {
		all, _, err := op.ledger.Controls(ctx)
		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, s, err)
		}
		c := ledger.Control{Kind: s.kind, Name: s.name}
		for i := range all {
			if all[i].Kind == s.kind && all[i].Name == s.name {
				c = all[i]
			}
		}
		if !pause && !isPaused(&c) {
			return fmt.Errorf("%s %s: %w", verb, s, ErrNotPaused)
		}
		if c.Body, err = pausedBody(&c, by, pause); err != nil {
			return fmt.Errorf("%s %s: %w", verb, s, err)
		}
		c.Actor, c.Reason, c.Nonce = by.Name, by.Reason, rand.Int64()
		if _, err = op.ledger.SetControl(ctx, 0, c); err == nil || !errors.Is(err, ledger.ErrChanged) {
			if err != nil {
				return fmt.Errorf("%s %s: %w", verb, s, err)
			}
			return nil
		}
	}
	return fmt.Errorf("%s %s: it is changed by others again and again; try again", verb, s)
}

// Act is a person's word on a scope.
type Act struct {
	At     time.Time
	By     saga.Actor
	Paused bool // resumed otherwise
}

// Acts returns who paused and resumed a scope, and why, the newest first: at most limit of them (0:
// 100).
func (op *Operator) Acts(ctx context.Context, s Scope, limit int) ([]Act, error) {
	set, err := op.ledger.Acts(ctx, s.kind, s.name, limit)
	if err != nil {
		return nil, fmt.Errorf("read who paused and resumed %s: %w", s, err)
	}
	acts := make([]Act, len(set))
	for i := range set {
		c := &set[i]
		acts[i] = Act{At: c.At, By: saga.Actor{Name: c.Actor, Reason: c.Reason}, Paused: isPaused(c)}
	}
	return acts, nil
}

// isPaused reports whether a control says that its scope is paused.
func isPaused(c *ledger.Control) bool {
	if c.Kind == ledger.ControlPause {
		return len(c.Body) > 0
	}
	var h health
	return len(c.Body) > 0 && json.Unmarshal(c.Body, &h) == nil && h.PausedBy != ""
}

// pausedBy is who paused a scope that is not a destination, and why; nil when it is not paused.
func pausedBy(c *ledger.Control) *saga.Actor {
	if len(c.Body) == 0 {
		return nil
	}
	by := &saga.Actor{}
	if json.Unmarshal(c.Body, by) != nil {
		return &saga.Actor{Name: c.Actor, Reason: c.Reason} // of another version of amends: it is a pause all the same
	}
	return by
}

// pausedBody is the body of a scope's control, paused or not. A destination's says more, which
// stays.
func pausedBody(c *ledger.Control, by saga.Actor, pause bool) (json.RawMessage, error) {
	if c.Kind == ledger.ControlPause {
		if !pause {
			return nil, nil
		}
		return json.Marshal(by)
	}
	var h health
	if len(c.Body) > 0 {
		if err := json.Unmarshal(c.Body, &h); err != nil {
			return nil, fmt.Errorf("the state of the destination was written by another version of amends: %w", err)
		}
	}
	if h.PausedBy, h.PausedWhy = "", ""; pause {
		h.PausedBy, h.PausedWhy = by.Name, by.Reason
	}
	return json.Marshal(h)
}
