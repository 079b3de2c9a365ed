package sagahttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// pipe is a connection whose writes are counted and may be made to fail.
type pipe struct {
	net.Conn
	wrote int
	n     int
	err   error
}

func (p *pipe) Write(b []byte) (int, error) {
	p.wrote++
	if p.err != nil {
		return p.n, p.err
	}
	return len(b), nil
}

func start(t *testing.T) (*exchange, context.Context, *program.Gate) {
	t.Helper()
	gate := program.NewGate(nil)
	x, ctx := begin(program.WithGate(t.Context(), gate), nil, false)
	return x, ctx, gate
}

func (x *exchange) bind(c *conn) { x.gotConn(httptrace.GotConnInfo{Conn: c}) }

// A connection that belongs to no request writes nothing.
func TestUnboundConnectionWritesNothing(t *testing.T) {
	t.Parallel()
	p := &pipe{}
	if _, err := (&conn{Conn: p}).Write([]byte("x")); !errors.Is(err, errUnbound) || p.wrote != 0 {
		t.Errorf("error %v, %d writes", err, p.wrote)
	}
}

// "Before Do concludes 'not sent' it shuts the request for good": a late write is refused.
func TestLateWriteIsRefused(t *testing.T) {
	t.Parallel()
	x, _, gate := start(t)
	p := &pipe{}
	c := &conn{Conn: p}
	x.bind(c)
	if left, _ := x.outcome(); left {
		t.Fatal("nothing was written, but something left")
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, errOver) || p.wrote != 0 || gate.Passed() {
		t.Errorf("error %v, %d writes, gate passed %v", err, p.wrote, gate.Passed())
	}
}

// A second send on another connection is refused and ends the request; the same connection may go
// on.
func TestSecondSendIsRefused(t *testing.T) {
	t.Parallel()
	x, ctx, _ := start(t)
	other := &pipe{}
	first, second := &conn{Conn: &pipe{}}, &conn{Conn: other}
	x.bind(first)
	for range 3 {
		if _, err := first.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	x.bind(second)
	if _, err := second.Write([]byte("x")); !errors.Is(err, errResend) || other.wrote != 0 {
		t.Errorf("error %v", err)
	}
	if !errors.Is(context.Cause(ctx), errResend) {
		t.Errorf("the request goes on: %v", context.Cause(ctx))
	}
}

// A connection that broke before the first write carried nothing, so another may be used.
func TestAnotherConnectionBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	x, _, _ := start(t)
	first, second := &conn{Conn: &pipe{}}, &conn{Conn: &pipe{}}
	x.bind(first)
	x.bind(second)
	if _, err := second.Write([]byte("x")); err != nil || !x.hasLeft() {
		t.Errorf("error %v, left %v", err, x.hasLeft())
	}
}

// A first write that fails without having taken a byte sent nothing; one that took a byte did.
func TestFailedFirstWrite(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{0: false, 1: true} {
		x, _, _ := start(t)
		c := &conn{Conn: &pipe{n: n, err: io.ErrClosedPipe}}
		x.bind(c)
		if _, err := c.Write([]byte("xy")); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatal(err)
		}
		if left, _ := x.outcome(); left != want {
			t.Errorf("after a failed write of %d bytes: left %v, want %v", n, left, want)
		}
	}
}

// A failure after a first byte cannot take it back.
func TestFailedLaterWrite(t *testing.T) {
	t.Parallel()
	x, _, _ := start(t)
	p := &pipe{}
	c := &conn{Conn: p}
	x.bind(c)
	_, _ = c.Write([]byte("x"))
	p.err = io.ErrClosedPipe
	_, _ = c.Write([]byte("y"))
	if left, _ := x.outcome(); !left {
		t.Error("a byte that left was taken back")
	}
}

// A request that was given up does not leave any more, even if its connection is ready.
func TestCancelledBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	gate := program.NewGate(nil)
	ctx, cancel := context.WithCancel(program.WithGate(t.Context(), gate))
	x, _ := begin(ctx, nil, false)
	p := &pipe{}
	c := &conn{Conn: p}
	x.bind(c)
	cancel()
	if _, err := c.Write([]byte("x")); !errors.Is(err, context.Canceled) || p.wrote != 0 || gate.Passed() {
		t.Errorf("error %v, %d writes, gate passed %v", err, p.wrote, gate.Passed())
	}
}

// lateTimer is a context whose deadline has passed, and whose timer has not fired yet.
type lateTimer struct {
	context.Context //nolint:containedctx // it is one
}

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// "A request's first byte leaves before its recorded deadline or never", also when a timer is
// late.
func TestDeadlineIsComparedItself(t *testing.T) {
	t.Parallel()
	x, _ := begin(lateTimer{t.Context()}, nil, false)
	p := &pipe{}
	c := &conn{Conn: p}
	x.bind(c)
	if _, err := c.Write([]byte("x")); !errors.Is(err, context.DeadlineExceeded) || p.wrote != 0 {
		t.Errorf("error %v, %d writes", err, p.wrote)
	}
}
