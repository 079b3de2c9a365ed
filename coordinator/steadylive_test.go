package coordinator_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// steadyEnv makes the test binary a process that sends orders to the stall at that address.
const steadyEnv = "AMENDS_TEST_STEADY"

// stall is a destination in this process, with four places. Orders are good, or hang, or make the action panic, by their names.
type stall struct {
	t      *testing.T
	at     string
	server *httptest.Server

	mu     sync.Mutex
	orders []string
	served []time.Time
	names  map[string]int
}

func (s *stall) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if strings.HasPrefix(name, "hang") {
		<-r.Context().Done()
		return
	}
	came := time.Now()
	<-time.After(50 * time.Millisecond)
	s.mu.Lock()
	s.served = append(s.served, came)
	s.names[name]++
	s.mu.Unlock()
	_, _ = fmt.Fprintf(rw, `{"id":%q}`, name)
}

// shop says where the stall is and what is wanted there, also when it is closed.
func (s *stall) shop(rw http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(rw, `["http://%s","%s"]`, s.at, strings.Join(s.orders, `","`)) // who asks may be dead
}

// opens has the stall listen, at the address that it had.
func (s *stall) opens() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.at
	if at == "" {
		at = "127.0.0.1:0"
	}
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at = l.Addr().String()
	s.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}}
	s.server.Start()
}

// orders adds so many orders of a kind.
func (s *stall) wants(kind string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.orders = append(s.orders, fmt.Sprintf("%s-%d", kind, len(s.orders)))
	}
}

// sold is how many orders were served that begin so.
func (s *stall) sold(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.names {
		if strings.HasPrefix(name, kind) {
			n++
		}
	}
	return n
}

// first is when one came after a moment that was served; zero: none was yet.
func (s *stall) first(after time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.served {
		if at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// steady is the main of a process that sends what the stall wants: two seconds for an attempt and one until it has settled, beside a step with the
// defaults, half a minute each, that is never come to.
func steady(address string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := runSteady(ctx, address); err != nil {
		fmt.Fprintln(os.Stderr, "steady:", err)
		return 1
	}
	return 0
}

func runSteady(ctx context.Context, address string) error {
	shop, err := sagahttp.New(address, nil)
	if err != nil {
		return err
	}
	defer shop.Close()
	var wanted []string
	if _, err := shop.Do(ctx, sagahttp.Request{Method: "GET", Path: "/", Into: &wanted}); err != nil {
		return err
	}
	client, err := sagahttp.New(wanted[0], nil)
	if err != nil {
		return err
	}
	defer client.Close()
	l, err := openLedger(ctx, os.Getenv(workerLedger))
	if err != nil {
		return err
	}
	defer l.Close() // the process ends
	log := logrus.New()
	log.SetLevel(logrus.FatalLevel)
	c, err := coordinator.New(l, &coordinator.Options{Log: log, MaxWorks: 20, Destinations: map[string]coordinator.Limit{"stall": {Concurrent: 4}}})
	if err != nil {
		return err
	}
	send := func(ctx context.Context, c saga.Call[order]) (made thing, err error) {
		if strings.HasPrefix(c.Work, "panic") {
			panic("out of range")
		}
		_, err = client.Do(ctx, sagahttp.Request{Method: "PUT", Path: "/" + c.Work, Key: c.Key, Into: &made})
		return made, err
	}
	d, err := saga.Define(orderSaga, 1,
		saga.Do("sell", send).Idempotent().NoUndo("the test does not look").To("stall").Timeout(2*time.Second).Settle(time.Second),
		saga.Do("never", send).Idempotent().NoUndo("the test does not look").To("stall").When(func(saga.Call[order]) bool { return false }))
	if err != nil {
		return err
	}
	if err := c.Register(ctx, d); err != nil {
		return err
	}
	started := map[string]bool{}
	return runs(ctx, c, 100*time.Millisecond, func() error {
		if _, err := shop.Do(ctx, sagahttp.Request{Method: "GET", Path: "/", Into: &wanted}); err != nil {
			return err
		}
		for _, w := range wanted[1:] {
			if started[w] {
				continue
			}
			if _, err := c.Start(ctx, orderSaga, w, order{}, nil); err == nil {
				started[w] = true
			}
		}
		return nil
	})
}

func TestSteadyOnSQLite(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	stands(t, filepath.Join(t.TempDir(), "ledger.db"))
}

func TestSteadyOnPostgres(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	stands(t, pgtest.URL(t))
}

// stands says, with real processes: an outage of which one order alone tells is known, and over when it is; what hangs or panics holds up no
// good order; and behind a kill -9 a limited destination moves when what was under way has settled, and not when the longest step that goes
// there would have.
func stands(t *testing.T, address string) {
	t.Helper()
	s := &stall{t: t, names: map[string]int{}}
	s.opens()
	defer func() { s.server.CloseClientConnections(); s.server.Close() }()
	look, err := openLedger(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close() // only looks
	shop := httptest.NewServer(http.HandlerFunc(s.shop))
	defer shop.Close()
	a := &arena{t: t, server: shop, ledger: address, look: look, output: &lines{}}
	s.wants("early", 1)
	w := a.spawn(steadyEnv)
	a.poll(func() bool { return s.sold("early") == 1 })
	s.server.CloseClientConnections()
	s.server.Close()
	s.wants("last", 1)
	op := coordinator.NewOperator(look)
	began := time.Now()
	a.poll(func() bool {
		st, err := op.Standing(t.Context(), time.Now())
		return err == nil && len(st.Destinations) > 0 && st.Destinations[0].State == "failing"
	})
	t.Logf("the outage was known after %s", time.Since(began))
	s.opens()
	back := time.Now()
	a.poll(func() bool { return !s.first(back).IsZero() })
	t.Logf("the first was served %s after it was back", s.first(back).Sub(back))

	s.wants("panic", 60)
	s.wants("hang", 6)
	s.wants("good", 60)
	began = time.Now()
	a.poll(func() bool { return s.sold("good") == 60 })
	t.Logf("60 good orders beside 60 that panic and 6 that hang: %s", time.Since(began))

	s.wants("more", 200)
	a.poll(func() bool { return s.sold("more") > 20 })
	w.end(syscall.SIGKILL)
	killed := time.Now()
	w = a.spawn(steadyEnv)
	a.poll(func() bool { return !s.first(killed).IsZero() })
	took := s.first(killed).Sub(killed)
	t.Logf("behind a kill the first was served after %s", took)
	if took > 30*time.Second { // three to settle, and three; it took a minute when the longest step was waited for
		t.Errorf("behind a kill the first was served after %s", took)
	}
	a.poll(func() bool { return s.sold("more") == 200 })
	w.end(syscall.SIGTERM)
}
