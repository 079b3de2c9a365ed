package sagahttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/amends-dev/amends/saga"
)

var errUnasked = errors.New("the destination said something on this connection before it was asked, or closed it")

// sendError is a request without a usable answer. Its text says what became of the request, and
// never quotes what came over the wire: net/http puts the bytes of a malformed answer into its
// errors.
type sendError struct {
	request Request
	secrets secrets
	state   string // what became of it
	err     error
	ours    bool // err's text was made in this process
}

const (
	notSent = "not sent"
	inDoubt = "sent, outcome unknown"
	unread  = "a read without an answer"
	perhaps = "perhaps sent, outcome unknown"
)

// failed judges a request that got no answer. "Not sent" is what base knows, or what a RoundTripper
// around it says of itself.
func (c call) failed(x *exchange, err error) error {
	failed := c.judge(x, err)
	for _, none := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		if errors.Is(err, none) {
			return saga.Unreachable(failed)
		}
	}
	return failed
}

func (c call) judge(x *exchange, err error) error {
	e := &sendError{request: c.Request, secrets: c.secrets(), state: notSent}
	unsent := false
	if b, ok := errors.AsType[*baseError](err); ok {
		e.err, e.ours, unsent = b.err, isOurs(b.err) || errors.Is(b.err, context.Cause(x.ctx)), true
	} else {
		e.ours = true
		if e.err = err; !errors.Is(err, errBypassed) && !errors.Is(err, errNothing) {
			e.err, unsent = wrapped(err)
		}
	}
	left, refusal := x.outcome()
	switch {
	case (left || !unsent) && c.reads():
		e.state = unread
		return c.mark(saga.Unknown, e)
	case left:
		e.state = inDoubt
		return e
	case !unsent:
		e.state = perhaps
		return e
	case refusal != nil:
		e.err, e.ours = refusal, true
	}
	return c.unsent(e)
}

func (e *sendError) Unwrap() error { return e.err }

func (e *sendError) Error() string {
	return e.secrets.without(fmt.Sprintf("%s %s: %s: %s", e.request.Method, printable(e.request.Path), e.state, e.cause()))
}

func (e *sendError) cause() string {
	var (
		dial *dialError
		op   *net.OpError
		code syscall.Errno
	)
	switch {
	case errors.As(e.err, &dial):
		return dial.Error()
	case errors.Is(e.err, context.DeadlineExceeded):
		return "the deadline passed"
	case errors.Is(e.err, context.Canceled):
		return "cancelled"
	case e.ours:
		return e.err.Error()
	case errors.As(e.err, &op):
		return op.Error()
	case errors.As(e.err, &code):
		return code.Error()
	case errors.Is(e.err, io.EOF), errors.Is(e.err, io.ErrUnexpectedEOF):
		return "the connection was closed too early"
	}
	return "the connection broke, or the answer was not readable HTTP"
}

// printable cuts a path that was refused down to what may be shown.
func printable(path string) string {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if !isHeaderValue(path) {
		return "(path)"
	}
	return path
}
