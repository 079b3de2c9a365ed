package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// Rule: behind an outage no more is sent than about twice what a destination bears at once, and what waited is served about as fast as it
// can be, however long it takes to answer.
func TestWhatWaitedOverwhelmsNoDestination(t *testing.T) {
	t.Parallel()
	const orders, borne = 300, 8
	for _, latency := range []time.Duration{200 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
		t.Run(latency.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				away, at, most, refused := true, 0, 0, 0
				act := func(ctx context.Context, c saga.Call[order]) (thing, error) {
					mu.Lock()
					at++
					most = max(most, at)
					over := at > borne
					out := away
					if over && !out {
						refused++
					}
					mu.Unlock()
					defer func() { mu.Lock(); defer mu.Unlock(); at-- }()
					switch {
					case out:
						return thing{}, errors.New("500")
					case over:
						pass(50 * time.Millisecond)
						return thing{}, saga.HoldBack(saga.NotSent(errors.New("503")))
					}
					pass(latency)
					return thing{ID: c.Work}, nil
				}
				l := memory.New(nil)
				p := boot(t, l, &world{}, config{opts: calm(), program: func(*process) saga.Program { return flat(t, act) }})
				synctest.Wait()
				for i := range orders {
					begin(t, p, i)
				}
				pass(10 * time.Minute)
				mu.Lock()
				away, most, refused = false, 0, 0
				mu.Unlock()
				best := time.Duration(orders/borne+1) * latency
				began := time.Now()
				for in(t, l, "order-to-invoice")[saga.Completed] < orders && time.Since(began) < 4*best+2*time.Minute {
					pass(time.Second)
				}
				t.Logf("%d at once, %d refused, done within %s; at best %s", most, refused, time.Since(began), best)
				if most > 2*borne+1 {
					t.Errorf("up to %d were at work at once, and %d are borne", most, borne)
				}
				if n := in(t, l, "order-to-invoice")[saga.Completed]; n < orders {
					t.Errorf("%d of %d are served after %s", n, orders, time.Since(began))
				}
			})
		})
	}
}

// Rule: what waits for its next try keeps no place in hand from others: a hundred good orders beside a hundred of which the action panics are
// served in about the time that they take alone, in a process with few places; and the others come to review all the same.
func TestWhoWaitsForATryKeepsNoPlace(t *testing.T) {
	t.Parallel()
	served := func(bad int) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			act := func(_ context.Context, c saga.Call[order]) (thing, error) {
				if c.Input.Memo == "bad" {
					panic("out of range")
				}
				pass(100 * time.Millisecond)
				return thing{ID: c.Work}, nil
			}
			l := memory.New(nil)
			p := several(t, l, config{opts: coordinator.Options{MaxWorks: 20}}, oneStep(t, "good", "books", act), oneStep(t, "bad", "books", act))
			synctest.Wait()
			for i := range bad {
				if _, err := p.Start(t.Context(), "bad", fmt.Sprint(i), order{Memo: "bad"}, nil); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			p.starts("good", 100)
			for in(t, l, "good")[saga.Completed] < 100 && time.Since(began) < 5*time.Minute {
				pass(100 * time.Millisecond)
			}
			took = time.Since(began)
			pass(3 * time.Hour)
			if got := in(t, l, "bad"); got[saga.Review] != bad {
				t.Errorf("three hours later: %v", got)
			}
		})
		return took
	}
	alone, beside := served(0), served(100)
	t.Logf("alone %s, beside a hundred %s", alone, beside)
	if beside > 2*alone+5*time.Second {
		t.Errorf("a hundred good orders took %s beside a hundred that panic, and %s alone", beside, alone)
	}
}
