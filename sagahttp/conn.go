package sagahttp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var errUnbound = errors.New("a connection that belongs to no request may not write")

// conn writes and reads only for the exchange that it serves at the moment. For https it wraps the
// TLS connection, not the one beneath, so that handshakes and alerts are not mistaken for a request.
//
// What comes behind an answer belongs to no request; the next one would take it for its own. So
// net/http is given no byte behind the end of an answer: up to the end of a line where a header or a
// chunk may end, and as many as were announced of a body with a length. What is left over spoils the
// connection, and is never seen by net/http, which would write it to the standard log.
type conn struct {
	net.Conn
	current atomic.Pointer[exchange]
	in      *bufio.Reader // of Conn
	rest    int64         // of a body with a length; 0: lines
	spoilt  atomic.Bool   // it said what it was not asked
	closing sync.Once
	closed  chan struct{} // by net/http, which does not give it to a request from then on
}

func newConn(c net.Conn) *conn {
	return &conn{Conn: c, in: bufio.NewReader(c), closed: make(chan struct{})}
}

func (c *conn) Read(p []byte) (int, error) {
	if c.spoilt.Load() {
		return 0, errUnasked
	}
	if _, err := c.in.Peek(1); err != nil {
		return 0, err
	}
	if x := c.current.Load(); x == nil || !x.sentOn(c) {
		c.spoilt.Store(true) // net/http closes it for the error
		return 0, errUnasked
	}
	if c.rest > 0 {
		n, err := c.in.Read(p[:min(int64(len(p)), c.rest)])
		c.rest -= int64(n)
		return n, err
	}
	come, _ := c.in.Peek(c.in.Buffered()) // what is there can be peeked at
	if end := bytes.IndexByte(come, '\n'); end >= 0 {
		come = come[:end+1]
	}
	return c.in.Read(p[:min(len(p), len(come))])
}

// answered is told when the answer to x was read to its end, before anything else is read.
func (c *conn) answered(x *exchange) {
	c.current.CompareAndSwap(x, nil)
	if c.in.Buffered() > 0 {
		c.spoilt.Store(true)
	}
}

func (c *conn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *conn) Write(p []byte) (int, error) {
	if c.spoilt.Load() {
		return 0, errUnasked
	}
	x := c.current.Load()
	if x == nil {
		return 0, errUnbound
	}
	first, err := x.admit(c)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if first && n == 0 && err != nil {
		x.nothingLeft(err)
	}
	return n, err
}

// dialer opens the connections of a client.
type dialer struct {
	open    func(ctx context.Context, network, addr string) (net.Conn, error)
	tls     *tls.Config
	timeout time.Duration
}

// dialError marks what failed before there was a connection.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func (d *dialer) plain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	raw, err := d.open(ctx, network, addr)
	if err != nil {
		return nil, &dialError{err}
	}
	return newConn(raw), nil
}

func (d *dialer) secure(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	raw, err := d.open(ctx, network, addr)
	if err != nil {
		return nil, &dialError{err}
	}
	config := d.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &dialError{err}
	}
	return newConn(secured), nil
}

// newTransport returns a transport that never follows, proxies, compresses or speaks HTTP/2.
func newTransport(o *Options) *http.Transport {
	d := &dialer{open: o.Dial, tls: tlsConfig(o.TLS), timeout: o.ConnectTimeout}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		Protocols:              protocols,
		DisableCompression:     true, // what is counted against the limit is what was sent
		MaxConnsPerHost:        o.MaxConns,
		MaxIdleConnsPerHost:    o.MaxConns,
		IdleConnTimeout:        o.IdleTimeout,
		MaxResponseHeaderBytes: int64(o.MaxHeader),
	}
}

func tlsConfig(user *tls.Config) *tls.Config {
	config := user.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	config.NextProtos = []string{"http/1.1"}
	return config
}
