package coordinator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// gate lets calls of one method through, or fails them, or keeps them without an answer and without
// heeding their contexts, as a connection does that has gone silent.
type gate struct {
	fail atomic.Pointer[error]
	mute atomic.Bool
	open chan struct{} // closed at the end of the test, so that what was kept ends
}

func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{open: make(chan struct{})}
	t.Cleanup(func() { close(g.open) })
	return g
}

func (g *gate) with(err error) { g.fail.Store(&err) }

func (g *gate) pass() error {
	if err := g.fail.Load(); err != nil && *err != nil {
		return *err
	}
	if g.mute.Load() {
		<-g.open
		return errors.New("the connection was closed")
	}
	return nil
}

// silentStore is a ledger whose calls can go silent.
type silentStore struct {
	*memory.DB
	opens, renews, appends, claims, loads, returns *gate

	claimed atomic.Int64
}

func newSilent(t testing.TB) *silentStore {
	t.Helper()
	return &silentStore{
		DB: memory.New(nil), opens: newGate(t), renews: newGate(t), appends: newGate(t), claims: newGate(t), loads: newGate(t), returns: newGate(t),
	}
}

func (s *silentStore) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	if err := s.opens.pass(); err != nil {
		return ledger.Lease{}, err
	}
	return s.DB.OpenSession(ctx, ttl, label, knows)
}

func (s *silentStore) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	if err := s.renews.pass(); err != nil {
		return ledger.Lease{}, err
	}
	return s.DB.Renew(ctx, t, r)
}

func (s *silentStore) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	if err := s.appends.pass(); err != nil {
		return nil, err
	}
	return s.DB.Append(ctx, t, es)
}

func (s *silentStore) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	if err := s.claims.pass(); err != nil {
		return ledger.Claimed{}, err
	}
	got, err := s.DB.Claim(ctx, t, c)
	s.claimed.Add(int64(len(got.Instances)))
	return got, err
}

func (s *silentStore) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	if err := s.loads.pass(); err != nil {
		return nil, err
	}
	return s.DB.Load(ctx, ids)
}

func (s *silentStore) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	if err := s.returns.pass(); err != nil {
		return err
	}
	return s.DB.GiveBack(ctx, t, works)
}
