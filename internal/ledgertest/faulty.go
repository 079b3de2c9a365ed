package ledgertest

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// ErrInjected is in the chain of every error a [FaultyLedger] makes up, beside [driver.ErrBadConn]:
// such an error looks like a cut connection, which a caller answers by trying again.
var ErrInjected = errors.New("fault injected by the test")

// Method names a method of [ledger.Ledger] for counting.
type Method string

// The methods that can fail.
const (
	OpenSession Method = "OpenSession"
	Renew       Method = "Renew"
	Bury        Method = "Bury"
	Append      Method = "Append"
	Load        Method = "Load"
	ClaimWorks  Method = "Claim"
	GiveBack    Method = "GiveBack"
	CatchUp     Method = "CatchUp"
	Post        Method = "Post"
	Describe    Method = "Describe"
	Count       Method = "Count"
	Blocked     Method = "Blocked"
	Reduce      Method = "Reduce"
	Controls    Method = "Controls"
	SetControl  Method = "SetControl"
	Acts        Method = "Acts"
	Did         Method = "Did"
	Deeds       Method = "Deeds"
	Request     Method = "Request"
	Answer      Method = "Answer"
	Await       Method = "Await"
	Waits       Method = "Waits"
	Unwait      Method = "Unwait"
	Keep        Method = "Keep"
	Messages    Method = "Messages"
	Use         Method = "Use"
	Uses        Method = "Uses"
	Shared      Method = "Shared"
)

// Fault is one thing that goes wrong. Calls are counted from 1, over the methods the fault was
// given, or over all methods when it was given none.
type Fault struct {
	from, to int // the calls that are hit
	methods  []Method
	effect   bool // the call takes effect before it is hit
	answer   bool // and its answer arrives: only what follows is hit
	crash    bool // the process dies there: no call after it has an effect
}

const forever = int(^uint(0) >> 1)

// FailBefore fails the n-th call before it has an effect. Later calls succeed.
func FailBefore(n int, on ...Method) Fault { return Fault{from: n, to: n, methods: on} }

// LoseAnswer lets the n-th call take effect and returns an error instead of its answer: the
// ambiguous commit.
func LoseAnswer(n int, on ...Method) Fault { return Fault{from: n, to: n, methods: on, effect: true} }

// LoseAnswers loses every answer but the effects.
func LoseAnswers(on ...Method) Fault { return Fault{from: 1, to: forever, methods: on, effect: true} }

// FailAlways fails every call without effect: the database is away.
func FailAlways(on ...Method) Fault { return Fault{from: 1, to: forever, methods: on} }

// FailBetween fails the calls from the n-th to the m-th without effect: the database is away for a
// while.
func FailBetween(n, m int, on ...Method) Fault { return Fault{from: n, to: m, methods: on} }

// CrashBefore ends the process just before the n-th call: neither it nor any later call of any
// method has an effect.
func CrashBefore(n int, on ...Method) Fault { return Fault{from: n, to: n, methods: on, crash: true} }

// CrashDuring ends the process between the effect of the n-th call and its answer.
func CrashDuring(n int, on ...Method) Fault {
	return Fault{from: n, to: n, methods: on, effect: true, crash: true}
}

// CrashAfter ends the process just after the n-th call was answered.
func CrashAfter(n int, on ...Method) Fault {
	return Fault{from: n, to: n, methods: on, effect: true, answer: true, crash: true}
}

// FaultyLedger passes calls on to a ledger and lets some of them fail. It is safe for concurrent
// use. Run one without faults first and read [FaultyLedger.Calls] to know how many points there are
// to fail at.
type FaultyLedger struct {
	ledger.Catalogue // what only reads never fails

	inner  ledger.Ledger
	faults []Fault

	mu      sync.Mutex
	seen    []int // by fault: calls counted so far
	calls   map[Method]int
	crashed chan struct{}
	dead    bool
}

var _ ledger.Ledger = (*FaultyLedger)(nil)

// Faulty returns l with faults.
func Faulty(l ledger.Ledger, faults ...Fault) *FaultyLedger {
	return &FaultyLedger{
		Catalogue: l, inner: l, faults: faults,
		seen: make([]int, len(faults)), calls: make(map[Method]int), crashed: make(chan struct{}),
	}
}

// Crashed is closed when a Crash fault has struck. The test then abandons the process it plays.
func (f *FaultyLedger) Crashed() <-chan struct{} { return f.crashed }

// Calls returns how often the given methods were called, or all of them when none is given.
func (f *FaultyLedger) Calls(of ...Method) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for m, c := range f.calls {
		if len(of) == 0 || slices.Contains(of, m) {
			n += c
		}
	}
	return n
}

// plan is what happens to one call.
type plan struct {
	effect, answer bool
	err            error
}

func (f *FaultyLedger) next(m Method) plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[m]++
	err := fmt.Errorf("%s, call %d: connection cut: %w: %w", m, f.calls[m], ErrInjected, driver.ErrBadConn)
	if f.dead {
		return plan{err: err}
	}
	p := plan{effect: true, answer: true, err: err}
	for i, fault := range f.faults {
		if len(fault.methods) > 0 && !slices.Contains(fault.methods, m) {
			continue
		}
		f.seen[i]++
		if f.seen[i] < fault.from || f.seen[i] > fault.to {
			continue
		}
		p.effect = p.effect && fault.effect
		p.answer = p.answer && fault.answer
		f.dead = f.dead || fault.crash
	}
	if f.dead {
		close(f.crashed)
	}
	return p
}

// call carries out one call as planned.
func call[T any](f *FaultyLedger, m Method, do func() (T, error)) (T, error) {
	p := f.next(m)
	var none T
	if !p.effect {
		return none, p.err
	}
	answer, err := do()
	if !p.answer {
		return none, p.err
	}
	return answer, err
}

// nothing makes a call without an answer fit [call].
func nothing(do func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, do() }
}

// OpenSession passes the call on, or not.
func (f *FaultyLedger) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	return call(f, OpenSession, func() (ledger.Lease, error) { return f.inner.OpenSession(ctx, ttl, label, knows) })
}

// Renew passes the call on, or not.
func (f *FaultyLedger) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	return call(f, Renew, func() (ledger.Lease, error) { return f.inner.Renew(ctx, t, r) })
}

// Bury passes the call on, or not.
func (f *FaultyLedger) Bury(ctx context.Context, t machine.Token) error {
	_, err := call(f, Bury, nothing(func() error { return f.inner.Bury(ctx, t) }))
	return err
}

// Append passes the call on, or not.
func (f *FaultyLedger) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return call(f, Append, func() ([]ledger.Answer, error) { return f.inner.Append(ctx, t, es) })
}

// Load passes the call on, or not.
func (f *FaultyLedger) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	return call(f, Load, func() ([]ledger.Chain, error) { return f.inner.Load(ctx, ids) })
}

// Claim passes the call on, or not.
func (f *FaultyLedger) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	return call(f, ClaimWorks, func() (ledger.Claimed, error) { return f.inner.Claim(ctx, t, c) })
}

// GiveBack passes the call on, or not.
func (f *FaultyLedger) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	_, err := call(f, GiveBack, nothing(func() error { return f.inner.GiveBack(ctx, t, works) }))
	return err
}

// CatchUp passes the call on, or not.
func (f *FaultyLedger) CatchUp(ctx context.Context) (works, sessions int64, err error) {
	n, err := call(f, CatchUp, func() ([2]int64, error) {
		works, sessions, err := f.inner.CatchUp(ctx)
		return [2]int64{works, sessions}, err
	})
	return n[0], n[1], err
}

// Post passes the call on, or not.
func (f *FaultyLedger) Post(ctx context.Context, id saga.ID, s machine.Signal) (ledger.Posted, error) {
	return call(f, Post, func() (ledger.Posted, error) { return f.inner.Post(ctx, id, s) })
}

// Describe passes the call on, or not.
func (f *FaultyLedger) Describe(ctx context.Context, spec *program.Spec) error {
	_, err := call(f, Describe, nothing(func() error { return f.inner.Describe(ctx, spec) }))
	return err
}

// Count passes the call on, or not.
func (f *FaultyLedger) Count(ctx context.Context, c ledger.Counter, totals []ledger.Duplicate) error {
	_, err := call(f, Count, nothing(func() error { return f.inner.Count(ctx, c, totals) }))
	return err
}

// Blocked passes the call on, or not.
func (f *FaultyLedger) Blocked(ctx context.Context, by, source string, n int64) error {
	_, err := call(f, Blocked, nothing(func() error { return f.inner.Blocked(ctx, by, source, n) }))
	return err
}

// Reduce passes the call on, or not.
func (f *FaultyLedger) Reduce(ctx context.Context, all []ledger.Reduction) ([]bool, error) {
	return call(f, Reduce, func() ([]bool, error) { return f.inner.Reduce(ctx, all) })
}

// Controls passes the call on, or not.
func (f *FaultyLedger) Controls(ctx context.Context) (all []ledger.Control, newest int64, err error) {
	_, err = call(f, Controls, nothing(func() (err error) {
		all, newest, err = f.inner.Controls(ctx)
		return err
	}))
	if err != nil {
		return nil, 0, err
	}
	return all, newest, nil
}

// SetControl passes the call on, or not.
func (f *FaultyLedger) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	return call(f, SetControl, func() (ledger.Control, error) { return f.inner.SetControl(ctx, t, c) })
}

// Acts passes the call on, or not.
func (f *FaultyLedger) Acts(ctx context.Context, kind ledger.ControlKind, name string, limit int) ([]ledger.Control, error) {
	return call(f, Acts, func() ([]ledger.Control, error) { return f.inner.Acts(ctx, kind, name, limit) })
}

// Did passes the call on, or not.
func (f *FaultyLedger) Did(ctx context.Context, kind ledger.ControlKind, what string, by saga.Actor) error {
	_, err := call(f, Did, nothing(func() error { return f.inner.Did(ctx, kind, what, by) }))
	return err
}

// Deeds passes the call on, or not.
func (f *FaultyLedger) Deeds(ctx context.Context, before time.Time, limit int) ([]ledger.Deed, error) {
	return call(f, Deeds, func() ([]ledger.Deed, error) { return f.inner.Deeds(ctx, before, limit) })
}

// Request passes the call on, or not.
func (f *FaultyLedger) Request(ctx context.Context, r ledger.Request) (ledger.Request, error) {
	return call(f, Request, func() (ledger.Request, error) { return f.inner.Request(ctx, r) })
}

// Answer passes the call on, or not.
func (f *FaultyLedger) Answer(ctx context.Context, key string, nonce int64, answer []byte) error {
	_, err := call(f, Answer, nothing(func() error { return f.inner.Answer(ctx, key, nonce, answer) }))
	return err
}

// Await passes the call on, or not.
func (f *FaultyLedger) Await(ctx context.Context, waits []ledger.Wait) error {
	_, err := call(f, Await, nothing(func() error { return f.inner.Await(ctx, waits) }))
	return err
}

// Waits passes the call on, or not.
func (f *FaultyLedger) Waits(ctx context.Context, name, key string) ([]ledger.Wait, error) {
	return call(f, Waits, func() ([]ledger.Wait, error) { return f.inner.Waits(ctx, name, key) })
}

// Unwait passes the call on, or not.
func (f *FaultyLedger) Unwait(ctx context.Context, waits []ledger.Wait) error {
	_, err := call(f, Unwait, nothing(func() error { return f.inner.Unwait(ctx, waits) }))
	return err
}

// Keep passes the call on, or not.
func (f *FaultyLedger) Keep(ctx context.Context, m program.Message, keep time.Duration) (ledger.Kept, error) {
	return call(f, Keep, func() (ledger.Kept, error) { return f.inner.Keep(ctx, m, keep) })
}

// Messages passes the call on, or not.
func (f *FaultyLedger) Messages(ctx context.Context, name, key, saga string) ([]program.Message, error) {
	return call(f, Messages, func() ([]program.Message, error) { return f.inner.Messages(ctx, name, key, saga) })
}

// Use passes the call on, or not.
func (f *FaultyLedger) Use(ctx context.Context, name, id string, by ledger.Wait) (bool, error) {
	return call(f, Use, func() (bool, error) { return f.inner.Use(ctx, name, id, by) })
}

// Uses passes the call on, or not.
func (f *FaultyLedger) Uses(ctx context.Context, name, id string) ([]ledger.Wait, error) {
	return call(f, Uses, func() ([]ledger.Wait, error) { return f.inner.Uses(ctx, name, id) })
}

// Shared passes the call on, or not.
func (f *FaultyLedger) Shared(ctx context.Context) ([]ledger.Shared, error) {
	return call(f, Shared, func() ([]ledger.Shared, error) { return f.inner.Shared(ctx) })
}

// Limits are those of the ledger behind f.
func (f *FaultyLedger) Limits() ledger.Limits { return f.inner.Limits() }

// Close closes the ledger behind f. It never fails on purpose.
func (f *FaultyLedger) Close() error { return f.inner.Close() }
