package sagahttp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// tripper is a RoundTripper of a user's.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// around returns the option for a RoundTripper that is made of the one it wraps.
func around(trip func(next http.RoundTripper, r *http.Request) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) { return trip(next, r) })
	}
}

// good are RoundTrippers as they are in use: they look, add a header, and send once.
var good = map[string]func(http.RoundTripper) http.RoundTripper{
	"tracing": around(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {}})
		r = r.Clone(ctx)
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		return next.RoundTrip(r)
	}),
	"OAuth": around(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer t")
		return next.RoundTrip(r)
	}),
	"wraps errors": around(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			return nil, fmt.Errorf("traced: %w", err)
		}
		return answer, nil
	}),
	"rewinds": around(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		return next.RoundTrip(r)
	}),
}

// A RoundTripper around the client's leaves the gate where it is: at the first byte, and shut when
// it is closed.
func TestWrappedGate(t *testing.T) {
	t.Parallel()
	for name, wrap := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, yes)
			c := dial(t, w.URL(), &sagahttp.Options{WrapTransport: wrap})
			ctx, gate := gated(t, func() error {
				if _, bytes := w.total(); bytes != 0 {
					t.Errorf("%d bytes arrived before the gate was asked", bytes)
				}
				return nil
			})
			if _, err := c.Do(ctx, post); err != nil || !gate.Passed() {
				t.Fatalf("gate passed %v, error %v", gate.Passed(), err)
			}
			if got := w.seen()[0]; got.body != `{"total":42}` || got.header.Get("Idempotency-Key") != "k1" {
				t.Errorf("arrived: %+v", got)
			}
			closed, gate := gated(t, nil)
			gate.Close()
			_, err := c.Do(closed, post)
			wantClass(t, err, saga.Unsent)
			if n := len(w.seen()); n != 1 || !errors.Is(err, program.ErrGateClosed) {
				t.Errorf("%d requests arrived: %v", n, err)
			}
			_, err = dial(t, "http://"+closedPort(t), &sagahttp.Options{WrapTransport: wrap}).Do(ctx, sagahttp.Request{Method: "GET", Body: 1})
			if class, _ := saga.Classify(err); class != saga.Unknown { // it is behind a write
				t.Errorf("class %s: %v", class, err)
			}
			fresh, _ := gated(t, nil)
			_, err = dial(t, "http://"+closedPort(t), &sagahttp.Options{WrapTransport: wrap}).Do(fresh, post)
			wantClass(t, err, saga.Unsent)
		})
	}
}

// A body that was partly sent, or may have been, is not sent again by net/http, also where the
// RoundTripper made it one that can be rewound; and a redirect stays an answer.
func TestWrappedIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, wrap := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, dropsKeptAlive)
			c := dial(t, w.URL(), &sagahttp.Options{WrapTransport: wrap})
			ctx, _ := gated(t, nil)
			if _, err := c.Do(ctx, sagahttp.Request{Method: "GET", Path: "/warm-up"}); err != nil {
				t.Fatal(err)
			}
			_, err := c.Do(ctx, post)
			wantClass(t, err, saga.Unknown)
			if seen := w.seen(); len(seen) != 2 || seen[0].conn != seen[1].conn {
				t.Errorf("the server saw %v", seen)
			}
			if strings.Contains(err.Error(), "sending it again by itself") {
				t.Errorf("the transport tried to send again: %v", err)
			}
			w = serve(t, func(_ *wire, c net.Conn, _ arrival) bool {
				return say(c, "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
			})
			_, err = dial(t, w.URL(), &sagahttp.Options{WrapTransport: wrap}).Do(ctx, post)
			wantClass(t, err, saga.Unknown)
			if sagahttp.Status(err) != 302 || len(w.seen()) != 1 {
				t.Errorf("%d requests: %v", len(w.seen()), err)
			}
		})
	}
}

// A RoundTripper that sends a second time (a retry, an answer to a challenge, a redirect) is
// stopped, on whichever connection; and what has become of the first is unknown.
func TestWrapMayNotSendTwice(t *testing.T) {
	t.Parallel()
	retries := around(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		var answer *http.Response
		for range 3 {
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
			again, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			answer = again
			_, _ = io.Copy(io.Discard, answer.Body) // so the connection is used again
			_ = answer.Body.Close()
		}
		return answer, nil
	})
	for name, keep := range map[string]bool{"same connection": true, "another connection": false} {
		w := serve(t, func(_ *wire, c net.Conn, _ arrival) bool {
			say(c, "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
			return keep
		})
		ctx, _ := gated(t, nil)
		_, err := dial(t, w.URL(), &sagahttp.Options{WrapTransport: retries}).Do(ctx, post)
		wantClass(t, err, saga.Unknown)
		if n := len(w.seen()); n != 1 || !strings.Contains(err.Error(), "a second time, which is refused") {
			t.Errorf("%s: %d requests arrived: %v", name, n, err)
		}
	}
}

// What a RoundTripper does on a way of its own cannot be watched. So no answer from there is a
// success, and no error "not sent", unless it says so itself and nothing has left.
func TestWrapOnItsOwnWay(t *testing.T) {
	t.Parallel()
	fake := func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
	}
	for _, tc := range []struct {
		because string
		trip    func(next http.RoundTripper, r *http.Request) (*http.Response, error)
		want    saga.Class
		arrived int
		says    string
	}{
		{"it has a transport of its own", func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
			own := &http.Transport{DisableKeepAlives: true}
			return own.RoundTrip(r.Clone(context.Background())) //nolint:usetesting // one that is not ours
		}, saga.Unknown, 1, "did not get this answer"},
		{"it answers from a cache", func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
			return fake(r), nil
		}, saga.Unknown, 0, "did not get this answer"},
		{"it makes an answer of an error", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			_, err := next.RoundTrip(r)
			if err == nil {
				t.Error("the server answered")
			}
			return fake(r), nil
		}, saga.Unknown, 1, "did not get this answer"},
		{"it fails", func(http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, errors.New("canary")
		}, saga.Unknown, 0, "perhaps sent, outcome unknown: the RoundTripper of Options.WrapTransport failed"},
		{"it refuses, which is not its to say", func(http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, saga.Permanent(errors.New("canary"))
		}, saga.Unknown, 0, "failed"},
		{"it says that it sent nothing", func(http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("oauth: %w", saga.NotSent(errors.New("no token\n canary")))
		}, saga.Unsent, 0, "not sent: the RoundTripper of Options.WrapTransport failed: oauth: no token"},
		{"it says that it sent nothing, and something has left", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			_, _ = next.RoundTrip(r)
			return nil, saga.NotSent(errors.New("no token"))
		}, saga.Unknown, 1, "sent, outcome unknown"},
		{"it marks an error of ours", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			_, err := next.RoundTrip(r)
			return nil, saga.NotSent(err)
		}, saga.Unknown, 1, "sent, outcome unknown"},
		{"it gives up in time", func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
			return nil, context.DeadlineExceeded
		}, saga.Unknown, 0, "the deadline passed"},
		{"it returns nothing", func(http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, nil
		}, saga.Unknown, 0, "neither an answer nor an error"},
		{"it drops the context", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			return next.RoundTrip(r.Clone(context.Background())) //nolint:usetesting // one that is not ours
		}, saga.Unsent, 0, "has to keep the context"},
		{"it goes elsewhere", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.URL.Host = "169.254.169.254"
			return next.RoundTrip(r)
		}, saga.Unsent, 0, "changed the method or the address"},
		{"it says another host", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Host = "elsewhere.example"
			return next.RoundTrip(r)
		}, saga.Unsent, 0, "changed the method or the address"},
		{"it does something else", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Method = "DELETE"
			return next.RoundTrip(r)
		}, saga.Unsent, 0, "changed the method or the address"},
	} {
		t.Run(tc.because, func(t *testing.T) {
			t.Parallel()
			cut := strings.Contains(tc.because, "error") || strings.Contains(tc.because, "left")
			w := serve(t, func(w *wire, c net.Conn, r arrival) bool { return !cut && yes(w, c, r) })
			c := dial(t, w.URL(), &sagahttp.Options{WrapTransport: around(tc.trip)})
			ctx, _ := gated(t, nil)
			resp, err := c.Do(ctx, post)
			wantClass(t, err, tc.want)
			if n := len(w.seen()); n != tc.arrived || resp != nil {
				t.Errorf("%d requests arrived, response %v", n, resp)
			}
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "canary") && tc.want != saga.Unsent {
				t.Errorf("error %q, want %q in it", err, tc.says)
			}
			fresh, _ := gated(t, nil)
			if _, err := c.Do(fresh, query); err != nil {
				wantClass(t, err, saga.Unsent) // a read is never in doubt
			}
		})
	}
}

// The errors that a RoundTripper sees, and may log, do not quote what came over the wire, as the
// client's own do not.
func TestWrapSeesNothingOfTheWire(t *testing.T) {
	t.Parallel()
	w := serve(t, func(_ *wire, c net.Conn, _ arrival) bool { say(c, "220 canary ESMTP\r\n"); return false })
	var seen error
	_, err := dial(t, w.URL(), &sagahttp.Options{WrapTransport: around(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		_, seen = next.RoundTrip(r)
		return nil, seen
	})}).Do(t.Context(), post)
	if text := fmt.Sprint(seen, err); seen == nil || strings.Contains(text, "canary") {
		t.Errorf("printed: %s", text)
	}
}

// A request that is over is not sent by a RoundTripper that comes late.
func TestWrapComesLate(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	over, late := make(chan struct{}), make(chan error)
	c := dial(t, w.URL(), &sagahttp.Options{WrapTransport: around(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		go func() {
			<-over
			_, err := next.RoundTrip(r) //nolint:bodyclose // there is no answer
			late <- err
		}()
		return nil, saga.NotSent(errors.New("no token"))
	})})
	ctx, gate := gated(t, nil)
	_, err := c.Do(ctx, post)
	wantClass(t, err, saga.Unsent)
	close(over)
	if err := <-late; err == nil || gate.Passed() || len(w.seen()) != 0 {
		t.Errorf("sent after it was over: %v", err)
	}
}

func TestWrapReturnsNone(t *testing.T) {
	t.Parallel()
	_, err := sagahttp.New("http://books.example", &sagahttp.Options{WrapTransport: func(http.RoundTripper) http.RoundTripper { return nil }})
	if err == nil || !strings.Contains(err.Error(), "WrapTransport returned no RoundTripper") {
		t.Error(err)
	}
}

// mTLS needs no RoundTripper: Options.TLS has the certificate. The two go together.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 || r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	ours := &tls.Config{RootCAs: roots, Certificates: s.TLS.Certificates}
	ctx, gate := gated(t, nil)
	if _, err := dial(t, s.URL, &sagahttp.Options{TLS: ours, WrapTransport: good["OAuth"]}).Do(ctx, post); err != nil || !gate.Passed() {
		t.Errorf("gate passed %v, error %v", gate.Passed(), err)
	}
}
