package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/amends-dev/amends/internal/flow"
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
func Everything() Scope { return Scope{ledger.ControlPause, flow.Everything} }

// OfSaga is every work of a saga.
func OfSaga(name string) Scope { return Scope{ledger.ControlPause, flow.OfSaga(name)} }

// OfDestination is the scope of all steps that call a destination, whatever their saga. A step that names no destination
// with To has one of its own, order-to-invoice/invoice.
func OfDestination(name string) Scope { return Scope{ledger.ControlDestination, name} }

// String names the scope: all, saga:order-to-invoice, or a destination.
func (s Scope) String() string { return s.name }

// PauseScope holds whatever is in the scope where it is, going forward or back, until it is
// resumed: every process learns of it within a poll ([Options].Poll), on Postgres as a rule at once, and nothing passes a send
// gate from then on. What has passed it is answered. Pausing again changes who and why.
func (op *Operator) PauseScope(ctx context.Context, s Scope, by saga.Actor) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("pause %s:\n%w", s, err)
	}
	return op.setScope(ctx, "pause", s, by, func(c *ledger.Control) error { return flow.SetPause(c, by, true) })
}

// ResumeScope lets whatever is in the scope go on, but for what something else holds. Resuming what
// is not paused matches [ErrNotPaused].
func (op *Operator) ResumeScope(ctx context.Context, s Scope, by saga.Actor) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("resume %s:\n%w", s, err)
	}
	return op.setScope(ctx, "resume", s, by, func(c *ledger.Control) error {
		if !flow.IsPaused(c) {
			return ErrNotPaused
		}
		return flow.SetPause(c, by, false)
	})
}

// ErrPaused: a person holds the destination, and it is tried when it is resumed.
var ErrPaused = errors.New("a person holds it")

// Probe has a destination tried now, whatever it asked for and however often it has failed: what
// failed there before is due at once, and the first attempt finds out whether it is back. It returns
// how many instances waited for another try. A destination that is paused matches [ErrPaused].
func (op *Operator) Probe(ctx context.Context, destination string, by saga.Actor) (waited int, err error) {
	if err := by.Validate(); err != nil {
		return 0, fmt.Errorf("probe %s:\n%w", destination, err)
	}
	now, err := op.ledger.Overview(ctx)
	if err != nil {
		return 0, fmt.Errorf("probe %s: read the ledger's time: %w", destination, err)
	}
	err = op.setScope(ctx, "probe", OfDestination(destination), by, func(c *ledger.Control) error {
		h, err := flow.HealthOf(c)
		if err == nil && h.PausedBy != "" {
			err = fmt.Errorf("%w, says %s: %s", ErrPaused, h.PausedBy, h.PausedReason)
		}
		if err != nil {
			return err
		}
		return flow.SetProbe(c, now.At)
	})
	if err != nil {
		return 0, err
	}
	err = waiting(ctx, op.ledger, destination, func(all []ledger.Return) error {
		waited += len(all)
		return op.ledger.GiveBack(ctx, 0, all)
	})
	if err != nil {
		return waited, fmt.Errorf("probe %s: what waits for it comes by itself, later: %w", destination, err)
	}
	return waited, nil
}

// waiting lists those that failed at a destination and wait for another try, to be given back as due
// now.
func waiting(ctx context.Context, l ledger.Ledger, destination string, do func([]ledger.Return) error) error {
	f := ledger.Filter{WaitsFor: flow.RetryLine(destination), Limit: 500}
	for more := true; more; more = f.After != "" {
		page, err := l.List(ctx, f)
		if err != nil {
			return err
		}
		all := make([]ledger.Return, len(page.Instances))
		for i := range page.Instances {
			all[i].Number = page.Instances[i].Number
		}
		if err := do(all); err != nil {
			return err
		}
		f.After = page.Next
	}
	return nil
}

// setScope sets the control of a scope, as often as others set it meanwhile.
func (op *Operator) setScope(ctx context.Context, verb string, s Scope, by saga.Actor, change func(*ledger.Control) error) error {
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
		if err := change(&c); err != nil {
			return fmt.Errorf("%s %s: %w", verb, s, err)
		}
		c.Actor, c.Reason, c.Nonce = by.Name, by.Reason, rand.Int64()
		if _, err = op.ledger.SetControl(ctx, 0, c); err == nil || !errors.Is(err, ledger.ErrChanged) {
			if err != nil {
				return fmt.Errorf("%s %s: %w", verb, s, err)
			}
			op.stir()
			return nil
		}
	}
	return fmt.Errorf("%s %s: it is changed by others again and again; try again", verb, s)
}

// Act is a person's word on a scope.
type Act struct {
	At     time.Time
	By     saga.Actor
	Paused bool // it was paused
	Probed bool // a destination was tried; with neither it was resumed
}

// Acts returns who paused, resumed and probed a scope, and why, the newest first: at most limit of them (0:
// 100).
func (op *Operator) Acts(ctx context.Context, s Scope, limit int) ([]Act, error) {
	set, err := op.ledger.Acts(ctx, s.kind, s.name, limit)
	if err != nil {
		return nil, fmt.Errorf("read who paused and resumed %s: %w", s, err)
	}
	acts := make([]Act, len(set))
	for i := range set {
		c := &set[i]
		acts[i] = Act{At: c.At, By: saga.Actor{Name: c.Actor, Reason: c.Reason}, Paused: flow.IsPaused(c), Probed: flow.IsProbed(c)}
	}
	return acts, nil
}
