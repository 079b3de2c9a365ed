package sagahttp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/amends-dev/amends/saga"
)

// StatusError is an answer that is not a success: by its status, or by what Options.CheckResponse
// found in it. Its text holds method, path, status, request id and one line of what the destination
// said; header and body are for the action that wants to judge by them, and are never printed.
type StatusError struct {
	Method string
	Path   string // without the base URL, a query and Options.Secrets
	Status int
	// RequestID is how the destination names this exchange in its own logs, if it says so.
	RequestID string
	// Said is one line of the answer, as Options.CheckResponse or Options.Explain tells it: at most
	// 200 bytes, without control characters.
	Said   string
	Header http.Header `json:"-"`
	// Body holds at most Options.MaxAnswer bytes.
	Body []byte `json:"-"`

	asked   string // the Retry-After, where it is longer than what is waited
	found   error  // by Options.CheckResponse, and believed
	doubted bool   // CheckResponse called it not sent, and the destination did not
	ofKey   bool   // it is about the key, and no refusal
}

// Unwrap returns what Options.CheckResponse found, for an action that looks for an error of its
// own.
func (e *StatusError) Unwrap() error { return e.found }

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s answered %d", e.Method, e.Path, e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	if e.RequestID != "" {
		text += " (request id " + e.RequestID + ")"
	}
	if e.Said != "" {
		text += ": " + e.Said
	}
	switch {
	case e.Status >= 300 && e.Status < 400:
		text += "; redirects are not followed: give the client the final address"
	case e.Status == 401 || e.Status == 403 || e.Status == 407:
		text += "; check the client's credentials"
	}
	if e.ofKey {
		text += "; that is about the key and no refusal: a request under it may have come in before, with other content. Look what that one made, " +
			"and send the same content on every attempt"
	}
	if e.asked != "" {
		text += fmt.Sprintf("; its Retry-After is %s, and %v are waited", e.asked, maxRetryAfter)
	}
	if e.doubted {
		text += "; CheckResponse calls it not sent, and nothing in the answer does: if the destination promises that by a code, " +
			"list it in Options.NotExecutedCodes"
	}
	return text
}

// GoString is Error, so that %#v does not print the body either.
func (e *StatusError) GoString() string { return e.Error() }

// Status returns the status of the answer behind err, or 0 when there was none: a lookup turns a
// 404 into "not found" by it.
func Status(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

// statusError marks an answer that is not a success with its class. found is what CheckResponse
// said of it, if anything.
func (c *Client) statusError(this call, resp *Response, found error) error {
	hidden := this.secrets()
	answer := &StatusError{
		Method: this.Method, Path: hidden.without(this.Path), Status: resp.Status,
		RequestID: requestID(resp.Header), Header: resp.Header, Body: resp.Body,
	}
	class := c.classify(resp.Status, this.Key != "")
	wait, capped := retryAfter(resp.Header, c.now())
	if capped {
		answer.asked = fmt.Sprintf("%.60q", resp.Header.Get("Retry-After"))
	}
	if this.Updates && !this.reads() && class == saga.Refused && gone(resp.Status) {
		class = saga.Gone
	}
	if found == nil {
		answer.Said = oneLine(hidden.without(c.opts.Explain(answer)))
		class = ofKey(this, answer, class, c.opts.SavedRefusals)
	} else {
		class = c.believe(this, answer, found)
		if _, asked := saga.Classify(found); asked > 0 {
			wait = min(asked, maxRetryAfter)
		}
	}
	err := this.mark(class, answer)
	if !slices.Contains(gaveUp, resp.Status) {
		err = saga.Answered(err)
	}
	if wait > 0 {
		err = saga.RetryAfter(wait, err)
	}
	if resp.Status == http.StatusTooManyRequests || resp.Status == http.StatusServiceUnavailable {
		err = saga.HoldBack(err)
	}
	return err
}

// ofKey is the class of an answer without a success to a request with a key: what says that the key came before with other content is no
// refusal, and a refusal that is saved under the key settles all requests under it.
func ofKey(this call, answer *StatusError, class saga.Class, saved []int) saga.Class {
	switch {
	case class != saga.Refused || this.Key == "":
	case speaksOfKey(answer):
		answer.ofKey = true
		return saga.Unknown
	case slices.Contains(saved, answer.Status), strings.EqualFold(answer.Header.Get("Idempotent-Replayed"), "true"):
		return saga.RefusedKey
	}
	return class
}

// gaveUp are the answers of who did not wait for the destination's own: its request may still be at
// work.
var gaveUp = []int{http.StatusRequestTimeout, statusClientClosed, http.StatusBadGateway, http.StatusGatewayTimeout}

// classify is the table of the package comment.
func (c *Client) classify(status int, keyed bool) saga.Class {
	if slices.Contains(c.opts.NotExecuted, status) {
		return saga.Unsent
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusMisdirectedRequest, http.StatusLocked, http.StatusTooEarly:
		return saga.Unsent
	case http.StatusRequestTimeout, statusClientClosed, http.StatusTooManyRequests, http.StatusPreconditionFailed:
		return saga.Unknown
	case http.StatusConflict:
		if keyed {
			return saga.Unknown
		}
	}
	if status >= 400 && status <= 499 {
		return saga.Refused
	}
	return saga.Unknown
}

// statusClientClosed is what nginx and its relatives say when they stopped waiting.
const statusClientClosed = 499

// requestID returns the destination's name for the exchange, if it looks like one.
func requestID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Correlation-Id"} {
		if id := h.Get(name); id != "" && len(id) <= 64 && strings.IndexFunc(id, notInID) < 0 {
			return id
		}
	}
	return ""
}

func notInID(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_.:", r):
		return false
	}
	return true
}

// gone reports whether a status says that the thing is not there.
func gone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }
