package sagahttp_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// dropsKeptAlive answers the first request, and closes the kept-alive connection after it has read
// the second one: the case in which a client cannot know whether its request was executed.
func dropsKeptAlive(_ *wire, c net.Conn, r arrival) bool {
	return r.n != 2 && yes(nil, c, r)
}

// protocol.md §7: the client "retries nothing: one armed attempt, one send". It says too which of
// the two guards held: the transport that does not try, or the connection that refuses.
func TestDroppedKeepAliveIsSentOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		header  string
		resends bool // the transport tries to, and the connection refuses
		req     sagahttp.Request
	}{
		{"POST with a body", "", false, sagahttp.Request{Method: "POST", Key: "k1", Body: map[string]int{"total": 42}}},
		{"POST without a body", "", true, sagahttp.Request{Method: "POST", Key: "k1"}},
		{"PUT without a body, other key header", "X-Idempotency-Key", true, sagahttp.Request{Method: "PUT", Key: "k1"}},
		{"DELETE", "", false, sagahttp.Request{Method: "DELETE", Key: "k1"}},
		{"GET", "", false, sagahttp.Request{Method: "GET"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, dropsKeptAlive)
			c := dial(t, w.URL(), &sagahttp.Options{KeyHeader: tc.header})
			ctx, _ := gated(t, nil)
			if _, err := c.Do(ctx, sagahttp.Request{Method: "GET", Path: "/warm-up"}); err != nil {
				t.Fatal(err)
			}
			tc.req.Path = "/invoices"
			_, err := c.Do(ctx, tc.req)
			says, class := "sent, outcome unknown", saga.Unknown
			if tc.req.Method == http.MethodGet {
				says, class = "a read without an answer", saga.Unsent
			}
			wantClass(t, err, class)

			seen := w.seen()
			if len(seen) != 2 || seen[0].conn != seen[1].conn {
				t.Fatalf("the server saw %d requests, want the warm-up and one send on the same connection: %v", len(seen), seen)
			}
			if text := err.Error(); !strings.Contains(text, says) {
				t.Errorf("error %q does not say %q", text, says)
			} else if tried := strings.Contains(text, "sending it again by itself is refused"); tried != tc.resends {
				t.Errorf("the transport tried to send again: %v, want %v", tried, tc.resends)
			}
		})
	}
}

// The test above can fail: Go's own client sends the same request twice.
func TestGoSendsTwiceOnDroppedKeepAlive(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"total":42}`, ""} {
		w := serve(t, dropsKeptAlive)
		client := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(client.CloseIdleConnections)
		for range 2 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL(), bytes.NewReader([]byte(body)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "k1")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		if n := len(w.seen()); n != 3 {
			t.Errorf("body %q: the server saw %d requests; this Go no longer re-sends, so the guard can be reviewed", body, n)
		}
	}
}

// protocol.md §7: no redirect is followed, whatever the status and the method; what it means for a
// POST is not provable.
func TestRedirectIsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"} {
		for method, class := range map[string]saga.Class{"POST": saga.Unknown, "GET": saga.Unsent} {
			t.Run(method+" "+status, func(t *testing.T) {
				t.Parallel()
				w := serve(t, func(_ *wire, c net.Conn, _ arrival) bool {
					return say(c, "HTTP/1.1 "+status+"\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
				})
				_, err := dial(t, w.URL(), nil).Do(t.Context(), sagahttp.Request{Method: method, Path: "/invoices"})
				wantClass(t, err, class)
				if n := len(w.seen()); n != 1 {
					t.Errorf("the server saw %d requests, want 1", n)
				}
			})
		}
	}
}

// The request on the wire is the one that was asked for.
func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		opts  sagahttp.Options
		req   sagahttp.Request
		uri   string
		body  string
		wants map[string]string
	}{
		{
			name: "JSON with a key",
			req:  sagahttp.Request{Method: "POST", Path: "/invoices", Key: "k1", Body: map[string]int{"total": 42}},
			uri:  "/api/invoices", body: `{"total":42}`,
			wants: map[string]string{
				"Idempotency-Key": "k1", "Content-Type": "application/json", "Content-Length": "12",
				"User-Agent": "amends", "Accept": "application/json", "Accept-Encoding": "identity", "Transfer-Encoding": "",
			},
		},
		{
			name: "form, names of our own",
			opts: sagahttp.Options{KeyHeader: "X-Ref", UserAgent: "shop-sync", Header: http.Header{"x-token": {"t"}, "Accept": {"a"}}},
			req: sagahttp.Request{Method: "PATCH", Path: "orders", Key: "k2", Query: url.Values{"b": {"2"}, "a": {"1"}},
				Body: url.Values{"z": {"1"}, "a": {"2"}}, Header: http.Header{"accept": {"b"}}},
			uri: "/api/orders?a=1&b=2", body: "a=2&z=1",
			wants: map[string]string{
				"X-Ref": "k2", "Idempotency-Key": "", "User-Agent": "shop-sync", "X-Token": "t", "Accept": "b",
				"Content-Type": "application/x-www-form-urlencoded",
			},
		},
		{
			name:  "bytes as they are",
			req:   sagahttp.Request{Method: "PUT", Path: "/x/", Body: []byte("<a/>"), Header: http.Header{"Content-Type": {"text/xml"}}},
			uri:   "/api/x/",
			body:  "<a/>",
			wants: map[string]string{"Content-Type": "text/xml", "Idempotency-Key": ""},
		},
		{
			name:  "POST without a body says so",
			req:   sagahttp.Request{Method: "POST", Path: "/invoices/5/void", Key: "k3"},
			uri:   "/api/invoices/5/void",
			wants: map[string]string{"Content-Length": "0", "Content-Type": "", "Transfer-Encoding": ""},
		},
		{
			name:  "DELETE without a body",
			req:   sagahttp.Request{Method: "DELETE", Path: sagahttp.Path("a/b", "c?d", "e%2f"), Key: "k4"},
			uri:   "/api/a%2Fb/c%3Fd/e%252f",
			wants: map[string]string{"Content-Type": "", "Transfer-Encoding": ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, yes)
			if _, err := dial(t, w.URL()+"/api/", &tc.opts).Do(t.Context(), tc.req); err != nil {
				t.Fatal(err)
			}
			got := w.seen()[0]
			if got.uri != tc.uri || got.body != tc.body || got.method != tc.req.Method {
				t.Errorf("got %s %s with body %q, want %s with %q", got.method, got.uri, got.body, tc.uri, tc.body)
			}
			for name, want := range tc.wants {
				if v := strings.Join(got.header[name], ","); v != want {
					t.Errorf("header %s is %q, want %q", name, v, want)
				}
			}
		})
	}
}
