package sagahttp

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/amends-dev/amends/saga"
)

var (
	errStranger = errors.New("Options.WrapTransport sent a request that is not the client's: it has to keep the context")
	errAddress  = errors.New("Options.WrapTransport changed the method or the address of the request")
	errTwice    = errors.New("Options.WrapTransport sent the request a second time, which is refused")
	errBypassed = errors.New("Options.WrapTransport did not get this answer from the RoundTripper that it was given")
	errNothing  = errors.New("Options.WrapTransport returned neither an answer nor an error")
)

// base is the RoundTripper at the bottom, which Options.WrapTransport wraps. It sends the request
// of an exchange, once, and nothing else.
type base struct{ transport *http.Transport }

func (b *base) RoundTrip(req *http.Request) (*http.Response, error) {
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	if err := x.enter(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &baseError{err}
	}
	once := req.WithContext(req.Context())
	once.GetBody = nil // so the transport does not think of sending again
	answer, err := b.transport.RoundTrip(once)
	if err != nil {
		return nil, &baseError{err}
	}
	if !x.answer() {
		_ = answer.Body.Close()
		return nil, &baseError{errUnasked}
	}
	if c := x.carrier(); req.Method != http.MethodHead && answer.ContentLength > 0 {
		c.rest = answer.ContentLength // nothing of it is read before this
	}
	return answer, nil
}

// baseError is an error of base, so that it is told from one of a RoundTripper around it. Its text
// does not quote what came over the wire.
type baseError struct{ err error }

func (e *baseError) Error() string { return (&sendError{err: e.err, ours: isOurs(e.err)}).cause() }
func (e *baseError) Unwrap() error { return e.err }

func isOurs(err error) bool {
	return slices.ContainsFunc([]error{errUnasked, errStranger, errAddress, errTwice}, func(ours error) bool { return errors.Is(err, ours) })
}

type exchangeKey struct{}

// enter lets the request of x in, once. x is nil for one that belongs to no exchange.
func (x *exchange) enter(req *http.Request) error {
	if x == nil {
		return errStranger
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.entered:
		return errTwice
	case !sameTarget(req, x.request):
		return errAddress
	}
	x.entered = true
	return nil
}

// answer notes that base has an answer, and reports whether it is one to a request that has left.
func (x *exchange) answer() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answered = x.left
	return x.answered
}

func (x *exchange) hasAnswer() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answered
}

// sameTarget reports whether two requests ask for the same at the same place. Query values may
// differ: credentials can be there.
func sameTarget(a, b *http.Request) bool {
	return a.Method == b.Method && a.Host == b.Host && a.URL.Scheme == b.URL.Scheme && a.URL.Host == b.URL.Host &&
		a.URL.EscapedPath() == b.URL.EscapedPath()
}

// wrapError is an error that a RoundTripper of Options.WrapTransport made by itself. Its text is
// not shown unless it says that nothing was sent: it may quote an answer.
type wrapError struct {
	text string
	err  error // nil where its mark must not count
}

func (e *wrapError) Error() string { return e.text }
func (e *wrapError) Unwrap() error { return e.err }

// wrapped judges an error of a RoundTripper of the user's. Nothing is known of what it did, unless
// it says "not sent".
func wrapped(err error) (_ *wrapError, notSent bool) {
	const failed = "the RoundTripper of Options.WrapTransport failed"
	switch class, _ := saga.Classify(err); class {
	case saga.Unsent:
		return &wrapError{text: failed + ": " + oneLine(err.Error())}, true
	case saga.Unknown:
		return &wrapError{text: failed, err: err}, false
	default:
		return &wrapError{text: failed}, false
	}
}

// roundTrip sends by the user's RoundTripper, or by base where there is none.
func (c *Client) roundTrip(ctx context.Context, x *exchange, req *http.Request) (*http.Response, error) {
	answer, err := c.sender.RoundTrip(req.WithContext(ctx))
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, errNothing
	case answer.Body == nil:
		answer.Body = http.NoBody
	}
	if !x.hasAnswer() {
		_ = answer.Body.Close()
		return nil, errBypassed
	}
	return answer, nil
}
