package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
				away, at, most, refused := false, 0, 0, 0
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
				for i := range orders { // the first ten are served
					begin(t, p, i)
					if i < 10 {
						pass(latency + time.Second)
						continue
					}
					mu.Lock()
					away = true
					mu.Unlock()
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
	served := func(t *testing.T, places, good, bad int) (took time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			act := func(_ context.Context, c saga.Call[order]) (thing, error) {
				if c.Input.Memo == "bad" {
					panic("out of range")
				}
				pass(100 * time.Millisecond)
				return thing{ID: c.Work}, nil
			}
			l := memory.New(nil)
			p := several(t, l, config{opts: coordinator.Options{MaxWorks: places}}, oneStep(t, "good", "books", act), oneStep(t, "bad", "books", act))
			synctest.Wait()
			for i := range bad {
				if _, err := p.Start(t.Context(), "bad", fmt.Sprint(i), order{Memo: "bad"}, nil); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			p.starts("good", good)
			for in(t, l, "good")[saga.Completed] < good && time.Since(began) < 5*time.Minute {
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
	for _, seed := range seeds() {
		t.Run(fmt.Sprintf("AMENDS_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			places, good, bad := 10+r.IntN(30), 50+r.IntN(100), 50+r.IntN(100)
			alone, beside := served(t, places, good, 0), served(t, places, good, bad)
			t.Logf("%d places, %d good: alone %s, beside %d %s", places, good, alone, bad, beside)
			if beside > 2*alone+5*time.Second {
				t.Errorf("%d good orders took %s beside %d that panic, and %s alone", good, beside, bad, alone)
			}
		})
	}
}

// shop is a saga of one step whose destination does what the test says, and who is served there.
type shop struct {
	mu     sync.Mutex
	away   error // nil: it serves; errHangs: it does not answer
	bad    string
	asked  []time.Time
	served []time.Time
}

func (s *shop) be(away error) { s.mu.Lock(); defer s.mu.Unlock(); s.away = away }

func (s *shop) requests() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.asked) }

// servedSince is how long after a moment one was served; an hour when none was.
func (s *shop) servedSince(at time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.served {
		if !t.Before(at) {
			return t.Sub(at)
		}
	}
	return time.Hour
}

func (s *shop) act(ctx context.Context, c saga.Call[order]) (thing, error) {
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	err := s.away
	if c.Work == s.bad {
		err = errors.New("500")
	}
	s.mu.Unlock()
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		return thing{}, ctx.Err()
	}
	pass(50 * time.Millisecond)
	if err != nil {
		return thing{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = append(s.served, time.Now())
	return thing{ID: c.Work}, nil
}

// failsWithin is how long it takes until the destination counts as failing; an hour when it does not.
func failsWithin(t *testing.T, p *process, most time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < most {
		if st, err := p.Standing(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		} else if len(st.Destinations) > 0 && st.Destinations[0].State == "failing" {
			return time.Since(began)
		}
		pass(time.Second)
	}
	return time.Hour
}

// seeds are those of which a story is told.
func seeds() (all []uint64) {
	first, n, _ := storySeeds()
	for seed := first; seed < first+max(n, 2); seed++ {
		all = append(all, seed)
	}
	return all
}

// Rule: two orders that fail without one success over a minute are an outage, however few there are, also in two processes; so are
// connections that are refused, of one order; one that only hangs is known within its timeout and thirty seconds. No attempt is used up, and
// what waited is served within ten seconds of its being back.
func TestASmallShopsOutageIsKnown(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds() {
		r := rand.New(rand.NewPCG(seed, 0))
		for name, c := range map[string]struct {
			away           error
			orders, within int // seconds
		}{
			"two orders":         {errors.New("500"), 2, 75},
			"four orders":        {errors.New("500"), 4, 75},
			"refused, one order": {saga.Unreachable(saga.NotSent(errors.New("connection refused"))), 1, 20},
			"it hangs":           {errHangs, 12, 61},
		} {
			for processes := 1; processes < 3; processes++ {
				t.Run(fmt.Sprintf("%s, %d processes, AMENDS_SEED=%d", name, processes, seed), func(t *testing.T) {
					lasts := time.Duration(150+r.IntN(3600)) * time.Second
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						l, s := memory.New(nil), &shop{}
						var ps []*process
						for range processes {
							ps = append(ps, boot(t, l, &world{}, config{opts: coordinator.Options{}, program: func(*process) saga.Program { return flat(t, s.act) }}))
						}
						synctest.Wait()
						begin(t, ps[0], 0)
						pass(10 * time.Minute)
						s.be(c.away)
						began := time.Now()
						for i := range c.orders {
							begin(t, ps[i%processes], 1+i)
						}
						if took := failsWithin(t, ps[0], 10*time.Minute); took > time.Duration(c.within)*time.Second {
							t.Errorf("it counts as failing after %s, want %ds", took, c.within)
						}
						pass(lasts - time.Since(began))
						s.be(nil)
						if took := func() time.Duration { back := time.Now(); pass(time.Minute); return s.servedSince(back) }(); took > 10*time.Second {
							t.Errorf("the first was served %s after it was back", took)
						}
						pass(5 * time.Minute)
						if got := in(t, l, "order-to-invoice"); got[saga.Completed] != 1+c.orders {
							t.Errorf("%v", got)
						}
					})
				})
			}
		}
	}
}

// Rule: one bad order alone is no outage: the destination counts as healthy, and a person is asked within two hours.
func TestOneBadOrderAloneReachesAPerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, s := memory.New(nil), &shop{bad: "o00001"}
		p := boot(t, l, &world{}, config{opts: calm(), program: func(*process) saga.Program { return flat(t, s.act) }})
		synctest.Wait()
		begin(t, p, 0)
		pass(10 * time.Minute)
		begin(t, p, 1)
		if took := failsWithin(t, p, 2*time.Hour); took < time.Hour {
			t.Errorf("the destination counts as failing after %s, for one order", took)
		}
		if got := in(t, l, "order-to-invoice"); got[saga.Review] != 1 || s.requests() > 30 {
			t.Errorf("after two hours and %d requests: %v", s.requests(), got)
		}
	})
}

// Rule: an order of which nothing ever leaves waits for longer each time, also beside others that are served all the while.
func TestWhatIsNeverSentIsNotTriedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0 // of one instance: one at a time
		act := func(_ context.Context, c saga.Call[order]) (thing, error) {
			if c.Work == "o00000" {
				tries++
				return thing{}, saga.NotSent(errors.New("no certificate"))
			}
			return thing{ID: c.Work}, nil
		}
		p := boot(t, memory.New(nil), &world{}, config{opts: calm(), program: func(*process) saga.Program { return flat(t, act) }})
		synctest.Wait()
		for i := range 600 {
			begin(t, p, i)
			pass(100 * time.Millisecond)
		}
		if tries < 3 || tries > 10 {
			t.Errorf("it was tried %d times in a minute", tries)
		}
	})
}
