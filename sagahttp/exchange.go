package sagahttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/amends-dev/amends/saga"
)

var (
	errResend = errors.New("the connection broke after the request was sent, and sending it again by itself is refused")
	errOver   = errors.New("the request is over: it may not be sent any more")
)

// exchange is one request on its way: it decides, once, whether its first byte may leave, and on
// which connection. Everything it answers is decided under its lock, so a late write cannot make it
// a liar.
type exchange struct {
	ctx   context.Context //nolint:containedctx // the request's own: an exchange lives exactly as long
	abort context.CancelCauseFunc
	reads bool // reading has no effect: no gate to pass

	request *http.Request // as it was built

	mu      sync.Mutex
	conn    *conn // the only connection it may be written to; nil before its first byte
	left    bool  // at least one byte may have left
	refusal error // why it may not be sent (any more)

	entered  bool // it was given to the transport
	answered bool // the transport has an answer to it
}

// begin returns an exchange and the context to send its request with.
func begin(ctx context.Context, req *http.Request, reads bool) (*exchange, context.Context) {
	ctx, abort := context.WithCancelCause(ctx)
	x := &exchange{ctx: ctx, abort: abort, reads: reads, request: req}
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	return x, httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: x.gotConn, PutIdleConn: x.putIdle})
}

// gotConn tells the connection whose bytes come next. net/http calls it each time it is about to
// write the request, so a second call after a first byte is a hidden retry, which ends here.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	c, ok := info.Conn.(*conn)
	if !ok {
		x.abort(errUnbound) // not ours: it could not be watched
		return
	}
	// Behind a handshake TLS may have come what belongs to no request, such as a ticket.
	if _, secured := c.Conn.(*tls.Conn); (info.Reused || !secured) && saidBefore(c.Conn) {
		c.spoilt.Store(true)
	}
	c.current.Store(x)
	x.mu.Lock()
	again := x.left || x.refusal != nil
	x.mu.Unlock()
	if again {
		x.abort(errResend)
	}
}

// putIdle is told by net/http that the answer was read to its end and the connection is free, before
// it reads on.
func (x *exchange) putIdle(error) {
	if c := x.carrier(); c != nil {
		c.answered(x)
	}
}

// carrier is the connection that the request left on; nil before.
func (x *exchange) carrier() *conn {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conn
}

// sentOn reports whether a byte of the request may have left on c.
func (x *exchange) sentOn(c *conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.left && x.conn == c
}

// admit is asked before every write to c. first reports that it is the request's first.
func (x *exchange) admit(c *conn) (first bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.refusal != nil:
		return false, x.refusal
	case x.conn == c:
		return false, nil
	case x.conn != nil:
		return false, errResend
	}
	if err := x.mayStart(); err != nil {
		x.refusal = err
		return false, err
	}
	x.conn, x.left = c, true
	return true, nil
}

// mayStart compares the deadline itself too, because the timer behind a context may fire late.
func (x *exchange) mayStart() error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	if deadline, ok := x.ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	if x.reads {
		return nil
	}
	return saga.Sending(x.ctx)
}

// nothingLeft takes the first write back: it failed without having taken a byte.
func (x *exchange) nothingLeft(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left, x.refusal = false, err
}

// hasLeft reports whether a byte may have left.
func (x *exchange) hasLeft() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.left
}

// finish ends the request: its first byte, if it has not left by now, never will, because its
// context is done.
func (x *exchange) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.abort(errOver)
}

// leave finishes the request when its answer was read. A connection that was spoilt by then is waited
// for until net/http has closed it, at once, so that no request of later meets it.
func (x *exchange) leave() {
	x.finish()
	if c := x.carrier(); c != nil && c.spoilt.Load() {
		<-c.closed
	}
}

// outcome finishes the request. It reports whether a byte may have left, and if it was refused,
// why.
func (x *exchange) outcome() (left bool, refusal error) {
	x.finish()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.left, x.refusal
}
