package sagahttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Client sends the requests of actions, undos and lookups to one destination. It is safe for
// concurrent use; make one per destination and keep it.
type Client struct {
	base      *url.URL
	opts      Options
	transport *http.Transport
	sender    http.RoundTripper // Options.WrapTransport's, or that of the transport
	now       func() time.Time
}

// New returns a client for the destination at address, for example "https://books.example/api/v1".
// Options may be nil. The error names everything that is wrong.
func New(address string, options *Options) (*Client, error) {
	opts := options.withDefaults()
	u, err := parseBase(address)
	if err := errors.Join(err, opts.validate()); err != nil {
		return nil, fmt.Errorf("effect client: %w", err)
	}
	c := &Client{base: u, opts: opts, transport: newTransport(&opts), now: time.Now}
	c.sender = &base{c.transport}
	if opts.WrapTransport != nil {
		if c.sender = opts.WrapTransport(c.sender); c.sender == nil {
			return nil, errors.New("effect client: WrapTransport returned no RoundTripper")
		}
	}
	return c, nil
}

// Close closes idle connections. Requests in flight finish, and the client stays usable.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends r once and waits for the whole answer, at most until the deadline of ctx.
//
// It returns no error for a 2xx answer that could be read. Any other answer is a [*StatusError],
// marked with the class that the table in the package comment gives. An error without an answer is
// [saga.NotSent] when no byte of the request left, else plain, which means unknown. The Response is
// not nil whenever there was an answer, also beside an error.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	this := newCall(ctx, r)
	req, err := c.build(ctx, r)
	if err != nil {
		return nil, this.unsent(&sendError{request: r, secrets: c.opts.Secrets, state: notSent, err: err, ours: true})
	}
	this.secrets = func() secrets { return c.secretsOf(r, req) }
	x, ctx := begin(ctx, req, r.reads())
	defer x.leave()
	answer, err := c.roundTrip(ctx, x, req)
	if err != nil {
		return nil, this.failed(x, err)
	}
	defer func() { _ = answer.Body.Close() }()
	return c.read(this, answer)
}

// bounded gives a context without a deadline the client's own.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.opts.Timeout)
}
