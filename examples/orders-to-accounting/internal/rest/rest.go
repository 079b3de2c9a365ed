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
)

// MaxBody is the size in bytes beyond which a request is refused.
const MaxBody = 1 << 20

// Problem is the body of every answer that is not a success. It is also the
// error by which an endpoint refuses.
type Problem struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error says the refusal in one line.
func (p *Problem) Error() string { return fmt.Sprintf("%s: %s", p.Code, p.Message) }

// Refuse makes the Problem an endpoint returns.
func Refuse(status int, code, format string, args ...any) error {
	return &Problem{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Endpoint answers one kind of request with a status and a JSON body. A nil
// body is answered without one. A *Problem is answered as it says, any other
// error with status 500.
//
// The request's context is not cancelled when the caller hangs up: a real
// server does not stop half way because nobody listens any more.
type Endpoint func(r *http.Request) (status int, body any, err error)

// ServeHTTP answers the request.
func (e Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, body, err := e(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		problem := &Problem{Status: http.StatusInternalServerError, Code: "internal", Message: err.Error()}
		errors.As(err, &problem)
		status, body = problem.Status, problem
	}
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a caller that is gone is no concern of ours
}

// Read decodes the request's JSON body into v.
func Read(r *http.Request, v any) error {
	err := json.NewDecoder(io.LimitReader(r.Body, MaxBody)).Decode(v)
	if err != nil {
		return Refuse(http.StatusBadRequest, "bad_request", "the body is not the JSON expected here: %v", err)
	}
	return nil
}
