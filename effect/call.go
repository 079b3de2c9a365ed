package effect

import (
	"context"

	"github.com/amends-dev/amends/saga"
)

// call is a request, and what is known of the attempt that it belongs to.
type call struct {
	Request
	gate *saga.Gate // nil outside of an attempt
	late bool       // another request of the attempt may have left before this one
}

func newCall(ctx context.Context, r Request) call {
	g := gateOf(ctx)
	return call{Request: r, gate: g, late: g != nil && g.Passed()}
}

// unsent marks the error of a request of which nothing left. That is true of the attempt only where this was its first.
func (c call) unsent(err error) error {
	if c.late {
		return err
	}
	return c.mark(saga.Unsent, err)
}

// mark gives an error of this request its class. Err has no mark of its own.
func (c call) mark(class saga.Class, err error) error {
	switch c.class(class) {
	case saga.Unsent:
		return saga.NotSent(err)
	case saga.Refused:
		return saga.Permanent(err)
	case saga.Unknown, saga.Fault: // a plain error is unknown; an answer is never a fault
	}
	return err
}

// class is what the class of this request says about its attempt. Reading has no effect, so whatever went wrong with it the
// attempt has none, unless a request of it that writes has left: of that one a read says nothing.
func (c call) class(class saga.Class) saga.Class {
	switch {
	case !c.reads():
		return class
	case c.gate != nil && c.gate.Passed():
		return saga.Unknown
	case class == saga.Refused:
		return saga.Refused
	}
	return saga.Unsent
}

// gateOf returns the gate that ctx carries, nil without one.
func gateOf(ctx context.Context) *saga.Gate {
	l := &listener{Context: ctx}
	_ = saga.Sending(l) //nolint:contextcheck // it carries ctx
	return l.gate
}

// listener hears which gate package saga asks a context for, and answers that there is none: so nothing passes it.
type listener struct {
	context.Context //nolint:containedctx // it is one, for the time of a call
	gate            *saga.Gate
}

func (l *listener) Value(key any) any {
	l.gate, _ = l.Context.Value(key).(*saga.Gate)
	return nil
}
