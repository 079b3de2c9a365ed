package sagahttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// Every reason at once, and no value of a header, since it may be a secret.
func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := sagahttp.New("ftp://u:canary@books.example", &sagahttp.Options{
		KeyHeader: "not a name", UserAgent: "a\nb", NotExecuted: []int{200, 999},
		Timeout: -1, ConnectTimeout: -1, IdleTimeout: -1, MaxConns: -1, MaxRequest: -1, MaxAnswer: -1, MaxHeader: -1,
		Header: http.Header{"bad name": {"x"}, "Host": {"x"}, "X-Token": {"canary\n"}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"http://", "KeyHeader", "UserAgent", "200", "999", "Timeout", "ConnectTimeout", "IdleTimeout", "MaxConns",
		"MaxRequest", "MaxAnswer", "MaxHeader", `"bad name"`, "Host", "X-Token",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %s:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error prints a secret:\n%v", err)
	}
}

func TestNewRefusesBase(t *testing.T) {
	t.Parallel()
	for base, why := range map[string]string{
		"":                            "must begin with http",
		"books.example":               "must begin with http",
		"https://":                    "names no host",
		"https://:80":                 "names no host",
		"https://u:canary@books":      "user or password",
		"https://books?token=canary":  "query",
		"https://books#canary":        "fragment",
		"https://books:canary/x":      "cannot be parsed",
		"https://u:canary@bo oks/%zz": "cannot be parsed",
	} {
		_, err := sagahttp.New(base, nil)
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: error %v, want %q", base, err, why)
		}
	}
}

// The key has one way in, and the framing of a request is not for callers.
func TestOptionsRefuseReservedHeaders(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]sagahttp.Options{
		"key in the static header": {Header: http.Header{"idempotency-key": {"k"}}},
		"key as a framing header":  {KeyHeader: "Content-Length"},
	} {
		if _, err := sagahttp.New("http://books.example", &opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A request that would not be what its author meant is refused before anything is sent.
func TestRequestIsChecked(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL()+"/api", nil)
	for _, tc := range []struct {
		req sagahttp.Request
		why string
	}{
		{sagahttp.Request{}, "method"},
		{sagahttp.Request{Method: "post"}, "method"},
		{sagahttp.Request{Method: "GET /x"}, "method"},
		{sagahttp.Request{Method: "CONNECT"}, "method"},
		{sagahttp.Request{Method: "POST", Key: "a\r\nb"}, "key"},
		{sagahttp.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}}}, "Request.Key"},
		{sagahttp.Request{Method: "POST", Header: http.Header{"Transfer-Encoding": {"chunked"}}}, "sets itself"},
		{sagahttp.Request{Method: "POST", Header: http.Header{"X": {"a\nb"}}}, "line break"},
		{sagahttp.Request{Method: "GET", Path: "/invoices?ref=5"}, "Request.Query"},
		{sagahttp.Request{Method: "GET", Path: "/invoices#5"}, "Request.Query"},
		{sagahttp.Request{Method: "GET", Path: "/invoices/../users"}, "dot segment"},
		{sagahttp.Request{Method: "GET", Path: "/invoices/%2e%2E/users"}, "dot segment"},
		{sagahttp.Request{Method: "GET", Path: "/./x"}, "dot segment"},
		{sagahttp.Request{Method: "GET", Path: sagahttp.Path("invoices", "..")}, "dot segment"},
		{sagahttp.Request{Method: "GET", Path: sagahttp.Path("invoices", "", "void")}, "is an id missing"},
		{sagahttp.Request{Method: "DELETE", Path: sagahttp.Path("invoices", "")}, "is an id missing"},
		{sagahttp.Request{Method: "DELETE", Path: sagahttp.Path("")}, "is an id missing"},
		{sagahttp.Request{Method: "GET", Path: "//169.254.169.254/x"}, "empty segment"},
		{sagahttp.Request{Method: "GET", Path: "/a b/%2F"}, "must be escaped"},
		{sagahttp.Request{Method: "GET", Path: "/ä"}, "must be escaped"},
		{sagahttp.Request{Method: "GET", Path: "/100%"}, "escapes nothing"},
		{sagahttp.Request{Method: "GET", Path: `/a%5Cb`}, "backslash"},
		{sagahttp.Request{Method: "GET", Path: "/a%0Ab"}, "control character"},
	} {
		_, err := c.Do(t.Context(), tc.req)
		if class, _ := saga.Classify(err); err == nil || class != saga.Unsent || !strings.Contains(err.Error(), tc.why) {
			t.Errorf("%s %q: error %v, want one about %q", tc.req.Method, tc.req.Path, err, tc.why)
		}
	}
	if conns, _ := w.total(); conns != 0 {
		t.Errorf("%d connections were made", conns)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL()+"/api", nil)
	for path, want := range map[string]string{
		"":                                  "/api",
		"/":                                 "/api/",
		"x":                                 "/api/x",
		"/x/":                               "/api/x/",
		sagahttp.Path("orders", "ä b/../c"): "/api/orders/%C3%A4%20b%2F..%2Fc",
		sagahttp.Path("o", "shop:10492@x"):  "/api/o/shop:10492@x",
		sagahttp.Path("o", "50%?#;,+&="):    "/api/o/50%25%3F%23%3B%2C+&=",
	} {
		if _, err := c.Do(t.Context(), sagahttp.Request{Method: "GET", Path: path}); err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		seen := w.seen()
		if got := seen[len(seen)-1].uri; got != want {
			t.Errorf("%q arrived as %q, want %q", path, got, want)
		}
	}
}

// A client is shared by all workers: requests do not mix, and the pool is not exceeded.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL(), &sagahttp.Options{MaxConns: 4})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				ctx, gate := gated(t, nil)
				if _, err := c.Do(ctx, post); err != nil || !gate.Passed() {
					t.Errorf("gate passed %v, error %v", gate.Passed(), err)
				}
			}
		})
	}
	all.Wait()
	// Four at a time. On a busy machine net/http now and then replaces one, so a few more may be
	// made in all; without the limit the sixteen callers have sixteen.
	if conns, _ := w.total(); len(w.seen()) != 320 || conns > 8 {
		t.Errorf("%d requests on %d connections, want 320 on four at a time", len(w.seen()), conns)
	}
}

// An idle connection is closed by the client, before a server would do it.
func TestIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	gone := make(chan error, 1)
	w := serve(t, func(w *wire, c net.Conn, r arrival) bool {
		yes(w, c, r)
		_, err := c.Read(make([]byte, 1))
		gone <- err
		return false
	})
	if _, err := dial(t, w.URL(), &sagahttp.Options{IdleTimeout: time.Millisecond}).Do(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gone:
		if !errors.Is(err, io.EOF) {
			t.Errorf("the connection ended with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the connection is still open")
	}
}
