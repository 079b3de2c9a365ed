package sagahttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// shopError is what the hook of these tests finds.
type shopError struct{ Code, Message string }

func (e *shopError) Error() string { return e.Code + ": " + e.Message }

// inBody reads the errors of GraphQL, of JSON-RPC and of {"ok":false}, and takes the class from the
// code.
func inBody(r *sagahttp.Response) error {
	var a struct {
		OK     *bool
		Error  json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if json.Unmarshal(r.Body, &a) != nil {
		return nil //nolint:nilerr // what is no JSON says no error
	}
	var rpc struct {
		Code    json.Number
		Message string
	}
	found := &shopError{}
	switch {
	case len(a.Errors) > 0:
		found = &shopError{a.Errors[0].Extensions.Code, a.Errors[0].Message}
	case a.OK != nil && !*a.OK:
		_ = json.Unmarshal(a.Error, &found.Code)
	case json.Unmarshal(a.Error, &rpc) == nil && rpc.Code != "":
		found = &shopError{rpc.Code.String(), rpc.Message}
	default:
		return nil
	}
	switch found.Code {
	case "BAD_USER_INPUT", "-32602", "channel_not_found":
		return saga.Permanent(found)
	case "THROTTLED", "-32005":
		return saga.HoldBack(saga.RetryAfter(2*time.Second, saga.NotSent(found)))
	case "CLOSED":
		return saga.RetryAfter(24*time.Hour, saga.NotSent(found))
	}
	return found
}

func graphQL(code, message string) string {
	return `{"data":null,"errors":[{"message":"` + message + `","extensions":{"code":"` + code + `"}}]}`
}

func rpc(code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"no"}}`, code)
}

var promised = []string{"THROTTLED", "-32005"}

// "Take errors out of a 200". What the hook finds counts, and "not sent" only where
// the answer says so; what it does not find is left to the table.
func TestErrorsInTheBody(t *testing.T) {
	t.Parallel()
	const ok = saga.Class("ok")
	for _, tc := range []struct {
		because string
		head    string
		body    string
		codes   []string
		want    saga.Class
		wait    time.Duration
		says    string
	}{
		{"no error", "200 OK", `{"data":{"id":"1"}}`, nil, ok, 0, ""},
		{"no error, and the status refuses", "422 X", `{}`, nil, saga.Refused, 0, "422"},
		{"no error, and the status says not executed", "429 X", `{}`, nil, saga.Unsent, 0, "429"},
		{"an error without a class", "200 OK", graphQL("INTERNAL", "db down"), nil, saga.Unknown, 0, "200 OK: INTERNAL: db down"},
		{"GraphQL refuses", "200 OK", graphQL("BAD_USER_INPUT", "no such SKU"), nil, saga.Refused, 0, "BAD_USER_INPUT: no such SKU"},
		{"JSON-RPC refuses", "200 OK", rpc(-32602), nil, saga.Refused, 0, "-32602: no"},
		{"JSON-RPC refuses in a 500", "500 X", rpc(-32602), nil, saga.Refused, 0, "500"},
		{"ok is false", "200 OK", `{"ok":false,"error":"channel_not_found"}`, nil, saga.Refused, 0, "channel_not_found"},
		{"less than the status says", "422 X", graphQL("INTERNAL", "half done"), nil, saga.Unknown, 0, "half done"},
		{"not executed, by its code", "200 OK", graphQL("THROTTLED", "slow down"), promised, saga.Unsent, 2 * time.Second, "slow down"},
		{"not executed, by a number", "200 OK", rpc(-32005), promised, saga.Unsent, 2 * time.Second, "-32005"},
		{"not executed, by the status", "429 X", graphQL("THROTTLED", "slow down"), nil, saga.Unsent, 2 * time.Second, ""},
		{"not executed, and no such promise", "200 OK", graphQL("THROTTLED", "slow down"), nil, saga.Unknown, 2 * time.Second, "NotExecutedCodes"},
		{"not executed, and a promise of another code", "200 OK", rpc(-32005), promised[:1], saga.Unknown, 2 * time.Second, "NotExecutedCodes"},
		{"a longer word is another", "200 OK", graphQL("CLOSED", "NOT_THROTTLED"), promised, saga.Unknown, time.Hour, "NotExecutedCodes"},
		{"a wait is capped", "200 OK", graphQL("CLOSED", "until Monday"), []string{"CLOSED"}, saga.Unsent, time.Hour, ""},
		{"a wait of the header", "200 OK\r\nRetry-After: 7", graphQL("BAD_USER_INPUT", "no"), nil, saga.Refused, 7 * time.Second, ""},
		{"who gave up is not asked", "504 X", graphQL("BAD_USER_INPUT", "no"), nil, saga.Unknown, 0, "504"},
		{"who gave up is not asked", "408 X", graphQL("THROTTLED", "no"), promised, saga.Unknown, 0, "408"},
	} {
		t.Run(tc.because, func(t *testing.T) {
			t.Parallel()
			w := answer(t, tc.head+"\r\nContent-Type: application/json", tc.body)
			ctx, _ := gated(t, nil)
			resp, err := dial(t, w.URL(), &sagahttp.Options{CheckResponse: inBody, NotExecutedCodes: tc.codes}).Do(ctx, post)
			if resp == nil || string(resp.Body) != tc.body {
				t.Errorf("the action does not see the answer: %v", resp)
			}
			if tc.want == ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantClass(t, err, tc.want)
			if _, wait := saga.Classify(err); wait != tc.wait {
				t.Errorf("wait %s, want %s", wait, tc.wait)
			}
			if !strings.Contains(err.Error(), tc.says) || sagahttp.Status(err) == 0 {
				t.Errorf("error %q does not contain %q", err, tc.says)
			}
			if doubt := strings.Contains(err.Error(), "NotExecutedCodes"); doubt != (tc.says == "NotExecutedCodes") {
				t.Errorf("error %q", err)
			}
		})
	}
}

// What the hook finds is found again by the action, except where its class does not count.
func TestFoundErrorIsInTheChain(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"INTERNAL": true, "BAD_USER_INPUT": true, "THROTTLED": true, "CLOSED": false} {
		w := answer(t, "200 OK", graphQL(code, "x"))
		_, err := dial(t, w.URL(), &sagahttp.Options{CheckResponse: inBody, NotExecutedCodes: promised}).Do(t.Context(), post)
		var found *shopError
		if errors.As(err, &found) != want || want && found.Code != code {
			t.Errorf("%s: found %v in %v", code, found, err)
		}
	}
}

// The errors of GraphQL have no data that Request.Into could take; they are no unreadable success.
func TestErrorsComeBeforeDecoding(t *testing.T) {
	t.Parallel()
	w := answer(t, "200 OK", `{"id":[],"errors":[{"message":"no","extensions":{"code":"BAD_USER_INPUT"}}]}`)
	req := post
	req.Into = new(invoice)
	_, err := dial(t, w.URL(), &sagahttp.Options{CheckResponse: inBody}).Do(t.Context(), req)
	wantClass(t, err, saga.Refused)
}

// An answer that did not come whole is not shown to the hook: it may be cut in front of its errors.
func TestHookSeesWholeAnswersOnly(t *testing.T) {
	t.Parallel()
	refuses := func(r *sagahttp.Response) error {
		return saga.Permanent(fmt.Errorf("asked about %d bytes", len(r.Body)))
	}
	for name, raw := range map[string]string{
		"too large": "HTTP/1.1 200 X\r\nContent-Length: 101\r\n\r\n" + strings.Repeat("x", 101),
		"cut":       "HTTP/1.1 200 X\r\nContent-Length: 4000\r\n\r\n" + strings.Repeat("x", 50),
		"cut 500":   "HTTP/1.1 500 X\r\nContent-Length: 4000\r\n\r\n" + strings.Repeat("x", 50),
	} {
		w := serve(t, func(_ *wire, c net.Conn, _ arrival) bool { say(c, raw); return false })
		_, err := dial(t, w.URL(), &sagahttp.Options{MaxAnswer: 100, CheckResponse: refuses}).Do(t.Context(), post)
		if class, _ := saga.Classify(err); class != saga.Unknown || strings.Contains(err.Error(), "asked about") {
			t.Errorf("%s: class %s: %v", name, class, err)
		}
	}
}

// A read needs no promise to be not sent; behind a write nothing that is said of it counts,
// "refused" neither.
func TestErrorsInTheBodyOfARead(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]saga.Class{"THROTTLED": saga.Unsent, "INTERNAL": saga.Unsent, "BAD_USER_INPUT": saga.Refused} {
		w := answer(t, "200 OK", graphQL(code, "x"))
		c := dial(t, w.URL(), &sagahttp.Options{CheckResponse: inBody})
		ctx, gate := gated(t, nil)
		_, err := c.Do(ctx, query)
		wantClass(t, err, want)
		if strings.Contains(err.Error(), "NotExecutedCodes") {
			t.Errorf("%s: %v", code, err)
		}
		if err := gate.Pass(); err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(ctx, query)
		wantClass(t, err, saga.Unknown)
	}
}

// Behind the hook's "hold back" nothing else is sent to the destination: the mark reaches the
// coordinator.
func TestHookHoldsBack(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"THROTTLED": true, "INTERNAL": false} {
		w := answer(t, "200 OK", graphQL(code, "x"))
		c := dial(t, w.URL(), &sagahttp.Options{CheckResponse: inBody, NotExecutedCodes: promised})
		d, err := saga.Define("s", 1, saga.Do("a", func(ctx context.Context, _ saga.Call[string]) (string, error) {
			_, err := c.Do(ctx, post)
			return "", err
		}).Idempotent().NoUndo("a test"))
		if err != nil {
			t.Fatal(err)
		}
		o := d.Act(t.Context(), &program.Invocation{Step: "a", Direction: saga.Forward, Attempt: 1, Input: []byte(`"x"`)})
		if o.HoldBack != want || !o.Answered || (o.RetryAfter > 0) != want {
			t.Errorf("%s: %+v", code, o)
		}
	}
}

// What the hook says is bounded as the destination's words are: one line of at most 200 bytes,
// without control characters.
func TestHookSaysOneLine(t *testing.T) {
	t.Parallel()
	w := answer(t, "200 OK", `{}`)
	_, err := dial(t, w.URL(), &sagahttp.Options{CheckResponse: func(*sagahttp.Response) error {
		return errors.New("\n one\x1b[31m " + strings.Repeat("x", 300) + "\ncanary")
	}}).Do(t.Context(), post)
	var status *sagahttp.StatusError
	if !errors.As(err, &status) || len(status.Said) > 200 || !strings.HasPrefix(status.Said, "one [31m x") {
		t.Fatalf("said %+v", status)
	}
	text, err2 := json.Marshal(status)
	if err2 != nil {
		t.Fatal(err2)
	}
	if all := fmt.Sprintf("%v %+v %#v %s", err, status, status, text); strings.Contains(all, "canary") || strings.Contains(all, "\x1b") {
		t.Errorf("printed: %s", all)
	}
}

// A promise that nothing would look at, or that every answer keeps, is told at construction.
func TestCodesAreChecked(t *testing.T) {
	t.Parallel()
	_, err := sagahttp.New("http://books.example", &sagahttp.Options{NotExecutedCodes: []string{"", "X"}})
	if err == nil || !strings.Contains(err.Error(), "an empty code") || !strings.Contains(err.Error(), "no CheckResponse") {
		t.Error(err)
	}
	codes := []string{"THROTTLED"}
	w := answer(t, "200 OK", graphQL("THROTTLED", "x"))
	c := dial(t, w.URL(), &sagahttp.Options{CheckResponse: inBody, NotExecutedCodes: codes})
	codes[0] = "changed behind its back"
	_, err = c.Do(t.Context(), post)
	wantClass(t, err, saga.Unsent)
	if sagahttp.Status(err) != http.StatusOK {
		t.Errorf("status %d", sagahttp.Status(err))
	}
}
