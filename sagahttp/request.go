package sagahttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/amends-dev/amends/internal/program"
)

// Request is what Do sends, and what it does with the answer.
type Request struct {
	// Method is GET, POST, PUT, PATCH, DELETE or another, in capitals.
	Method string
	// Path is appended to the client's base URL, in escaped form. Use [Path] for values from
	// elsewhere.
	Path string
	// Query is sent in sorted order.
	Query url.Values
	// Reads says that the request has no effect although it is no GET: a GraphQL query, a method of
	// JSON-RPC that reads, a search by POST. It is treated as a GET is: see the package comment. It
	// has no key.
	Reads bool
	// Updates says that the request changes what an earlier revision left there, as
	// saga.Call.PreviousID names it. A 404 or 410 then means that this is gone
	// ([saga.PreviousGone]), and is no refusal.
	Updates bool
	// Undoes says that the request takes away what the step made. A 404 or 410 then means that it is not there any more: it is done.
	Undoes bool
	// Key is the idempotency key of the effect: saga.Call.Key. Empty means that no key is sent.
	Key string
	// Header is added to, and wins over, Options.Header.
	Header http.Header
	// Body is sent as JSON; a url.Values as a form; a []byte as it is. Nil sends no body. A resend
	// under the same key must carry the same bytes, so nothing in it may depend on the time or on
	// chance.
	Body any
	// Into receives the JSON of a 2xx answer. Nil decodes nothing, and so does an empty answer to a
	// write.
	Into any
}

// Path joins segments to a path, each escaped, so that a slash, a question mark or a percent sign
// within a value stays part of the value. Do refuses the path when a segment is empty, "." or "..":
// an id that is missing must not turn /invoices/{id} into /invoices/.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		if s == "" {
			s = "/" // an empty segment at the end would read as a harmless trailing slash
		} else {
			s = url.PathEscape(s)
		}
		b.WriteString(s)
	}
	return b.String()
}

// resolve returns the address of a request, or says why its path is not one.
func (c *Client) resolve(r Request) (*url.URL, error) {
	if err := checkPath(r.Path); err != nil {
		return nil, err
	}
	u := *c.base
	if r.Path != "" {
		escaped := strings.TrimSuffix(c.base.EscapedPath(), "/") + "/" + strings.TrimPrefix(r.Path, "/")
		plain, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, errors.New("the path holds a percent sign that escapes nothing: build it with sagahttp.Path")
		}
		u.Path, u.RawPath = plain, escaped
		if u.EscapedPath() != escaped {
			return nil, errors.New("the path holds characters that must be escaped: build it with sagahttp.Path")
		}
	}
	u.RawQuery = r.Query.Encode()
	return &u, nil
}

func checkPath(path string) error {
	if strings.ContainsAny(path, "?#") {
		return errors.New("the path holds a ? or #: give query values by Request.Query, and build the path with sagahttp.Path")
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		plain, _ := url.PathUnescape(s) // an error is reported by resolve
		switch {
		case s == "" && i < len(segments)-1:
			return errors.New("the path has an empty segment: is an id missing?")
		case plain == "." || plain == "..":
			return errors.New("the path has a dot segment, which would lead out of its place")
		case !isHeaderValue(plain) || strings.ContainsRune(plain, '\\'):
			return errors.New("the path holds a backslash or a control character")
		}
	}
	return nil
}

// encode returns the body's bytes and their type; nil bytes mean no body at all.
func (r Request) encode(limit int) (body []byte, contentType string, err error) {
	switch b := r.Body.(type) {
	case nil:
		return nil, "", nil
	case []byte:
		body, contentType = bytes.Clone(b), "application/octet-stream"
	case url.Values:
		body, contentType = []byte(b.Encode()), "application/x-www-form-urlencoded"
	default:
		contentType = "application/json"
		if body, err = json.Marshal(b); err != nil {
			return nil, "", fmt.Errorf("the body of type %T has no JSON form", b) // the cause may quote values
		}
	}
	if len(body) > limit {
		return nil, "", fmt.Errorf("the body has %d bytes, more than the %d that Options.MaxRequest allows", len(body), limit)
	}
	return body, contentType, nil
}

// build makes the request as it will be written, credentials included.
func (c *Client) build(ctx context.Context, r Request) (*http.Request, error) {
	if !isMethod(r.Method) {
		return nil, fmt.Errorf("the method is %q: it must be GET, POST, PUT, PATCH, DELETE or another, in capitals", r.Method)
	}
	if r.Reads && !mayRead(r.Method) {
		return nil, fmt.Errorf("a %s that only reads: Request.Reads is for queries that are sent by POST", r.Method)
	}
	if r.Reads && r.Key != "" {
		return nil, errors.New("the request only reads and has a key: a key is for an effect that must not happen twice")
	}
	if !isHeaderValue(r.Key) {
		return nil, errors.New("the key holds a line break or another control character")
	}
	if err := checkHeader("Request.Header", r.Header, c.opts.KeyHeader); err != nil {
		return nil, err
	}
	to, err := c.resolve(r)
	if err != nil {
		return nil, err
	}
	body, contentType, err := r.encode(c.opts.MaxRequest)
	if err != nil {
		return nil, err
	}
	req := &http.Request{
		Method: r.Method, URL: to, Host: to.Host, Header: c.header(r, contentType),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if err := c.authorize(ctx, req, body); err != nil {
		return nil, err
	}
	setBody(req, body)
	return req, nil
}

func (c *Client) header(r Request, contentType string) http.Header {
	h := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {c.opts.UserAgent}}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	for _, more := range []http.Header{c.opts.Header, r.Header} {
		for name, values := range more {
			h[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
		}
	}
	if r.Key != "" {
		h.Set(c.opts.KeyHeader, r.Key)
	}
	return h
}

// authorize lets the user's function see the complete request, with a body it may read, and a
// context whose gate is not the attempt's.
func (c *Client) authorize(ctx context.Context, req *http.Request, body []byte) error {
	if c.opts.Authorize == nil {
		return nil
	}
	signed := req.WithContext(program.WithGate(ctx, program.NewGate(nil)))
	signed.URL = new(url.URL)
	*signed.URL = *req.URL
	signed.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	signed.Body, _ = signed.GetBody()
	signed.ContentLength = int64(len(body))
	if err := c.opts.Authorize(signed); err != nil {
		return fmt.Errorf("no credentials: %w", err)
	}
	if !sameTarget(signed, req) {
		return errors.New("Options.Authorize changed the method or the address of the request")
	}
	req.URL, req.Header = signed.URL, signed.Header
	return nil
}

// setBody gives the request a body that can be read once. Without GetBody, and with a body that is
// not nil, the transport does not think of sending again. A POST, PUT or PATCH without a body has
// to stay without one, for its Content-Length: 0; there the connection alone holds the rule.
func setBody(req *http.Request, body []byte) {
	switch {
	case len(body) > 0:
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.ContentLength = int64(len(body))
	case req.Method == http.MethodPost, req.Method == http.MethodPut, req.Method == http.MethodPatch:
		req.Body = http.NoBody
	default:
		req.Body = spent{}
	}
}

// spent is an empty body that the transport does not recognise as empty.
type spent struct{}

func (spent) Read([]byte) (int, error) { return 0, io.EOF }
func (spent) Close() error             { return nil }

func isMethod(m string) bool {
	return m != "" && m != http.MethodConnect && m != http.MethodTrace &&
		strings.IndexFunc(m, func(r rune) bool { return r < 'A' || r > 'Z' }) < 0
}

// reads reports whether the request has no effect.
func (r Request) reads() bool { return r.Reads || isSafe(r.Method) }

// mayRead reports whether a request of the method may be one that only reads. PUT, PATCH and DELETE
// say what they do.
func mayRead(method string) bool {
	return method != http.MethodPut && method != http.MethodPatch && method != http.MethodDelete
}

func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}
