package outside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxBody is the size in bytes beyond which a request is refused.
const maxBody = 1 << 20

// Refusal is the body of every answer that is not a success, and the error by which a system
// refuses.
type Refusal struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error says the refusal in one line.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Refused reports whether a system refused with a code.
func Refused(err error, code string) bool {
	refusal, ok := errors.AsType[*Refusal](err)
	return ok && refusal.Code == code
}

func refuse(status int, code, format string, args ...any) error {
	return &Refusal{status, code, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, "bad_request", format, args...)
}

// asks serves a request without a body: the answer is JSON, and 204 where there is none. An error
// that is no [Refusal] is answered with 500.
func asks(do func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := do(r)
		status := http.StatusOK
		if err != nil {
			refusal := &Refusal{http.StatusInternalServerError, "internal", err.Error()}
			errors.As(err, &refusal)
			status, body = refusal.Status, refusal
		}
		if body == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // a caller that is gone is no concern of ours
	})
}

// sends serves a request with a JSON body.
func sends[T any](do func(r *http.Request, body T) (any, error)) http.Handler {
	return asks(func(r *http.Request) (any, error) {
		var body T
		if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&body); err != nil {
			return nil, badRequest("the body is not the JSON expected here: %v", err)
		}
		return do(r, body)
	})
}

// limitOf is how much a request wants on a page, most at most, and a hundred if it does not say.
func limitOf(r *http.Request, most int) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, badRequest("limit=%q is not a positive number", text)
	}
	return min(n, most), nil
}

// timeOf is a parameter that is a time; zero if it is left out.
func timeOf(r *http.Request, name string) (t time.Time, err error) {
	text := r.FormValue(name)
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return t, badRequest("%s=%q is no time like 2026-01-05T08:00:00Z", name, text)
	}
	return t, nil
}
