package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// quick makes the faults that take time take little of it, except the silence,
// which is for the caller to end.
var quick = faults.Timing{Slow: 20 * time.Millisecond, Silent: time.Hour, Late: time.Minute, Retry: 1500 * time.Millisecond}

// plan leaves few requests in peace, and not every effect late.
var plan = faults.Plan{Seed: 1, Rate: 0.9}

type testServer struct {
	*faults.Injector
	url     string
	arrived func() // called when a request has arrived, before anything is done about it
	effects atomic.Int32
	done    chan time.Duration // one value for each effect: how long lookups shall not see it
}

// serve starts a server that counts what it does, behind an injector with
// the plan.
func serve(t *testing.T, timing faults.Timing) *testServer {
	t.Helper()
	s := &testServer{Injector: faults.New(plan, timing), arrived: func() {}, done: make(chan time.Duration, 100)}
	name := func(r *http.Request, body []byte) string {
		s.arrived()
		return faults.ByURL(r, body)
	}
	server, err := rest.Listen(t.Context(), s.HTTP(name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "hello" {
			t.Errorf("the handler read %q, %v", body, err)
		}
		s.effects.Add(1)
		w.Header().Set("X-Effect", "yes")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "made")
		s.done <- faults.Hidden(r.Context())
	})))
	if err != nil {
		t.Fatal(err)
	}
	s.url = server.URL
	t.Cleanup(func() {
		s.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// key finds a request whose first arrival meets this kind.
func key(t *testing.T, kind faults.Kind, late bool) string {
	t.Helper()
	for i := range 10000 {
		path := fmt.Sprintf("/%d", i)
		if f := plan.At(faults.HTTP, "POST "+path, 1); f.Kind == kind && f.Late == late {
			return path
		}
	}
	t.Fatalf("no request meets %s", kind)
	return ""
}

// reply is what a caller was told.
type reply struct {
	status int
	header http.Header
	body   string
}

// made reports whether the reply is the handler's own.
func (r reply) made() bool {
	return r.status == http.StatusCreated && r.body == "made" && r.header.Get("X-Effect") == "yes"
}

func (s *testServer) post(ctx context.Context, path string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader("hello"))
	if err != nil {
		return reply{}, err
	}
	req.GetBody = nil // the transport shall not send again by itself
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

// Each kind of fault, as a real client meets it: what it is told, and whether
// the effect happened.
func TestHTTPFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    faults.Kind
		status  int // 0: the connection is reset
		effects int32
	}{
		{faults.TooMany, http.StatusTooManyRequests, 0},
		{faults.ErrorBefore, http.StatusBadGateway, 0},
		{faults.ErrorAfter, http.StatusBadGateway, 1},
		{faults.CutBefore, 0, 0},
		{faults.CutAfter, 0, 1},
		{faults.Slow, http.StatusCreated, 1},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			t.Parallel()
			s := serve(t, quick)
			began := time.Now()
			got, err := s.post(t.Context(), key(t, c.kind, true))
			switch {
			case c.status == 0 && !errors.Is(err, syscall.ECONNRESET):
				t.Errorf("got %v, want a reset connection", err)
			case c.status != 0 && err != nil:
				t.Fatal(err)
			case got.status != c.status:
				t.Errorf("status %d, want %d", got.status, c.status)
			case c.status == http.StatusCreated && !got.made():
				t.Errorf("the late answer is %+v", got)
			case c.status == http.StatusBadGateway && strings.Contains(got.body, "made"):
				t.Errorf("the error gives the effect away: %+v", got)
			}
			if got := s.effects.Load(); got != c.effects {
				t.Errorf("%d effects, want %d", got, c.effects)
			}
			if c.kind == faults.TooMany && got.header.Get("Retry-After") != "2" {
				t.Errorf("Retry-After %q, want whole seconds, rounded up", got.header.Get("Retry-After"))
			}
			if c.kind == faults.Slow && time.Since(began) < quick.Slow {
				t.Errorf("answered after %v, want at least %v", time.Since(began), quick.Slow)
			}
			if got := s.Tally()[c.kind]; got != 1 {
				t.Errorf("the tally says %d, want 1", got)
			}
		})
	}
}

// Silence: the effect happens at once, the answer does not come before the
// caller gives up.
func TestSilence(t *testing.T) {
	t.Parallel()
	s := serve(t, quick)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.done
		cancel()
	}()
	if _, err := s.post(ctx, key(t, faults.Silent, false)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller to have given up", err)
	}
	if got := s.effects.Load(); got != 1 {
		t.Errorf("%d effects, want 1", got)
	}
}

// A caller with more patience than the silence lasts gets the true answer.
func TestSilenceEnds(t *testing.T) {
	t.Parallel()
	timing := quick
	timing.Silent = 20 * time.Millisecond
	s := serve(t, timing)
	began := time.Now()
	if got, err := s.post(t.Context(), key(t, faults.Silent, false)); err != nil || !got.made() || time.Since(began) < timing.Silent {
		t.Errorf("got %+v, %v after %v", got, err, time.Since(began))
	}
}

// What is slow happens even when the caller has left meanwhile, and no sooner.
func TestSlowOutlivesTheCaller(t *testing.T) {
	t.Parallel()
	timing := quick
	timing.Slow = 500 * time.Millisecond
	s := serve(t, timing)
	ctx, cancel := context.WithCancel(t.Context())
	var arrival time.Time
	s.arrived = func() {
		arrival = time.Now()
		cancel()
	}
	if _, err := s.post(ctx, key(t, faults.Slow, false)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the caller to have left", err)
	}
	<-s.done // the test hangs here when the effect never comes
	if took := time.Since(arrival); took < timing.Slow {
		t.Errorf("it happened after %v, want at least %v", took, timing.Slow)
	}
}

// A late effect is announced as hidden to the handler, another is not.
func TestHidden(t *testing.T) {
	t.Parallel()
	s := serve(t, quick)
	for late, want := range map[bool]time.Duration{true: quick.Late, false: 0} {
		_, _ = s.post(t.Context(), key(t, faults.CutAfter, late))
		if got := <-s.done; got != want {
			t.Errorf("late %v: hidden for %v, want %v", late, got, want)
		}
	}
}

// A key that was unlucky Patience times is served, and the rate can be turned
// down while the server runs.
func TestPeace(t *testing.T) {
	t.Parallel()
	timing := quick
	timing.Silent = time.Millisecond
	s := serve(t, timing)
	for range faults.Patience {
		_, _ = s.post(t.Context(), "/1")
	}
	if got, err := s.post(t.Context(), "/1"); err != nil || !got.made() {
		t.Errorf("after %d arrivals: %+v, %v", faults.Patience, got, err)
	}
	s.SetRate(0)
	if got, err := s.post(t.Context(), key(t, faults.CutBefore, true)); err != nil || !got.made() {
		t.Errorf("at rate 0: %+v, %v", got, err)
	}
}

// Closing the injector ends a silence.
func TestCloseEndsWaiting(t *testing.T) {
	t.Parallel()
	s := serve(t, quick)
	go func() {
		<-s.done
		s.Close()
	}()
	if got, err := s.post(t.Context(), key(t, faults.Silent, false)); err != nil || !got.made() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Rule: what would take effect after everything has settled is lost, however late a busy machine
// lets it arrive. A question is answered at any time.
func TestWhatComesTooLateIsLost(t *testing.T) {
	t.Parallel()
	made := 0
	server := httptest.NewServer(faults.New(faults.Plan{}, faults.DefaultTiming).HTTP(faults.ByURL,
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { made++ })))
	t.Cleanup(server.Close)
	settled := faults.DefaultTiming.Settled()
	for _, c := range []struct {
		method string
		late   time.Duration
		served bool
	}{
		{http.MethodPost, -time.Hour, true}, {http.MethodPost, settled, false}, {http.MethodPut, time.Hour, false}, {http.MethodGet, time.Hour, true},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(faults.GivenUp, strconv.FormatInt(time.Now().Add(-c.late).UnixMilli(), 10))
		before := made
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != c.served || (made > before) != c.served {
			t.Errorf("%s, given up %s ago: %v, served %v", c.method, c.late, err, made > before)
		}
	}
}
