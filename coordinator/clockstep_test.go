package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// stepping is a ledger's clock that can be set.
type stepping struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (s *stepping) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

func (s *stepping) step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

// lateInvoice makes an invoice that takes effect behind the deadline of its request and before it
// has settled.
func lateInvoice(t testing.TB, made *diary) saga.Program {
	t.Helper()
	d, err := saga.Define("billing", 1,
		saga.Do("prepare", func(context.Context, saga.Call[order]) (thing, error) {
			<-time.After(9 * time.Minute)
			return thing{ID: "p"}, nil
		}).Idempotent().NoUndo("it stays").Timeout(20*time.Minute),
		saga.Do("invoice", func(ctx context.Context, c saga.Call[order]) (thing, error) {
			if err := c.Sending(); err != nil {
				return thing{}, err
			}
			time.AfterFunc(40*time.Second, func() { made.note("invoice") }) // its deadline is after 30 s, it has settled after 60
			<-ctx.Done()
			return thing{}, ctx.Err()
		}).Find(func(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
			if len(made.of("invoice")) > 0 {
				return saga.Found(thing{ID: "inv"}), nil
			}
			return saga.NotFound[thing](), nil
		}).EachRun().NoUndo("it stays").Timeout(30*time.Second).Settle(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Records keep the order of their chain's times, so after the database's clock was set
// back their times run ahead of it. The clock is not learned from them, or a lookup comes before
// the attempt has settled.
func TestTheClockIsNotLearnedFromRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock, made := &stepping{ahead: 10 * time.Minute}, &diary{}
		l := memory.New(&memory.Options{Now: clock.now})
		begun := time.Now()
		ticking := oneStep(t, "ticking", "", func(_ context.Context, c saga.Call[order]) (thing, error) {
			<-time.After(9*time.Minute + 30*time.Second + time.Duration(c.Input.Total)*50*time.Millisecond - time.Since(begun))
			return thing{ID: "x"}, nil
		})
		p := several(t, l, config{}, lateInvoice(t, made), ticking)
		pass(time.Second)
		p.starts("billing", 1)
		pass(8*time.Minute + 50*time.Second)
		p.starts("ticking", 40) // busy, with chains of the fast clock's time
		clock.step(-10 * time.Minute)
		pass(20 * time.Minute)
		if n := len(made.of("invoice")); n != 1 {
			t.Errorf("%d invoices", n)
		}
		if n := in(t, l, "billing")[saga.Completed]; n != 1 {
			t.Errorf("half an hour later: %v", in(t, l, "billing"))
		}
	})
}

// saga/A5: the ledger's clock steps forward while an attempt is under way, or after it ended in
// doubt. The lookup still comes when the attempt has settled by our own clock, so that nothing is
// made twice. It is logged.
func TestAClockThatStepsForwardSettlesNothing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{"before it ends": 10 * time.Second, "in doubt": 40 * time.Second} {
		for _, dead := range []time.Duration{0, time.Second, 10 * time.Second} { // the latter when its lease is over
			t.Run(fmt.Sprintf("%s, in another process after %s", name, dead), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					clock, made, out := &stepping{}, &diary{}, &lines{}
					l := memory.New(&memory.Options{Now: clock.now})
					cfg := config{opts: coordinator.Options{Log: out.logger()}}
					other := several(t, l, cfg, lateInvoice(t, made)) // it has heard the clock before
					p := several(t, l, cfg, lateInvoice(t, made))
					pass(time.Second)
					p.starts("billing", 1)
					pass(9*time.Minute + at)
					if dead > 0 {
						p.kill()
						pass(dead)
					}
					clock.step(10 * time.Minute)
					pass(40 * time.Minute)
					if n := len(made.of("invoice")); n != 1 {
						t.Errorf("%d invoices", n)
					}
					if n := in(t, l, "billing")[saga.Completed]; n != 1 {
						t.Errorf("afterwards: %v", in(t, l, "billing"))
					}
					if !strings.Contains(out.String(), "the ledger's clock ran ahead") {
						t.Error("the step is not in the log")
					}
					_ = other
				})
			})
		}
	}
}

// The ledger's clock steps back. What is in hand goes on as if it had not: the latest record
// and the time gone by since say how late it is. It is logged.
func TestAClockThatStepsBackFreezesNothingInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock, sent, out := &stepping{}, &diary{}, &lines{}
		l := memory.New(&memory.Options{Now: clock.now})
		act := func(_ context.Context, c saga.Call[order]) (thing, error) {
			if sent.note(c.Work) < 3 {
				return thing{}, saga.RetryAfter(4*time.Second, saga.NotSent(errTooBusy)) // less than Hold: it waits in hand
			}
			return thing{ID: "x"}, nil
		}
		p := several(t, l, config{opts: coordinator.Options{Log: out.logger()}}, oneStep(t, "billing", "", act))
		pass(time.Minute)
		p.starts("billing", 20)
		pass(time.Second)
		clock.step(-6 * time.Hour)
		pass(time.Minute)
		if n := in(t, l, "billing")[saga.Completed]; n != 20 {
			t.Errorf("a minute after the step: %v", in(t, l, "billing"))
		}
		if !strings.Contains(out.String(), "the ledger's clock stepped back") {
			t.Error("the step is not in the log")
		}
		p.kill()
	})
}

// hall is a destination whose seats are taken late, and which may lose its answers.
type hall struct {
	mu    sync.Mutex
	rng   *rand.Rand
	taken map[string]bool // by work
}

func (h *hall) take(work string, taken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken[work] = taken
}

func (h *hall) draw(n time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Duration(h.rng.Int64N(int64(n)))
}

// seats is a saga that takes a seat, rests, and pays. All is undone when that takes longer than 20 seconds.
func (h *hall) seats(t testing.TB) saga.Program {
	t.Helper()
	const timeout, settle = 2 * time.Second, 2 * time.Second
	quick := saga.Defaults{Timeout: timeout, Settle: settle, Retry: saga.Retry{Initial: 100 * time.Millisecond, Max: time.Second, Within: time.Hour}}
	take := func(ctx context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		if h.draw(3) == 0 {
			h.take(c.Work, true)
			return thing{ID: "seat-" + c.Work}, nil
		}
		time.AfterFunc(h.draw(timeout+settle), func() { h.take(c.Work, true) })
		<-ctx.Done()
		return thing{}, ctx.Err()
	}
	free := func(_ context.Context, c saga.Call[order], _ *thing) error {
		h.take(c.Work, false)
		return nil
	}
	d, err := saga.Define("seats", 1,
		saga.Deadline[order](20*time.Second, saga.Compensate),
		saga.Do("take", take).With(quick).Idempotent().UndoMaybe(free),
		saga.Delay[order]("rest", 5*time.Second),
		saga.Do("pay", func(context.Context, saga.Call[order]) (thing, error) { return thing{}, nil }).With(quick).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The ledger's clock steps forward again and again while several processes work, and leases end by it. What a twin of a
// lost attempt does late is still undone, and half a minute after the last step everything is at its end.
func TestAClockThatStepsForwardLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rng, clock := rand.New(rand.NewPCG(seed, 4)), &stepping{}                 //nolint:gosec // a seed is repeated
				h := &hall{rng: rand.New(rand.NewPCG(seed, 5)), taken: map[string]bool{}} //nolint:gosec // a seed is repeated
				l := memory.New(&memory.Options{Now: clock.now})
				var ps []*process
				for range 3 {
					ps = append(ps, several(t, l, config{}, h.seats(t)))
				}
				pass(time.Second)
				for n := range 10 {
					for i := range 6 {
						if _, err := ps[i%3].Start(t.Context(), "seats", fmt.Sprint(n, "-", i), order{}, nil); err != nil {
							t.Fatal(err)
						}
					}
					pass(time.Duration(rng.Int64N(int64(8 * time.Second))))
					clock.step(2*time.Second + time.Duration(rng.Int64N(int64(58*time.Second))))
				}
				pass(30 * time.Second)
				ended := in(t, l, "seats")
				if n := ended[saga.Completed] + ended[saga.Compensated]; n != 60 {
					t.Errorf("half a minute after the last step there are %v", ended)
				}
				heads, err := ledger.First(t.Context(), l, ledger.Filter{Saga: "seats", Limit: 100})
				if err != nil {
					t.Fatal(err)
				}
				for _, head := range heads {
					if taken := h.taken[head.ID.Work]; taken != (head.Status == saga.Completed) {
						t.Errorf("%s is %s, and the seat is taken: %t", head.ID.Work, head.Status, taken)
					}
				}
				if report, err := ledger.Check(t.Context(), l, nil); err != nil || len(report.Findings) > 0 {
					t.Errorf("check finds %+v, %v", report.Findings, err)
				}
			})
		})
	}
}
