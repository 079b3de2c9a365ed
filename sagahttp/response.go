package sagahttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/saga"
)

var (
	// ErrTooLarge says that the answer is a success whose body is larger than Options.MaxAnswer.
	// The effect happened.
	ErrTooLarge = errors.New("the body is larger than Options.MaxAnswer")
	// ErrNotJSON says that the answer is a success whose body is not the JSON that Request.Into
	// asked for.
	ErrNotJSON = errors.New("the body is not the JSON that was asked for")
)

// Response is an answer, read to its end.
type Response struct {
	Status int
	Header http.Header `json:"-"`
	// Body holds at most Options.MaxAnswer bytes, without a content encoding (gzip, deflate), in the charset
	// that it came in. It may be personal data: do not log it.
	Body []byte `json:"-"`
}

// String names the status only, so that printing a response does not print its body.
func (r *Response) String() string { return fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)) }

// GoString is String, for %#v.
func (r *Response) GoString() string { return r.String() }

// read takes the answer's body and judges the answer.
func (c *Client) read(this call, answer *http.Response) (*Response, error) {
	var body []byte
	decoded, encoded := reading.Plain(answer.Header, answer.Body)
	err := encoded
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(decoded, int64(c.opts.MaxAnswer)+1))
	}
	tooLarge := len(body) > c.opts.MaxAnswer
	if tooLarge {
		body = body[:c.opts.MaxAnswer]
	}
	resp := &Response{Status: answer.StatusCode, Header: answer.Header, Body: body}
	success, whole := resp.Status >= 200 && resp.Status <= 299, err == nil && !tooLarge
	if whole {
		if found := c.check(resp); found != nil {
			return resp, c.statusError(this, resp, found)
		}
	}
	switch {
	case this.Undoes && !this.reads() && gone(resp.Status) && c.classify(resp.Status, this.Key != "") == saga.Refused: // nothing is to be undone
		return resp, nil
	case !success:
		return resp, c.statusError(this, resp, nil) // the status says it all, even if the body was cut
	case encoded != nil:
		return resp, this.unusable(&sendError{state: "answered " + resp.String(), err: encoded, ours: true})
	case err != nil:
		return resp, this.unusable(&sendError{state: "answered " + resp.String() + ", but its body was cut", err: err})
	case tooLarge:
		return resp, this.unusable(&sendError{state: "answered " + resp.String(), err: ErrTooLarge, ours: true})
	case this.Into != nil && !this.reads() && len(bytes.TrimSpace(body)) == 0: // done, without a word
	case this.Into != nil:
		if err := decode(resp, this.Into); err != nil {
			return resp, this.unusable(&sendError{state: "answered " + resp.String(), err: fmt.Errorf("%w: %w", ErrNotJSON, err), ours: true})
		}
	}
	return resp, nil
}

// decode reads the JSON of an answer. Its error quotes none of it.
func decode(resp *Response, into any) error {
	text, err := reading.Text(resp.Header.Get("Content-Type"), resp.Body)
	if err != nil {
		return err
	}
	return reading.Into(text, into)
}

// unusable is a success whose body cannot be used: of class unknown, so that it is not taken for a
// refusal.
func (c call) unusable(err *sendError) error {
	err.request = c.Request
	return c.mark(saga.Unknown, err)
}
