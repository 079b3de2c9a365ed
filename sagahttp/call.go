package sagahttp

import (
	"context"

	"github.com/amends-dev/amends/saga"
)

// call is a request, and what is known of the attempt that it belongs to.
type call struct {
	Request
	sent func() bool // whether a request of the attempt may have left by now
	late bool        // another one may have before this one

	secrets func() secrets // that its errors do not show
}

func newCall(ctx context.Context, r Request) call {
	return call{Request: r, sent: func() bool { return saga.Sent(ctx) }, late: saga.Sent(ctx)}
}

// unsent marks the error of a request of which nothing left. That is true of the attempt only where
// this was its first.
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
	case saga.RefusedKey:
		return saga.KeyRefused(err)
	case saga.NotUndoable:
		return saga.CannotUndo(err)
	case saga.Gone:
		return saga.PreviousGone(err)
	case saga.Unknown, saga.Fault: // a plain error is unknown; an answer is never a fault
	}
	return err
}

// class is what the class of this request says about its attempt. Reading has no effect, so
// whatever went wrong with it the attempt has none, unless a request of it that writes has left: of
// that one a read says nothing.
func (c call) class(class saga.Class) saga.Class {
	switch {
	case !c.reads():
		return class
	case c.sent():
		return saga.Unknown
	case class == saga.Refused || class == saga.RefusedKey: // a read has no key
		return saga.Refused
	case class == saga.NotUndoable:
		return class
	}
	return saga.Unsent
}
