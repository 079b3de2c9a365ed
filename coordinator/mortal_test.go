package coordinator_test

import (
	"context"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// mortal is a process's way to its ledger. Once the process is dead no call has an effect or an
// answer.
type mortal struct {
	ledger.Ledger // the people's side, which no process writes by
	ledger        ledger.Ledger
	crashed       <-chan struct{}
	p             *process
}

func (m *mortal) gone() bool {
	select {
	case <-m.crashed:
		m.p.die()
	default:
	}
	return m.p.isDead()
}

func through[T any](m *mortal, do func() (T, error)) (T, error) {
	var none T
	if m.gone() {
		return none, errDead
	}
	answer, err := do()
	if m.gone() {
		return none, errDead
	}
	return answer, err
}

func none(do func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, do() }
}

func (m *mortal) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	return through(m, func() (ledger.Lease, error) { return m.ledger.OpenSession(ctx, ttl, label, knows) })
}

func (m *mortal) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	return through(m, func() (ledger.Lease, error) { return m.ledger.Renew(ctx, t, r) })
}

func (m *mortal) Bury(ctx context.Context, t machine.Token) error {
	_, err := through(m, none(func() error { return m.ledger.Bury(ctx, t) }))
	return err
}

func (m *mortal) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return through(m, func() ([]ledger.Answer, error) { return m.ledger.Append(ctx, t, es) })
}

func (m *mortal) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	return through(m, func() ([]ledger.Chain, error) { return m.ledger.Load(ctx, ids) })
}

func (m *mortal) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	return through(m, func() (ledger.Claimed, error) { return m.ledger.Claim(ctx, t, c) })
}

func (m *mortal) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	_, err := through(m, none(func() error { return m.ledger.GiveBack(ctx, t, works) }))
	return err
}

func (m *mortal) CatchUp(ctx context.Context) (works, sessions int64, err error) {
	n, err := through(m, func() (n [2]int64, err error) { n[0], n[1], err = m.ledger.CatchUp(ctx); return n, err })
	return n[0], n[1], err
}

func (m *mortal) Post(ctx context.Context, id saga.ID, s machine.Signal) (ledger.Posted, error) {
	return through(m, func() (ledger.Posted, error) { return m.ledger.Post(ctx, id, s) })
}

func (m *mortal) Describe(ctx context.Context, spec *program.Spec) error {
	_, err := through(m, none(func() error { return m.ledger.Describe(ctx, spec) }))
	return err
}

func (m *mortal) Count(ctx context.Context, c ledger.Counter, totals []ledger.Duplicate) error {
	_, err := through(m, none(func() error { return m.ledger.Count(ctx, c, totals) }))
	return err
}

func (m *mortal) Controls(ctx context.Context) (all []ledger.Control, newest int64, err error) {
	_, err = through(m, none(func() (err error) { all, newest, err = m.ledger.Controls(ctx); return err }))
	return all, newest, err
}

func (m *mortal) SetControl(ctx context.Context, t machine.Token, k ledger.Control) (ledger.Control, error) {
	return through(m, func() (ledger.Control, error) { return m.ledger.SetControl(ctx, t, k) })
}

func (m *mortal) Acts(ctx context.Context, kind ledger.ControlKind, name string, limit int) ([]ledger.Control, error) {
	return through(m, func() ([]ledger.Control, error) { return m.ledger.Acts(ctx, kind, name, limit) })
}
