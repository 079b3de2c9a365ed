package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
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

// What a few bad orders, a 429 and a pause must not do, by real processes with the default options.

// clerkEnv makes the test binary a clerk: a process that bills the orders of a street.
const clerkEnv = "AMENDS_TEST_CLERK"

// clerk is a clerk's main, until it is killed.
func clerk(address string) int {
	if err := runClerk(context.Background(), address); err != nil {
		fmt.Fprintln(os.Stderr, "clerk:", err)
	}
	return 1
}

func runClerk(ctx context.Context, address string) error {
	client, err := sagahttp.New(address, nil)
	if err != nil {
		return err
	}
	l, err := openLedger(ctx, os.Getenv(workerLedger))
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel)
	c, err := coordinator.New(l, &coordinator.Options{Log: log})
	if err != nil {
		return err
	}
	bill := func(ctx context.Context, s saga.Call[order]) (made thing, err error) {
		_, err = client.Do(ctx, sagahttp.Request{Method: "POST", Path: sagahttp.Path("bills", s.Work), Key: s.Key, Into: &made})
		return made, err
	}
	for name, retry := range map[string]saga.Retry{"good": {}, "bad": {Initial: 100 * time.Millisecond, Max: 5 * time.Second, Attempts: 3}} {
		d, err := saga.Define(name, 1, saga.Do("invoice", bill).Idempotent().NoUndo("none").To("books").Retry(retry))
		if err != nil {
			return err
		}
		if err := c.Register(ctx, d); err != nil {
			return err
		}
	}
	next := 0
	return runs(ctx, c, 20*time.Millisecond, func() error {
		var works []string
		if _, err := client.Do(ctx, sagahttp.Request{Method: "GET", Path: sagahttp.Path("orders", strconv.Itoa(next)), Into: &works}); err != nil {
			return err
		}
		for _, w := range works {
			name, _, _ := strings.Cut(w, "-")
			if _, err := c.Start(ctx, name, w, order{}, nil); err != nil {
				return err
			}
			next++
		}
		return nil
	})
}

// street is where orders come in, and their bills go. Clerks work in it.
type street struct {
	*arena
	mu     sync.Mutex
	orders []string
	came   map[string]time.Time
	billed map[string]time.Time
	says   func(rw http.ResponseWriter, work string) bool // an answer that is no bill
	heard  time.Time                                      // when the latest request came
}

func newStreet(t *testing.T, address string) *street {
	t.Helper()
	s := &street{
		arena: &arena{t: t, ledger: address, output: &lines{}}, came: map[string]time.Time{}, billed: map[string]time.Time{},
		says: func(http.ResponseWriter, string) bool { return false },
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{from}", func(rw http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		from, err := strconv.Atoi(r.PathValue("from"))
		if err != nil || from > len(s.orders) {
			http.Error(rw, "there are not so many", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(rw).Encode(append([]string{}, s.orders[from:]...)) // the client may be dead
	})
	mux.HandleFunc("POST /bills/{work}", func(rw http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		work := r.PathValue("work")
		if s.heard = time.Now(); s.says(rw, work) {
			return
		}
		if s.billed[work].IsZero() {
			s.billed[work] = time.Now()
		}
		_ = json.NewEncoder(rw).Encode(thing{ID: work})
	})
	s.server = httptest.NewServer(mux)
	t.Cleanup(s.server.Close)
	look, err := openLedger(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	s.look = look
	t.Cleanup(func() {
		if err := look.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// clerks starts two of them.
func (s *street) clerks() []*worker {
	s.t.Helper()
	return []*worker{s.spawn(clerkEnv), s.spawn(clerkEnv)}
}

func (s *street) order(work string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = append(s.orders, work)
	s.came[work] = time.Now()
}

// good has good orders come, one each 50 ms, for so long.
func (s *street) good(long time.Duration) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < long; <-tick.C {
		s.order(fmt.Sprintf("good-%d", len(s.orders)))
	}
}

func (s *street) answer(says func(rw http.ResponseWriter, work string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = says
}

// soon is within which time a good order is billed, on a machine that does other things, too.
const soon = 10 * time.Second

// wantSoon waits until every good order is billed and done, and tells which were not soon, counting
// from a moment where they could not have been before.
func (s *street) wantSoon(from time.Time) {
	s.t.Helper()
	s.poll(func() bool { return in(s.t, s.look, "good")[saga.Completed] == len(s.orders)-s.bad() })
	s.mu.Lock()
	defer s.mu.Unlock()
	late, longest := 0, time.Duration(0)
	for work, came := range s.came {
		if from.After(came) {
			came = from
		}
		if took := s.billed[work].Sub(came); strings.HasPrefix(work, "good") {
			if longest = max(longest, took); took > soon {
				late++
			}
		}
	}
	s.t.Logf("%d orders, the longest took %s", len(s.orders), longest)
	if late > 0 {
		s.t.Errorf("%d took longer than %s, the longest %s; the clerks said:\n%s", late, soon, longest, s.output.String())
	}
}

func (s *street) bad() (n int) {
	for _, work := range s.orders {
		if strings.HasPrefix(work, "bad") {
			n++
		}
	}
	return n
}

// onBoth plays a story on both databases.
func onBoth(t *testing.T, story func(s *street)) {
	t.Helper()
	pace.Day(t)
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); story(newStreet(t, filepath.Join(t.TempDir(), "ledger.db"))) })
	t.Run("Postgres", func(t *testing.T) { t.Parallel(); story(newStreet(t, pgtest.URL(t))) })
}

// Six orders that are at fault keep none from being billed at once, and are in review when their
// policy is spent.
func TestProcessesBillBesideBadOrders(t *testing.T) {
	onBoth(t, func(s *street) {
		s.answer(func(rw http.ResponseWriter, work string) bool {
			if !strings.HasPrefix(work, "bad") {
				return false
			}
			http.Error(rw, "it cannot be billed", http.StatusInternalServerError)
			return true
		})
		for i := range 6 {
			s.order(fmt.Sprintf("bad-%d", i))
		}
		s.clerks()
		var first time.Time
		s.poll(func() bool { // for a while there is nothing but them
			s.mu.Lock()
			defer s.mu.Unlock()
			if first.IsZero() {
				first = s.heard
			}
			return !first.IsZero() && time.Since(first) > 4*time.Second
		})
		s.good(15 * time.Second)
		s.wantSoon(time.Time{})
		// They spend an attempt when others were served since the last one, maybe by the other clerk.
		for begun := time.Now(); in(s.t, s.look, "bad")[saga.Review] < 6; s.good(time.Second) {
			if time.Since(begun) > 2*time.Minute {
				s.t.Fatalf("of six bad ones %v; the clerks said:\n%s", in(s.t, s.look, "bad"), s.output.String())
			}
		}
	})
}

// One 429 is over when it is over; and so is a pause, after all processes were killed in it.
func TestProcessesGoOnAfterA429AndAPause(t *testing.T) {
	onBoth(t, func(s *street) {
		clerks := s.clerks()
		s.good(3 * time.Second)
		s.wantSoon(s.heardFirst())
		var once sync.Once
		s.answer(func(rw http.ResponseWriter, _ string) (refused bool) {
			once.Do(func() {
				refused = true
				rw.Header().Set("Retry-After", "1")
				http.Error(rw, "too many", http.StatusTooManyRequests)
			})
			return refused
		})
		s.good(3 * time.Second)
		s.wantSoon(s.heardFirst())

		op, books := coordinator.NewOperator(s.look), coordinator.OfDestination("books")
		if err := op.PauseScope(s.t.Context(), books, anna); err != nil {
			s.t.Fatal(err)
		}
		s.good(3 * time.Second)
		s.poll(func() bool { s.mu.Lock(); defer s.mu.Unlock(); return time.Since(s.heard) > 2*time.Second })
		for _, w := range clerks {
			w.end(syscall.SIGKILL)
		}
		s.clerks()
		s.good(3 * time.Second)
		if err := op.ResumeScope(s.t.Context(), books, anna); err != nil {
			s.t.Fatal(err)
		}
		resumed := time.Now()
		s.good(5 * time.Second)
		s.wantSoon(resumed)
	})
}

// heardFirst is when the first bill was written: clerks take a while to come.
func (s *street) heardFirst() (first time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.billed {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
