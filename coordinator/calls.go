package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// calls gives every call of a ledger an end of its own. A call that does not heed its context is
// left behind and counts as unanswered: its caller goes on, and repeats it.
type calls struct {
	ledger.Ledger

	within time.Duration
}

// within runs do, and returns at the end of the time-out at the latest.
func within[T any](ctx context.Context, d time.Duration, do func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	ch := make(chan answer, 1)
	go func() {
		v, err := do(limited)
		ch <- answer{v, err}
	}()
	select {
	case a := <-ch:
		return a.value, a.err
	case <-limited.Done():
	}
	heed := time.NewTimer(answerGrace)
	defer heed.Stop()
	select {
	case a := <-ch:
		return a.value, a.err
	case <-heed.C:
		var none T
		return none, fmt.Errorf("no answer within %s: %w", d, limited.Err())
	}
}

// only is within of a call that answers nothing.
func only(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	_, err := within(ctx, d, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

func (c calls) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	return within(ctx, c.within, func(ctx context.Context) (ledger.Lease, error) {
		return c.Ledger.OpenSession(ctx, ttl, label, knows)
	})
}

func (c calls) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	return within(ctx, c.within/3, func(ctx context.Context) (ledger.Lease, error) { return c.Ledger.Renew(ctx, t, r) })
}

func (c calls) Bury(ctx context.Context, t machine.Token) error {
	return only(ctx, c.within/3, func(ctx context.Context) error { return c.Ledger.Bury(ctx, t) })
}

func (c calls) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return within(ctx, c.within, func(ctx context.Context) ([]ledger.Answer, error) { return c.Ledger.Append(ctx, t, es) })
}

func (c calls) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	return within(ctx, c.within, func(ctx context.Context) ([]ledger.Chain, error) { return c.Ledger.Load(ctx, ids) })
}

func (c calls) AtRest(ctx context.Context, ids []saga.ID) ([]saga.ID, error) {
	return within(ctx, c.within, func(ctx context.Context) ([]saga.ID, error) { return c.Ledger.AtRest(ctx, ids) })
}

func (c calls) Claim(ctx context.Context, t machine.Token, k ledger.Claim) (ledger.Claimed, error) {
	return within(ctx, c.within, func(ctx context.Context) (ledger.Claimed, error) { return c.Ledger.Claim(ctx, t, k) })
}

func (c calls) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	return only(ctx, c.within, func(ctx context.Context) error { return c.Ledger.GiveBack(ctx, t, works) })
}

func (c calls) Post(ctx context.Context, id saga.ID, s machine.Signal) (ledger.Posted, error) {
	return within(ctx, c.within, func(ctx context.Context) (ledger.Posted, error) { return c.Ledger.Post(ctx, id, s) })
}

func (c calls) Describe(ctx context.Context, spec *program.Spec) error {
	return only(ctx, c.within, func(ctx context.Context) error { return c.Ledger.Describe(ctx, spec) })
}

func (c calls) Controls(ctx context.Context) (all []ledger.Control, newest int64, err error) {
	type answer struct {
		all    []ledger.Control
		newest int64
	}
	a, err := within(ctx, c.within, func(ctx context.Context) (answer, error) {
		all, newest, err := c.Ledger.Controls(ctx)
		return answer{all, newest}, err
	})
	return a.all, a.newest, err
}

func (c calls) SetControl(ctx context.Context, t machine.Token, k ledger.Control) (ledger.Control, error) {
	return within(ctx, c.within, func(ctx context.Context) (ledger.Control, error) { return c.Ledger.SetControl(ctx, t, k) })
}

func (c calls) Acts(ctx context.Context, kind ledger.ControlKind, name string, limit int) ([]ledger.Control, error) {
	return within(ctx, c.within, func(ctx context.Context) ([]ledger.Control, error) { return c.Ledger.Acts(ctx, kind, name, limit) })
}

func (c calls) Count(ctx context.Context, name ledger.Counter, totals []ledger.Duplicate) error {
	return only(ctx, c.within, func(ctx context.Context) error { return c.Ledger.Count(ctx, name, totals) })
}

func (c calls) Blocked(ctx context.Context, by, source string, n int64) error {
	return only(ctx, c.within, func(ctx context.Context) error { return c.Ledger.Blocked(ctx, by, source, n) })
}

func (c calls) Await(ctx context.Context, waits []ledger.Wait) error {
	return only(ctx, c.within, func(ctx context.Context) error { return c.Ledger.Await(ctx, waits) })
}

func (c calls) Waits(ctx context.Context, name, key string) ([]ledger.Wait, error) {
	return within(ctx, c.within, func(ctx context.Context) ([]ledger.Wait, error) { return c.Ledger.Waits(ctx, name, key) })
}

func (c calls) Unwait(ctx context.Context, waits []ledger.Wait) error {
	return only(ctx, c.within, func(ctx context.Context) error { return c.Ledger.Unwait(ctx, waits) })
}

func (c calls) Keep(ctx context.Context, m program.Message, keep time.Duration) (ledger.Kept, error) {
	return within(ctx, c.within, func(ctx context.Context) (ledger.Kept, error) { return c.Ledger.Keep(ctx, m, keep) })
}

func (c calls) Messages(ctx context.Context, name, key, saga string) ([]program.Message, error) {
	return within(ctx, c.within, func(ctx context.Context) ([]program.Message, error) { return c.Ledger.Messages(ctx, name, key, saga) })
}

func (c calls) Use(ctx context.Context, name, id string, by ledger.Wait) (bool, error) {
	return within(ctx, c.within, func(ctx context.Context) (bool, error) { return c.Ledger.Use(ctx, name, id, by) })
}

func (c calls) Uses(ctx context.Context, name, id string) ([]ledger.Wait, error) {
	return within(ctx, c.within, func(ctx context.Context) ([]ledger.Wait, error) { return c.Ledger.Uses(ctx, name, id) })
}

func (c calls) Shared(ctx context.Context) ([]ledger.Shared, error) {
	return within(ctx, c.within, c.Ledger.Shared)
}
