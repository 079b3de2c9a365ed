package sagahttp_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// query is a request that has no effect, although it is sent by POST.
var query = sagahttp.Request{Method: "POST", Path: "/graphql", Reads: true, Body: map[string]string{"query": "{ order { id } }"}}

// GraphQL and JSON-RPC read by POST. Such a request needs no gate and no key, is
// sent once, and goes out behind a closed gate as a GET does.
func TestQueryByPost(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL(), nil)
	ctx, gate := gated(t, nil)
	if _, err := c.Do(ctx, query); err != nil {
		t.Fatal(err)
	}
	if gate.Passed() {
		t.Error("a query passed the gate")
	}
	gate.Close()
	if _, err := c.Do(ctx, query); err != nil {
		t.Errorf("behind a closed gate: %v", err)
	}
	if _, err := c.Do(t.Context(), query); err != nil {
		t.Errorf("without a gate: %v", err)
	}
	seen := w.seen()
	if len(seen) != 3 || seen[0].method != "POST" || seen[0].body != `{"query":"{ order { id } }"}` || seen[0].header.Get("Idempotency-Key") != "" {
		t.Errorf("arrived: %+v", seen)
	}
}

// failures are all the ways in which a request gets no good answer.
func failures(t *testing.T) map[string]func() *sagahttp.Client {
	t.Helper()
	answers := func(head, body string) func() *sagahttp.Client {
		return func() *sagahttp.Client { return dial(t, answer(t, head, body).URL(), nil) }
	}
	return map[string]func() *sagahttp.Client{
		"refused connection": func() *sagahttp.Client { return dial(t, "http://"+closedPort(t), nil) },
		"cut": func() *sagahttp.Client {
			return dial(t, serve(t, func(*wire, net.Conn, arrival) bool { return false }).URL(), nil)
		},
		"cut answer": func() *sagahttp.Client {
			return dial(t, serve(t, func(_ *wire, c net.Conn, _ arrival) bool {
				say(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
				return false
			}).URL(), nil)
		},
		"no answer in time": func() *sagahttp.Client {
			over := make(chan struct{})
			w := serve(t, func(*wire, net.Conn, arrival) bool { <-over; return false })
			t.Cleanup(func() { close(over) })
			return dial(t, w.URL(), nil)
		},
		"not JSON":     answers("200 OK", "<html>"),
		"302":          answers("302 Found\r\nLocation: /", ""),
		"429":          answers("429 Too Many Requests", ""),
		"409":          answers("409 Conflict", ""),
		"412":          answers("412 Precondition Failed", ""),
		"422":          answers("422 Unprocessable", ""),
		"500":          answers("500 Internal Server Error", ""),
		"504":          answers("504 Gateway Timeout", ""),
		"cannot build": func() *sagahttp.Client { return dial(t, "http://"+closedPort(t), &sagahttp.Options{MaxRequest: 1}) },
	}
}

// patience bounds ctx where the failure is that there is no answer.
func patience(ctx context.Context, t *testing.T, failure string) context.Context {
	t.Helper()
	if failure != "no answer in time" {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// A read is never "maybe happened": whatever goes wrong with it, nothing has happened, and it may
// be done again. A refusal stays one: asking again will not help.
func TestFailedReadIsNotInDoubt(t *testing.T) {
	t.Parallel()
	for name, client := range failures(t) {
		for _, req := range []sagahttp.Request{query, {Method: "GET", Path: "/x"}} {
			t.Run(name+" "+req.Method, func(t *testing.T) {
				t.Parallel()
				if name == "cannot build" && req.Body == nil {
					t.Skip("a GET has no body that could be too large")
				}
				want := saga.Unsent
				if name == "422" || name == "409" {
					want = saga.Refused
				}
				c := client()
				req.Into = new(invoice)
				ctx, _ := gated(t, nil)
				_, err := c.Do(patience(ctx, t, name), req)
				wantClass(t, err, want)
				if strings.Contains(err.Error(), "outcome unknown") {
					t.Errorf("error %q speaks of an outcome", err)
				}
			})
		}
	}
}

// What a read says is no word about a request of the same attempt that wrote before it: neither
// "not sent" nor "refused" may undo or repeat that one.
func TestReadBehindAWriteLeavesItInDoubt(t *testing.T) {
	t.Parallel()
	for name, client := range failures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client()
			req := query
			req.Into = new(invoice)
			ctx, gate := gated(t, nil)
			if _, err := dial(t, serve(t, yes).URL(), nil).Do(ctx, post); err != nil || !gate.Passed() {
				t.Fatal(err)
			}
			_, err := c.Do(patience(ctx, t, name), req)
			wantClass(t, err, saga.Unknown)
		})
	}
}

// Nor is a second write that did not leave.
func TestUnsentBehindAWriteLeavesItInDoubt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refused connection", "cannot build"} {
		ctx, _ := gated(t, nil)
		if _, err := dial(t, serve(t, yes).URL(), nil).Do(ctx, post); err != nil {
			t.Fatal(err)
		}
		_, err := failures(t)[name]().Do(ctx, post)
		wantClass(t, err, saga.Unknown)
	}
}

// A request that says both that it reads and that it acts is refused before anything is sent.
func TestReadsContradicted(t *testing.T) {
	t.Parallel()
	c := dial(t, "http://"+closedPort(t), nil)
	for why, req := range map[string]sagahttp.Request{
		"has a key":             {Method: "POST", Reads: true, Key: "k1"},
		"a PUT that only reads": {Method: "PUT", Reads: true},
		"a PATCH that only":     {Method: "PATCH", Reads: true},
		"a DELETE that only":    {Method: "DELETE", Reads: true},
	} {
		_, err := c.Do(t.Context(), req)
		wantClass(t, err, saga.Unsent)
		if !strings.Contains(err.Error(), why) {
			t.Errorf("error %q does not contain %q", err, why)
		}
	}
}
