package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// counter is a destination that counts the requests that are at work there. It finishes what it has
// begun, whatever has become of the process that asked.
type counter struct {
	mu    sync.Mutex
	until []time.Time // each request that arrived is at work
	at    []time.Time // it arrived
	most  int         // at the same time
	one   bool        // one at a time is borne
}

// arrive begins a request that is at work for so long.
func (c *counter) arrive(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, n := time.Now(), 1
	for _, until := range c.until {
		if until.After(now) {
			n++
		}
	}
	c.most = max(c.most, n)
	c.until, c.at = append(c.until, now.Add(d)), append(c.at, now)
}

// cut begins a request that is not awaited, and at work for so long. It counts where a limit of one is kept: of a greater one such
// requests hold a part.
func (c *counter) cut(d time.Duration) {
	if c.one {
		c.arrive(d)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Now())
}

// times are when requests arrived.
func (c *counter) times() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.at)
}

// worst is how many were at work at the same time, at most.
func (c *counter) worst() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// shareTimeout and shareSettle are those of the steps here: a request is at work for no longer than
// both.
const (
	shareTimeout = 3 * time.Second
	shareSettle  = 5 * time.Second
)

// limitedStep is a step that takes half a second, behind a send gate that a dead process does not
// pass. One of ten is cut off, and goes on at the destination.
func limitedStep(p *process, name, to string, c *counter, cuts bool) saga.Step[order] {
	return saga.Do(name, func(ctx context.Context, call saga.Call[order]) (thing, error) {
		if err := call.Sending(); err != nil || p.isDead() {
			return thing{}, errors.Join(err, errDead)
		}
		if cuts && rand.IntN(10) == 0 {
			c.cut(shareTimeout + shareSettle - time.Second)
			return thing{}, errors.New("the connection was cut")
		}
		c.arrive(500 * time.Millisecond)
		<-time.After(500 * time.Millisecond)
		return thing{ID: call.Work}, nil
	}).Idempotent().NoUndo("it stays").To(to).Timeout(shareTimeout).Settle(shareSettle).
		Retry(saga.Retry{Initial: 500 * time.Millisecond, Max: 2 * time.Second, Attempts: 1000})
}

// sharing boots a process that knows the given versions of a saga with three steps at a limited
// destination.
func sharing(t *testing.T, l ledger.Ledger, limit coordinator.Limit, c *counter, cuts bool, versions ...int) *process {
	t.Helper()
	o := quick()
	o.Destinations = map[string]coordinator.Limit{"books": limit}
	return boot(t, l, &world{}, config{opts: o, program: func(p *process) saga.Program {
		var all []saga.Program
		for _, v := range versions {
			d, err := saga.Define("sync", v, limitedStep(p, "one", "books", c, cuts), limitedStep(p, "two", "books", c, cuts), limitedStep(p, "three", "books", c, cuts))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		if err := p.Register(t.Context(), all[1:]...); err != nil {
			t.Fatal(err)
		}
		return all[0]
	}})
}

// "Limits hold for all processes of a ledger": three processes, of which one is killed or stopped
// every few seconds and another comes, never await more than the limit at once, and what dead ones had under way counts; although
// every tenth request goes on when its connection has been cut; and everything ends.
func TestALimitHoldsForAllProcesses(t *testing.T) {
	t.Parallel()
	for _, limit := range []coordinator.Limit{{Concurrent: 1}, {Concurrent: 2}, {Concurrent: 7}} {
		t.Run(fmt.Sprintf("%d at a time", limit.Concurrent), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, c := memory.New(nil), &counter{one: limit.Concurrent == 1}
				var ps []*process
				for range 3 {
					ps = append(ps, sharing(t, l, limit, c, true, 1))
				}
				ps[0].starts("sync", 60)
				for i := range 30 {
					pass(time.Duration(1+rand.IntN(40)) * time.Second)
					if old := ps[i%3]; i%2 == 0 {
						old.kill()
					} else if err := old.halt(); err != nil {
						t.Error(err)
					}
					ps[i%3] = sharing(t, l, limit, c, true, 1)
				}
				for end := time.Now().Add(2 * time.Hour); in(t, l, "sync")[saga.Completed] < 60 && time.Now().Before(end); {
					pass(time.Minute)
				}
				if c.worst() > limit.Concurrent {
					t.Errorf("%d requests were at work at once, of at most %d", c.worst(), limit.Concurrent)
				}
				if got := in(t, l, "sync"); got[saga.Completed] != 60 {
					t.Errorf("of 60: %v", got)
				}
				ledgertest.MustCheck(t, l)
			})
		})
	}
}

// A rate is shared, too: what three processes send together never exceeds it, and comes up to it
// once each has its part.
func TestARateHoldsForAllProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, c, limit := memory.New(nil), &counter{}, coordinator.Limit{PerSecond: 6, Burst: 3}
		p := sharing(t, l, limit, c, false, 1)
		pass(time.Second)
		p.starts("sync", 400)
		pass(5 * time.Second)
		sharing(t, l, limit, c, false, 1)
		pass(20 * time.Second)
		sharing(t, l, limit, c, false, 1)
		pass(time.Minute)
		begun := time.Now()
		pass(time.Minute)
		spaced(t, c.times(), limit)
		n := 0
		for _, at := range c.times() {
			if at.After(begun) {
				n++
			}
		}
		if n < 6*60*9/10 {
			t.Errorf("%d requests in a minute, at six a second", n)
		}
		p.kill()
		pass(10 * time.Minute)
		spaced(t, c.times(), limit)
		if got := in(t, l, "sync"); got[saga.Completed] != 400 {
			t.Errorf("of 400: %v", got)
		}
	})
}

// Where one process at a time has the limit, those that know other definitions take turns: through
// a rolling deploy neither the older version's works wait for ever, nor the newer one's.
func TestALimitIsSharedByVersions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, c, limit := memory.New(nil), &counter{}, coordinator.Limit{Concurrent: 1}
		older := sharing(t, l, limit, c, false, 1)
		pass(time.Second)
		older.starts("sync", 20)
		pass(5 * time.Second)
		newer := sharing(t, l, limit, c, false, 2)
		pass(time.Second)
		for i := range 20 {
			if _, err := newer.Start(t.Context(), "sync", fmt.Sprintf("n%05d", i), order{Total: i}, nil); err != nil {
				t.Fatal(err)
			}
		}
		pass(40 * time.Second)
		if got := in(t, l, "sync"); got[saga.Completed] < 10 {
			t.Errorf("after forty seconds: %v", got)
		}
		pass(10 * time.Minute)
		if got := in(t, l, "sync"); got[saga.Completed] != 40 || c.worst() > 1 {
			t.Errorf("of 40: %v; %d at once", got, c.worst())
		}
	})
}

// A process that stops leaves its part at once: a deploy of one process with Concurrent: 1 costs no
// settle time.
func TestAStopLeavesTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, c, limit := memory.New(nil), &counter{}, coordinator.Limit{Concurrent: 1}
		p := sharing(t, l, limit, c, false, 1)
		pass(time.Second)
		p.starts("sync", 50)
		pass(4 * time.Second)
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		n, stopped := len(c.times()), time.Now()
		sharing(t, l, limit, c, false, 1)
		for len(c.times()) == n && time.Since(stopped) < time.Minute {
			pass(100 * time.Millisecond)
		}
		if took := time.Since(stopped); took > time.Second+quick().Poll {
			t.Errorf("the next process sent after %s", took)
		}
	})
}

// The part of a process that was killed passes on when what it sent is no longer at work, also to a
// process that knows none of its steps, and whose own take less long.
func TestALimitHoldsForStepsThatTakeLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, c := memory.New(nil), &counter{}
		o := quick()
		o.Destinations = map[string]coordinator.Limit{"books": {Concurrent: 1}}
		slow := boot(t, l, &world{}, config{opts: o, program: func(p *process) saga.Program {
			d, err := saga.Define("slow", 1, saga.Do("one", func(ctx context.Context, call saga.Call[order]) (thing, error) {
				if err := call.Sending(); err != nil || p.isDead() {
					return thing{}, errors.Join(err, errDead)
				}
				c.arrive(50 * time.Second)
				<-ctx.Done()
				return thing{ID: call.Work}, nil
			}).Idempotent().NoUndo("it stays").To("books").Timeout(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}})
		pass(time.Second)
		slow.starts("slow", 1)
		pass(time.Second)
		next := sharing(t, l, coordinator.Limit{Concurrent: 1}, c, false, 1)
		slow.kill()
		next.starts("sync", 5)
		pass(10 * time.Minute)
		if c.worst() > 1 {
			t.Errorf("%d requests were at work at once", c.worst())
		}
		if got := in(t, l, "sync"); got[saga.Completed] != 5 {
			t.Errorf("%v", got)
		}
	})
}

// Rule: behind a kill a limited destination is served again when what was under way has settled, also where a start of the same instance is
// asking the ledger when it is claimed, and not when the longest step that goes there would have.
func TestAKillBesideRepeatedStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, c := memory.New(nil), &counter{}
		o := quick()
		o.Destinations = map[string]coordinator.Limit{"books": {Concurrent: 1}}
		program := func(p *process) saga.Program {
			never := saga.Do("never", func(context.Context, saga.Call[order]) (thing, error) { return thing{}, nil }).Idempotent().NoUndo("it is left out").
				To("books").Timeout(time.Hour).When(func(saga.Call[order]) bool { return false })
			d, err := saga.Define("sync", 1, limitedStep(p, "one", "books", c, false), never)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		first := boot(t, l, &world{}, config{opts: o, program: program})
		pass(time.Second)
		first.starts("sync", 3)
		pass(600 * time.Millisecond)
		var next *process
		hook := &hooked{append: func(_ context.Context, es []ledger.Entry) error {
			if es[0].Record.Seq == 1 {
				pass(time.Second)
			}
			return nil
		}}
		var once sync.Once
		booted := make(chan struct{})
		hook.load = func(ids []saga.ID) {
			once.Do(func() {
				for _, id := range ids {
					go func() { <-booted; _, _ = next.Start(t.Context(), id.Saga, id.Work, order{}, nil) }()
				}
				pass(100 * time.Millisecond)
			})
		}
		first.kill()
		killed, n := time.Now(), len(c.times())
		several(t, l, config{}, oneStep(t, "billing", "", nil)) // it finds that the first is dead, and
		o.Poll = 3 * o.Lease                                    // the next one knows when it claims
		next = boot(t, l, &world{}, config{opts: o, program: program, hook: hook})
		close(booted)
		for len(c.times()) == n && time.Since(killed) < 2*time.Hour {
			pass(100 * time.Millisecond)
		}
		if took := time.Since(killed); took > 2*o.Poll+shareTimeout+shareSettle {
			t.Errorf("the next request was sent after %s", took)
		}
	})
}
