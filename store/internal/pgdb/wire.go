package pgdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A connection can go silent: a host, a firewall or a proxy that is gone, or that acknowledges and
// forwards nothing. The driver answers a context that ends by asking the server to cancel, and goes
// on reading. So the socket itself is told: its deadline passes, the driver returns, and the
// connection is thrown away.

// How soon a peer that acknowledges nothing is given up, while nothing is under way and while
// something is.
const (
	probeIdle, probeEvery, probes = 10 * time.Second, 5 * time.Second, 3

	unacknowledged = 15 * time.Second
)

// dialer opens sockets whose end a context can bring about.
type dialer struct {
	net.Dialer

	patience time.Duration // with the servers
}

func newDialer(patience time.Duration) dialer {
	return dialer{net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeEvery, Count: probes},
		Control:         limitUnacknowledged,
	}, patience}
}

// opening is a connection in the making: the driver dials on a context of its own, which ends with
// the dialling.
type opening struct {
	ctx    context.Context //nolint:containedctx // it belongs to the connection and not to the call
	socket *socket
	watch  func()
}

type openingKey struct{}

// Dial implements [pq.Dialer]; the driver prefers DialContext.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements [pq.Dialer]; the driver prefers DialContext.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext implements [pq.DialerContext]. A connection without an [opening] in its context is
// the driver's request to cancel: the call that has ended waits until the server has taken it, so a
// server that is gone may cost it a little and not what connecting may.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	o, opens := ctx.Value(openingKey{}).(*opening)
	if !opens {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, farewell)
		defer cancel()
	}
	from := time.Now()
	c, err := d.Dialer.DialContext(ctx, network, address)
	switch {
	case err != nil && opens && o.ctx.Err() == nil && ctx.Err() != nil: // it took longer than connecting may
		return nil, &Silence{Server: address, During: "connect", For: time.Since(from)}
	case err != nil:
		return nil, err
	}
	s := &socket{Conn: c, server: address, patience: d.patience}
	if opens {
		o.done() // of several hosts the last counts
		o.socket = s
		o.watch = s.watch(o.ctx) //nolint:contextcheck // ctx ends with the dialling
	} else {
		time.AfterFunc(farewell, s.end)
	}
	return s, nil
}

// done ends the watch over the opening.
func (o *opening) done() {
	if o.watch != nil {
		o.watch()
	}
}

// socket is a connection to a server. Once it has ended no deadline brings it back.
type socket struct {
	net.Conn

	heard atomic.Int64                 // when something last came from the server
	doubt atomic.Pointer[atomic.Int64] // the server's; nil until the connection is made

	server   string
	patience time.Duration              // how long the server may say nothing
	working  func(context.Context) bool // whether it works on what it was told; nil until the connection is made

	mu     sync.Mutex
	ended  bool
	readBy time.Time          // when a read is to end, as the driver has it; zero: never
	asking context.CancelFunc // of the question whether it works
}

// A server seldom falls silent on one connection only, and a pool hands out its idle ones one after
// the other. So a call that has no answer in its time puts all those connections in doubt that have
// not been heard since it began: they are replaced before they cost a time-out each.

// begun is what the moments of this package count from.
var begun = time.Now()

func moment() int64 { return int64(time.Since(begun)) }

// unheard puts the others in doubt when nothing came for a call that began then.
func (s *socket) unheard(began int64) {
	doubt := s.doubt.Load()
	if doubt == nil || s.heardSince(began) {
		return
	}
	for last := doubt.Load(); last < began && !doubt.CompareAndSwap(last, began); {
		last = doubt.Load()
	}
}

// heardSince reports whether something came from the server at that moment or later.
func (s *socket) heardSince(then int64) bool { return s.heard.Load() >= then }

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// end lets everything that waits on the socket return.
func (s *socket) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.asking != nil {
		s.asking()
	}
	_ = s.Conn.SetDeadline(longAgo) // it fails on a closed socket, on which nothing waits
}

func (s *socket) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// watch ends the socket when ctx ends, until the returned function is called.
func (s *socket) watch(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	began := moment()
	cancel := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.unheard(began)
		}
		s.end()
	})
	return func() {
		if !cancel() {
			s.end() // it is about to: nothing may begin on this socket any more
		}
	}
}

// SetDeadline implements [net.Conn].
func (s *socket) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	s.readBy = t
	return s.Conn.SetDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	s.readBy = t
	return s.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements [net.Conn].
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	return s.Conn.SetWriteDeadline(t)
}

// farewell is how long closing a statement or a connection may take, and asking the server to
// cancel.
const farewell = time.Second

// within runs fn, which has no context, for so long.
func (s *socket) within(d time.Duration, fn func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	defer s.watch(ctx)()
	return fn()
}

// rows end the watch over their query when they are closed.
type rows struct {
	driver.Rows

	stop func()
}

// Close implements [driver.Rows].
func (r *rows) Close() error {
	err := r.Rows.Close()
	r.stop()
	return err
}

// tx ends the watch over a transaction with it.
type tx struct {
	driver.Tx

	stop func()
}

// Commit implements [driver.Tx].
func (t *tx) Commit() error {
	defer t.stop()
	return t.Tx.Commit()
}

// Rollback implements [driver.Tx].
func (t *tx) Rollback() error {
	defer t.stop()
	return t.Tx.Rollback()
}

// pqStmt is what a prepared statement of lib/pq can do.
type pqStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// stmt is a prepared statement of a connection.
type stmt struct {
	pqStmt

	conn *conn
}

// QueryContext implements [driver.StmtQueryContext].
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.allowed(ctx); err != nil {
		return nil, err
	}
	return watched(ctx, s.conn.socket, func() (driver.Rows, error) { return s.pqStmt.QueryContext(ctx, args) })
}

// ExecContext implements [driver.StmtExecContext].
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.conn.allowed(ctx); err != nil {
		return nil, err
	}
	defer s.conn.socket.watch(ctx)()
	return s.pqStmt.ExecContext(ctx, args)
}

// Close implements [driver.Stmt].
func (s *stmt) Close() error { return s.conn.socket.within(farewell, s.pqStmt.Close) }

// watched runs a query. Its rows are read under the same watch.
func watched(ctx context.Context, s *socket, query func() (driver.Rows, error)) (driver.Rows, error) {
	stop := s.watch(ctx)
	r, err := query()
	if err != nil {
		stop()
		return nil, err
	}
	return &rows{r, stop}, nil
}
