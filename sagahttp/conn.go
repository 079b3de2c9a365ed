package sagahttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

var errUnbound = errors.New("a connection that belongs to no request may not write")

// conn writes only for the exchange that it serves at the moment. For https it wraps the TLS
// connection, not the one beneath, so that handshakes and alerts are not mistaken for a request.
type conn struct {
	net.Conn
	current atomic.Pointer[exchange]
}

func (c *conn) Write(p []byte) (int, error) {
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
	return &conn{Conn: raw}, nil
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
	return &conn{Conn: secured}, nil
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
