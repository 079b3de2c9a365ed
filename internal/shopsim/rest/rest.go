// Package rest holds the HTTP manners that the shop and the books share: JSON
// in and out, refusals with a code a program can read, and a server on a
// loopback port.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxBody is the size in bytes beyond which a request is refused.
const MaxBody = 1 << 20

// Error is the body of every answer that is not a success, and the error by
// which an endpoint refuses.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error says the refusal in one line.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Refuse makes the error by which an endpoint refuses.
func Refuse(status int, code, format string, args ...any) error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Endpoint answers one kind of request with a status and a JSON body. A nil
// body is answered without one. An *Error is answered as it says, any other
// error with status 500.
//
// The request's context is not cancelled when the caller hangs up: a real
// server does not stop half way because the caller is gone. It ends when
// [Until] says.
type Endpoint func(r *http.Request) (status int, body any, err error)

// ServeHTTP answers the request.
func (e Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := lasting(r.Context())
	defer cancel()
	status, body, err := e(r.WithContext(ctx))
	if err != nil {
		refusal := &Error{Status: http.StatusInternalServerError, Code: "internal", Message: err.Error()}
		errors.As(err, &refusal)
		status, body = refusal.Status, refusal
	}
	if body == nil {
		w.WriteHeader(status)
		return
	}
	answer, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer) // a caller that is gone is no concern of ours
}

// Read decodes the request's JSON body into v.
func Read(r *http.Request, v any) error {
	err := json.NewDecoder(io.LimitReader(r.Body, MaxBody)).Decode(v)
	if err != nil {
		return Refuse(http.StatusBadRequest, "bad_request", "the body is not the JSON expected here: %v", err)
	}
	return nil
}

type untilKey struct{}

// Until has a request take effect before a moment, or not at all.
func Until(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, untilKey{}, t)
}

// lasting is a context that goes on when the caller has gone, but not beyond what [Until] said.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	until, ok := ctx.Value(untilKey{}).(time.Time)
	if ctx = context.WithoutCancel(ctx); !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, until)
}
