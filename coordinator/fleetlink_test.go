package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// link is one process's way to the ledger. Single calls, or all of them for a while, are cut, lose
// their answer, or fall silent: the call neither returns nor fails until its context ends, or for a
// bounded time not even then.
type link struct {
	ledger.Ledger // the ledger with its tap
	m             *member

	mu      sync.Mutex
	rules   []*disturbance
	waiting int       // calls that are disturbed now
	calm    time.Time // when the last of them came back
}

// disturbance is what happens to calls.
type disturbance struct {
	kind    disorder
	methods []ledgertest.Method // none: all
	calls   int                 // so many calls are hit; 0: all until the end
	until   time.Time           // the end; zero: when the calls are used up
	effect  bool                // the call takes effect before it is hit
	hold    time.Duration       // deaf: for so long
}

// disorder is a kind of disturbance.
type disorder string

const (
	linkCut      disorder = "cut"
	linkSilent   disorder = "silent"    // until the call's context ends
	linkDeaf     disorder = "deaf"      // for hold, whatever the context says
	linkReadOnly disorder = "read-only" // the server is a standby for a moment
)

// gaveUp is when a connection that heard nothing is given up by the network itself.
const gaveUp = 16 * time.Minute

// disturb adds a disturbance.
func (l *link) disturb(d *disturbance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = append(l.rules, d)
}

// next returns what happens to a call.
func (l *link) next(method ledgertest.Method) *disturbance {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.rules = slices.DeleteFunc(l.rules, func(d *disturbance) bool { return !d.until.IsZero() && !d.until.After(now) })
	for i, d := range l.rules {
		if len(d.methods) > 0 && !slices.Contains(d.methods, method) {
			continue
		}
		hit := *d
		if d.calls > 0 {
			if d.calls--; d.calls == 0 {
				l.rules = slices.Delete(l.rules, i, i+1)
			}
		}
		return &hit
	}
	return nil
}

// disturbed reports whether a call of this process stands in the dark now, and when the last one
// came back.
func (l *link) disturbed() (now bool, last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting > 0, l.calm
}

// onWay makes one call as the link is at the moment.
func onWay[T any](ctx context.Context, l *link, method ledgertest.Method, do func(context.Context) (T, error)) (T, error) {
	var none T
	l.m.s.calls.Add(1)
	defer l.m.s.calls.Add(-1)
	l.m.awake()
	if l.m.isDead() {
		return none, errDead
	}
	d := l.next(method)
	if d == nil {
		answer, err := do(ctx)
		l.m.awake()
		if l.m.isDead() {
			return none, errDead
		}
		return answer, err
	}
	l.m.s.count(d.kind)
	if d.effect && d.kind != linkReadOnly {
		_, _ = do(ctx) // the answer is lost
	}
	l.dark(1)
	if d.kind == linkDeaf { // who has a time-out of its own goes on without the call's return
		<-time.After(min(d.hold, simLease))
		l.dark(-1)
		<-time.After(d.hold - min(d.hold, simLease))
		return none, errLinkCut
	}
	defer l.dark(-1)
	switch d.kind {
	case linkSilent:
		return none, l.silence(ctx, method)
	case linkReadOnly:
		return none, fmt.Errorf("%s: %w", method, ledger.ErrReadOnly)
	default:
		return none, fmt.Errorf("%s: %w", method, errLinkCut)
	}
}

// dark counts the disturbed calls.
func (l *link) dark(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.calm = l.waiting+n, time.Now()
}

// silence waits until the caller gives up. "A connection that dies silently costs its own time-out
// and no more": a call that waits longer than a lease has none. Counting duplicates is no part of
// anything's progress and may take longer.
func (l *link) silence(ctx context.Context, method ledgertest.Method) error {
	began := time.Now()
	if l.m.s.broken[brokenTimeout] != "" {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-ctx.Done():
	case <-time.After(gaveUp):
	}
	patience := simLease
	if method == ledgertest.Count {
		patience = 15 * time.Second
	}
	if took := time.Since(began); took > patience+time.Second && !l.m.isDead() {
		l.m.s.faultf("silence: %s of %s waited %s for a connection that says nothing; a time-out of at most %s is wanted", method, l.m.name, took, patience)
	}
	return errors.Join(errLinkCut, ctx.Err())
}

// What follows is the ledger as the link carries it.

func (l *link) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	return onWay(ctx, l, ledgertest.OpenSession, func(ctx context.Context) (ledger.Lease, error) {
		if l.m.s.broken[brokenRun] != "" {
			return ledger.Lease{}, ledger.ErrUnsupported
		}
		lease, err := l.Ledger.OpenSession(ctx, ttl, label, knows)
		if err == nil {
			l.m.s.opened(lease.Token, l.m)
		}
		return lease, err
	})
}

func (l *link) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	return onWay(ctx, l, ledgertest.Renew, func(ctx context.Context) (ledger.Lease, error) { return l.Ledger.Renew(ctx, t, r) })
}

func (l *link) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	_, err := onWay(ctx, l, ledgertest.GiveBack, nothing(func(ctx context.Context) error { return l.Ledger.GiveBack(ctx, t, works) }))
	return err
}

func (l *link) Bury(ctx context.Context, t machine.Token) error {
	_, err := onWay(ctx, l, ledgertest.Bury, nothing(func(ctx context.Context) error { return l.Ledger.Bury(ctx, t) }))
	return err
}

func (l *link) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return onWay(ctx, l, ledgertest.Append, func(ctx context.Context) ([]ledger.Answer, error) { return l.Ledger.Append(ctx, t, es) })
}

func (l *link) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	return onWay(ctx, l, ledgertest.Load, func(ctx context.Context) ([]ledger.Chain, error) { return l.Ledger.Load(ctx, ids) })
}

func (l *link) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	if l.m.s.broken[brokenClaim] != "" {
		c.Known = slices.DeleteFunc(slices.Clone(c.Known), func(v ledger.Version) bool { return v.Saga == parcelSaga })
	}
	if l.m.s.broken[brokenStarts] != "" {
		c.Limit = 0
	}
	return onWay(ctx, l, ledgertest.ClaimWorks, func(ctx context.Context) (ledger.Claimed, error) { return l.Ledger.Claim(ctx, t, c) })
}

func (l *link) Post(ctx context.Context, id saga.ID, sig machine.Signal) (ledger.Posted, error) {
	return onWay(ctx, l, ledgertest.Post, func(ctx context.Context) (ledger.Posted, error) { return l.Ledger.Post(ctx, id, sig) })
}

func (l *link) Describe(ctx context.Context, spec *program.Spec) error {
	_, err := onWay(ctx, l, ledgertest.Describe, nothing(func(ctx context.Context) error { return l.Ledger.Describe(ctx, spec) }))
	return err
}

func (l *link) Count(ctx context.Context, c ledger.Counter, totals []ledger.Duplicate) error {
	_, err := onWay(ctx, l, ledgertest.Count, nothing(func(ctx context.Context) error { return l.Ledger.Count(ctx, c, totals) }))
	return err
}

func (l *link) Controls(ctx context.Context) (all []ledger.Control, newest int64, err error) {
	_, err = onWay(ctx, l, ledgertest.Controls, nothing(func(ctx context.Context) (err error) {
		all, newest, err = l.Ledger.Controls(ctx)
		return err
	}))
	return all, newest, err
}

func (l *link) SetControl(ctx context.Context, t machine.Token, k ledger.Control) (ledger.Control, error) {
	return onWay(ctx, l, ledgertest.SetControl, func(ctx context.Context) (ledger.Control, error) { return l.Ledger.SetControl(ctx, t, k) })
}

func (l *link) Acts(ctx context.Context, kind ledger.ControlKind, name string, limit int) ([]ledger.Control, error) {
	return onWay(ctx, l, ledgertest.Acts, func(ctx context.Context) ([]ledger.Control, error) {
		return l.Ledger.Acts(ctx, kind, name, limit)
	})
}

// nothing makes a call without an answer fit [onWay].
func nothing(do func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) }
}
