package coordinator_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
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

// CORE-18: records keep the order of their chain's times, so after the database's clock was set
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

// T4, A5: the ledger's clock steps forward while an attempt is under way, or after it ended in
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

// T5: the ledger's clock steps back. What is in hand goes on as if it had not: the latest record
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
