package program

import (
	"context"
	"errors"
	"sync"
)

// ErrGateClosed is what [Gate.Pass] returns once nothing may be sent any more: the attempt's
// deadline has passed, the process is shutting down, or its lease is in question. An action returns
// it as it is.
var ErrGateClosed = errors.New("nothing may be sent any more: the attempt's send gate is closed")

// Gate stands between an attempt and the outside world. It is passed at the first byte out: the
// effect client does that by itself, any other action calls [saga.Call.Sending] just before it
// acts. What fails before the gate is provably not sent; what fails behind it is in doubt. An
// action that never touches its gate is treated as having passed it at once.
//
// A Gate is safe for concurrent use.
type Gate struct {
	admit func() error

	mu     sync.Mutex
	passes int  // requests that were let out
	turned bool // a request was turned away, and none had left before it
	closed bool
}

// NewGate returns an open gate. admit is asked at every pass and may refuse it (deadline, lease);
// nil admits.
func NewGate(admit func() error) *Gate { return &Gate{admit: admit} }

// Pass is called immediately before the first byte of a request. Each request of an attempt calls
// it; the first call that returns nil flips the gate for good. A request that is turned away before
// that was not sent, and neither was the attempt as long as it is [Gate.Unsent]; after it the
// attempt is in doubt.
func (g *Gate) Pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := error(nil)
	if g.closed {
		err = ErrGateClosed
	} else if g.admit != nil {
		err = g.admit()
	}
	switch {
	case err == nil:
		g.passes++
		return nil
	case g.passes > 0: // this request was turned away, but an earlier one of the attempt has left
		return err
	default:
		g.turned = true
		return err
	}
}

// Close turns away everybody who has not passed yet, and every later request of those who have.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// Passed reports whether a request may have left through the gate.
func (g *Gate) Passed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passes > 0
}

// Again reports whether more than one request may have left. What is said of the last of them then
// says nothing about those before it.
func (g *Gate) Again() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passes > 1
}

// Unsent reports that the action stood at its gate and was turned away before anything left.
func (g *Gate) Unsent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turned && g.passes == 0
}

type gateKey struct{}

// WithGate returns a context that carries the attempt's gate to the client that sends.
func WithGate(ctx context.Context, g *Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// GateOf returns the gate that ctx carries; nil outside of an attempt.
func GateOf(ctx context.Context) *Gate {
	g, _ := ctx.Value(gateKey{}).(*Gate)
	return g
}
