package saga

import (
	"context"

	"github.com/amends-dev/amends/internal/program"
)

// Sent reports whether a request of the attempt that ctx belongs to may have left. Outside of an
// attempt none has.
func Sent(ctx context.Context) bool {
	g := program.GateOf(ctx)
	return g != nil && g.Passed()
}

// Sending passes the send gate of the attempt that ctx belongs to; [Call.Sending] is the same.
// Outside of an attempt (in a lookup, in a test) it returns nil.
func Sending(ctx context.Context) error { return pass(program.GateOf(ctx)) }

// pass lets a request of an attempt out. One that is turned away before any other left was not
// sent, and the error says so.
func pass(g *program.Gate) error {
	if g == nil {
		return nil
	}
	err := g.Pass()
	if err != nil && g.Unsent() {
		return NotSent(err)
	}
	return err
}
