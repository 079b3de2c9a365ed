package sagahttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/faults"
)

// Options tunes a client. The zero value of every field means its default.
type Options struct {
	// KeyHeader carries Request.Key. Default: Idempotency-Key.
	KeyHeader string
	// UserAgent names the caller to the destination. Default: amends.
	UserAgent string
	// Header goes with every request, for example a static API token.
	Header http.Header
	// Authorize adds credentials to a request that is otherwise complete. It may read the body and
	// add headers and query values; it must leave method and address alone. Its context carries the
	// deadline but not the attempt's gate, so it may fetch a token. When it fails, nothing was
	// sent.
	Authorize func(*http.Request) error

	// Secrets are texts that no error shows, such as the secret part of a path. Credentials need not be here: what headers and query values
	// hold whose names say so (Authorization, X-Api-Key, access_token), and query values that Authorize adds, is never shown, also where the
	// destination repeats it.
	Secrets []string

	// NotExecuted lists the statuses by which this destination promises that it did nothing. Nil
	// means 429. A list replaces the default: []int{429, 503} trusts both, an empty list that is
	// not nil trusts none.
	NotExecuted []int

	// SavedRefusals lists the statuses of refusals that this destination saves under the idempotency key, as it saves a success: it answers
	// every request under the key so, also one that comes late. They are [saga.KeyRefused] where a key was sent: nothing is owed an undo. List
	// only what the destination's contract says: Stripe saves a 402, and not what fails before it begins, such as an invalid parameter. Nil
	// lists none; an answer with "Idempotent-Replayed: true" says so itself.
	SavedRefusals []int

	// CheckResponse finds the errors that the destination puts into answers: GraphQL's errors in a
	// 200, the error of JSON-RPC, {"ok":false}. It is asked about every answer that came whole, and
	// before Request.Into is decoded. Nil: the status counts, as the table says. An error: its
	// class counts ([saga.Permanent], [saga.NotSent], else unknown) and its [saga.RetryAfter], up
	// to an hour, and [saga.HoldBack]; one line of its text, at most 200 bytes, is shown and kept
	// as Explain's is. It must not call anything not sent that was sent: see NotExecutedCodes.
	CheckResponse func(*Response) error
	// NotExecutedCodes lists the words by which this destination promises, in the JSON of an
	// answer, that it did nothing: THROTTLED. Where CheckResponse says saga.NotSent of a request
	// that writes, one of them has to be a string or number of the body, or the status has to be
	// one of NotExecuted, or 401, 403, 407, 421, 423 or 425. Otherwise it is unknown.
	NotExecutedCodes []string

	// Explain tells the words of an answer that errors show, and with them logs, the ledger and
	// `amends show`: of its result one line is shown, at most 200 bytes. The ledger keeps it, so
	// answer "" where a destination repeats personal data in its errors. Default: the message,
	// detail, error or title of a JSON answer, else its first line, or that of plain text.
	Explain func(*StatusError) string

	// Timeout bounds a request whose context has no deadline. Default: 30 s.
	Timeout time.Duration
	// ConnectTimeout bounds dialling and the TLS handshake. Default: 10 s.
	ConnectTimeout time.Duration
	// IdleTimeout closes an unused connection. Keep it below the server's own. Default: 4 s.
	IdleTimeout time.Duration
	// MaxConns bounds the connections, and so the requests in flight. Others wait; when their
	// deadline passes meanwhile they were not sent. Default: 32.
	MaxConns int

	// MaxRequest bounds a request's body in bytes. Default: 1 MiB.
	MaxRequest int
	// MaxAnswer bounds the part of an answer's body that is read. Default: 1 MiB.
	MaxAnswer int
	// MaxHeader bounds an answer's header. Default: 64 KiB.
	MaxHeader int

	// WrapTransport puts a RoundTripper of yours around the one that sends: for tracing, or for
	// OAuth where Authorize does not do. It has to send by the RoundTripper it is given, once, with
	// the request's context, method and address: see the package comment. For mTLS, TLS is enough.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// TLS configures https. It is cloned; TLS 1.2 is the least version accepted, and ALPN offers
	// HTTP/1.1 only.
	TLS *tls.Config
	// Dial opens connections: the place for an address check, a tunnel or a pinned address.
	// Default: net.Dialer. Its connections must report honestly how many bytes a failed Write took.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (o *Options) withDefaults() Options {
	d := *cmp.Or(o, new(Options))
	d.KeyHeader = cmp.Or(d.KeyHeader, "Idempotency-Key")
	d.UserAgent = cmp.Or(d.UserAgent, "amends")
	d.Timeout = cmp.Or(d.Timeout, 30*time.Second)
	d.ConnectTimeout = cmp.Or(d.ConnectTimeout, 10*time.Second)
	d.IdleTimeout = cmp.Or(d.IdleTimeout, 4*time.Second)
	d.MaxConns = cmp.Or(d.MaxConns, 32)
	d.MaxRequest = cmp.Or(d.MaxRequest, 1<<20)
	d.MaxAnswer = cmp.Or(d.MaxAnswer, 1<<20)
	d.MaxHeader = cmp.Or(d.MaxHeader, 64<<10)
	if d.NotExecuted == nil {
		d.NotExecuted = []int{http.StatusTooManyRequests}
	}
	if d.Explain == nil {
		d.Explain = explain
	}
	if d.Dial == nil {
		d.Dial = new(net.Dialer).DialContext
	}
	d.Header = d.Header.Clone()
	d.Secrets = slices.Clone(d.Secrets)
	d.NotExecuted = slices.Clone(d.NotExecuted)
	d.SavedRefusals = slices.Clone(d.SavedRefusals)
	d.NotExecutedCodes = slices.Clone(d.NotExecutedCodes)
	return d
}

// validate reports everything that is wrong, in one error.
func (o *Options) validate() error {
	var wrong faults.List
	wrong.Whenf(o.Timeout < 0, "Timeout is %v: it must not be negative", o.Timeout)
	wrong.Whenf(o.ConnectTimeout < 0, "ConnectTimeout is %v: it must not be negative", o.ConnectTimeout)
	wrong.Whenf(o.IdleTimeout < 0, "IdleTimeout is %v: it must not be negative", o.IdleTimeout)
	wrong.Whenf(o.MaxConns < 0, "MaxConns is %v: it must not be negative", o.MaxConns)
	wrong.Whenf(o.MaxRequest < 0, "MaxRequest is %v: it must not be negative", o.MaxRequest)
	wrong.Whenf(o.MaxAnswer < 0, "MaxAnswer is %v: it must not be negative", o.MaxAnswer)
	wrong.Whenf(o.MaxHeader < 0, "MaxHeader is %v: it must not be negative", o.MaxHeader)
	wrong.Whenf(!isToken(o.KeyHeader) || isReserved(o.KeyHeader),
		"KeyHeader is %q: it must be a header name that HTTP leaves to applications", o.KeyHeader)
	wrong.Whenf(!isHeaderValue(o.UserAgent), "UserAgent holds a line break or another control character")
	for _, status := range o.NotExecuted {
		wrong.Whenf(status < 300 || status > 599, "NotExecuted lists %d: only answers from 300 to 599 can say that nothing was done", status)
	}
	for _, status := range o.SavedRefusals {
		wrong.Whenf(status < 400 || status > 499 || slices.Contains(o.NotExecuted, status),
			"SavedRefusals lists %d: only a refusal, from 400 to 499, is one, and nothing that NotExecuted lists", status)
	}
	wrong.Whenf(slices.Contains(o.NotExecutedCodes, ""), "NotExecutedCodes lists an empty code")
	wrong.Whenf(len(o.NotExecutedCodes) > 0 && o.CheckResponse == nil,
		"NotExecutedCodes says what CheckResponse may call not sent, and there is no CheckResponse")
	return errors.Join(append(wrong, checkHeader("Header", o.Header, o.KeyHeader))...)
}

// checkHeader refuses what would break the framing of a request or hide its key. It never prints a
// value.
func checkHeader(field string, h http.Header, keyHeader string) error {
	var wrong faults.List
	for name, values := range h {
		switch {
		case !isToken(name):
			wrong.Whenf(true, "%s names %q, which is not a header name", field, name)
		case isReserved(name):
			wrong.Whenf(true, "%s sets %s, which the client sets itself", field, name)
		case strings.EqualFold(name, keyHeader):
			wrong.Whenf(true, "%s sets %s: give the key as Request.Key", field, name)
		case slices.ContainsFunc(values, func(v string) bool { return !isHeaderValue(v) }):
			wrong.Whenf(true, "%s: the value of %s holds a line break or another control character", field, name)
		}
	}
	return wrong.Err()
}

func isReserved(header string) bool {
	switch http.CanonicalHeaderKey(header) {
	case "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent":
		return true
	}
	return false
}

func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	}) < 0
}

func isHeaderValue(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f }) < 0
}

// parseBase reads the address that every request of a client goes to.
func parseBase(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("the base URL cannot be parsed") // its text may hold a password
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the base URL must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the base URL names no host")
	case u.User != nil:
		return nil, errors.New("the base URL holds a user or password: give credentials by Options.Authorize or Options.Header")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("the base URL holds a query or fragment: give query values by Request.Query")
	}
	return u, nil
}
