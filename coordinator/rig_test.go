package coordinator_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// action is what a step of a test's own saga does.
type action = func(context.Context, saga.Call[order]) (thing, error)

// oneStep is a saga of one idempotent step.
func oneStep(t testing.TB, name, to string, act action) saga.Program {
	t.Helper()
	if act == nil {
		act = func(_ context.Context, c saga.Call[order]) (thing, error) { return thing{ID: c.Work}, nil }
	}
	d, err := saga.Define(name, 1, saga.Do("make", act).Idempotent().NoUndo("the test does not look").To(to).
		Timeout(20*time.Minute).Settle(0))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// several runs a process that knows several sagas. Zero options are those of [quick].
func several(t testing.TB, l ledger.Ledger, cfg config, programs ...saga.Program) *process {
	t.Helper()
	base := quick()
	o := &cfg.opts
	o.Lease, o.Poll, o.Hold, o.Drain = base.Lease, base.Poll, base.Hold, base.Drain
	cfg.program = func(p *process) saga.Program {
		if err := p.Register(t.Context(), programs[1:]...); err != nil {
			t.Fatal(err)
		}
		return programs[0]
	}
	return boot(t, l, &world{}, cfg)
}

// starts makes n starts of a saga, of works named by their numbers.
func (p *process) starts(name string, n int) {
	p.t.Helper()
	for i := range n {
		if _, err := p.Start(p.t.Context(), name, fmt.Sprintf("w%05d", i), order{Total: i}, nil); err != nil {
			p.t.Fatal(err)
		}
	}
}

// in counts a saga's works by status.
func in(t testing.TB, l ledger.Catalogue, name string) map[saga.Status]int {
	t.Helper()
	heads, err := ledger.First(t.Context(), l, ledger.Filter{Saga: name, Limit: math.MaxInt32})
	if err != nil {
		t.Fatal(err)
	}
	count := map[saga.Status]int{}
	for i := range heads {
		count[heads[i].Status]++
	}
	return count
}

// diary keeps when each name was noted.
type diary struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func (d *diary) note(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at == nil {
		d.at = map[string][]time.Time{}
	}
	d.at[name] = append(d.at[name], time.Now())
	return len(d.at[name])
}

func (d *diary) of(name string) []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]time.Time(nil), d.at[name]...)
}

// first is how long after from the name was noted first; an hour at least when it never was.
func (d *diary) first(name string, from time.Time) time.Duration {
	if at := d.of(name); len(at) > 0 {
		return at[0].Sub(from)
	}
	return max(time.Hour, time.Since(from))
}
