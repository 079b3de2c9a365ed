package sagahttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

var post = sagahttp.Request{Method: "POST", Path: "/invoices", Key: "k1", Body: map[string]int{"total": 42}}

// protocol.md §4: "provably not sent: refused connection, DNS, TLS". The gate has not been passed
// either.
func TestNotSentBeforeTheGate(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(*wire, net.Conn, arrival) bool {
		t.Error("a request arrived at the server without TLS")
		return false
	})
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request arrived behind a certificate that is not trusted")
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it reports the failed handshakes
	secure.StartTLS()
	t.Cleanup(secure.Close)

	for _, tc := range []struct {
		name string
		base string
		opts *sagahttp.Options
		req  sagahttp.Request
		says string
	}{
		{"refused connection", "http://" + closedPort(t), nil, post, "refused"},
		{"refused connection, TLS", "https://" + closedPort(t), nil, post, "refused"},
		{"unknown name", "http://books.invalid", &sagahttp.Options{Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
		}}, post, "no such host"},
		{"certificate not trusted", secure.URL, nil, post, "certificate"},
		{"server does not speak TLS", "https://" + plain.Addr().String(), &sagahttp.Options{ConnectTimeout: time.Second}, post, ""},
		{"request cannot be built", plain.URL(), nil, sagahttp.Request{Method: "POST", Body: func() {}}, "no JSON form"},
		{"no credentials", plain.URL(), &sagahttp.Options{Authorize: func(*http.Request) error {
			return errors.New("token server is down")
		}}, post, "token server is down"},
		{"credentials for another place", plain.URL(), &sagahttp.Options{Authorize: func(r *http.Request) error {
			r.URL.Host = "169.254.169.254"
			return nil
		}}, post, "changed the method or the address"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, gate := gated(t, nil)
			_, err := dial(t, tc.base, tc.opts).Do(ctx, tc.req)
			wantClass(t, err, saga.Unsent)
			if gate.Passed() {
				t.Error("the gate was passed, but nothing was sent")
			}
			if text := err.Error(); !strings.Contains(text, "not sent") || !strings.Contains(text, tc.says) {
				t.Errorf("error %q should contain %q and %q", text, "not sent", tc.says)
			}
		})
	}
}

// protocol.md §4: "a gate that flips at the first byte out": not by dialling, not by the TLS
// handshake.
func TestGateIsPassedAtTheFirstByte(t *testing.T) {
	t.Parallel()
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		w := serve(t, yes)
		asked := 0
		ctx, gate := gated(t, func() error {
			asked++
			if _, bytes := w.total(); bytes != 0 {
				t.Errorf("%d bytes arrived before the gate was asked", bytes)
			}
			return nil
		})
		if _, err := dial(t, w.URL(), nil).Do(ctx, post); err != nil {
			t.Fatal(err)
		}
		if !gate.Passed() || asked != 1 {
			t.Errorf("gate passed: %v, asked %d times; want true and once", gate.Passed(), asked)
		}
	})
	t.Run("https", func(t *testing.T) {
		t.Parallel()
		shaken := make(chan struct{})
		base, roots := serveTLS(t, shaken)
		ctx, gate := gated(t, func() error {
			select {
			case <-shaken: // would never come if the handshake itself stood at the gate
				return nil
			case <-time.After(5 * time.Second):
				return errors.New("asked during the handshake")
			}
		})
		if _, err := dial(t, base, &sagahttp.Options{TLS: &tls.Config{RootCAs: roots}}).Do(ctx, post); err != nil {
			t.Fatal(err)
		}
		if !gate.Passed() {
			t.Error("the gate was not passed")
		}
	})
	t.Run("large body", func(t *testing.T) {
		t.Parallel()
		w := serve(t, yes)
		asked := 0
		ctx, _ := gated(t, func() error { asked++; return nil })
		req := sagahttp.Request{Method: "POST", Body: make([]byte, 900_000)}
		if _, err := dial(t, w.URL(), nil).Do(ctx, req); err != nil {
			t.Fatal(err)
		}
		if asked != 1 || len(w.seen()[0].body) != 900_000 {
			t.Errorf("the gate was asked %d times for a body of many writes, want once", asked)
		}
	})
}

// protocol.md §4: behind a closed gate nothing leaves: the server sees not one byte.
func TestClosedGate(t *testing.T) {
	t.Parallel()
	lease := errors.New("the lease is in question")
	for _, tc := range []struct {
		name  string
		admit func() error
		close bool
		want  error
	}{
		{"closed", nil, true, program.ErrGateClosed},
		{"refuses", func() error { return lease }, false, lease},
	} {
		for _, req := range []sagahttp.Request{post, {Method: "POST", Key: "k1"}, {Method: "DELETE", Key: "k1"}} {
			t.Run(fmt.Sprintf("%s, %s %v", tc.name, req.Method, req.Body), func(t *testing.T) {
				t.Parallel()
				w := serve(t, yes)
				ctx, gate := gated(t, tc.admit)
				if tc.close {
					gate.Close()
				}
				_, err := dial(t, w.URL(), nil).Do(ctx, req)
				wantClass(t, err, saga.Unsent)
				if !errors.Is(err, tc.want) {
					t.Errorf("error %v does not wrap %v", err, tc.want)
				}
				if gate.Passed() {
					t.Error("the gate counts as passed")
				}
				w.drain()
				if _, bytes := w.total(); bytes != 0 {
					t.Errorf("the server saw %d bytes, want none", bytes)
				}
			})
		}
	}
}

// A kept-alive connection belongs to the request it serves, so its gate is the newest one.
func TestClosedGateOnKeptAliveConnection(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL(), nil)
	open, _ := gated(t, nil)
	if _, err := c.Do(open, post); err != nil {
		t.Fatal(err)
	}
	closed, gate := gated(t, nil)
	gate.Close()
	_, err := c.Do(closed, post)
	wantClass(t, err, saga.Unsent)
	if conns, _ := w.total(); conns != 1 {
		t.Fatalf("%d connections, want the second request to use the first one's", conns)
	}
	w.drain()
	if n := len(w.seen()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
}

// Reading has no effect, so a lookup inside an action leaves the gate for the request that has one.
func TestReadingDoesNotPassTheGate(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL(), nil)
	ctx, gate := gated(t, nil)
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		if _, err := c.Do(ctx, sagahttp.Request{Method: method}); err != nil {
			t.Fatal(err)
		}
	}
	if gate.Passed() {
		t.Error("reading passed the gate")
	}
	if _, err := c.Do(ctx, sagahttp.Request{Method: "DELETE"}); err != nil || !gate.Passed() {
		t.Errorf("writing did not pass the gate (error %v)", err)
	}
}

// A token that Authorize fetches is not the effect.
func TestAuthorizeDoesNotPassTheGate(t *testing.T) {
	t.Parallel()
	tokens, books := serve(t, yes), serve(t, yes)
	fetch := dial(t, tokens.URL(), nil)
	ctx, gate := gated(t, nil)
	passed := false
	c := dial(t, books.URL(), &sagahttp.Options{Authorize: func(r *http.Request) error {
		_, err := fetch.Do(r.Context(), sagahttp.Request{Method: "POST", Path: "/token"})
		passed = gate.Passed()
		r.Header.Set("Authorization", "Bearer t")
		return err
	}})
	if _, err := c.Do(ctx, post); err != nil {
		t.Fatal(err)
	}
	if passed || len(tokens.seen()) != 1 {
		t.Error("fetching a token passed the gate of the effect")
	}
	if got := books.seen()[0]; got.header.Get("Authorization") != "Bearer t" || got.body != `{"total":42}` {
		t.Errorf("arrived with credentials %q and body %q", got.header.Get("Authorization"), got.body)
	}
}

// "A request's first byte leaves before its recorded deadline or never".
func TestDeadlineBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	t.Run("already past", func(t *testing.T) {
		t.Parallel()
		w := serve(t, yes)
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		_, err := dial(t, w.URL(), nil).Do(ctx, post)
		wantClass(t, err, saga.Unsent)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v does not wrap context.DeadlineExceeded", err)
		}
		w.drain()
		if _, bytes := w.total(); bytes != 0 {
			t.Errorf("%d bytes arrived", bytes)
		}
	})
	t.Run("while waiting for a connection", func(t *testing.T) {
		t.Parallel()
		arrived, release := make(chan struct{}), make(chan struct{})
		w := serve(t, func(w *wire, c net.Conn, r arrival) bool {
			close(arrived)
			<-release
			return yes(w, c, r)
		})
		c := dial(t, w.URL(), &sagahttp.Options{MaxConns: 1})
		var first sync.WaitGroup
		first.Go(func() {
			if _, err := c.Do(t.Context(), post); err != nil {
				t.Error(err)
			}
		})
		<-arrived
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := c.Do(ctx, post)
		wantClass(t, err, saga.Unsent)
		close(release)
		first.Wait()
		if n := len(w.seen()); n != 1 {
			t.Errorf("the server saw %d requests, want 1", n)
		}
	})
}

// closedPort returns an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// serveTLS answers every request, and closes shaken when the first handshake is complete.
func serveTLS(t *testing.T, shaken chan struct{}) (base string, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if tc, ok := c.(*tls.Conn); ok && state == http.StateNew {
			go func() {
				if tc.HandshakeContext(t.Context()) == nil {
					close(shaken)
				}
			}()
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.URL, roots
}
