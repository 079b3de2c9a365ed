package faults

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Timing says how long the faults take that take time.
type Timing struct {
	Slow   time.Duration // how much later a slow request happens
	Silent time.Duration // how long an answer is held back; above the callers' deadline
	Late   time.Duration // how long a lookup does not see what was made
	Retry  time.Duration // what Retry-After says, rounded up to whole seconds
}

// DefaultTiming suits callers with a deadline of one second.
var DefaultTiming = Timing{
	Slow:   150 * time.Millisecond,
	Silent: 2 * time.Second,
	Late:   300 * time.Millisecond,
	Retry:  time.Second,
}

// Settled is how long after its deadline an unanswered request has either
// happened, for every lookup to see, or never will. Half of it is margin for
// a busy machine.
func (t Timing) Settled() time.Duration { return 2 * (t.Slow + t.Late) }

// Injector counts arrivals and acts out a plan. Its methods may be called from
// several goroutines.
type Injector struct {
	timing  Timing
	closing chan struct{}
	close   sync.Once

	mu    sync.Mutex
	plan  Plan
	seen  map[string]int
	tally map[Kind]int
}

// New makes an injector for a plan. Close it before the servers it serves.
func New(plan Plan, timing Timing) *Injector {
	return &Injector{timing: timing, closing: make(chan struct{}), plan: plan, seen: map[string]int{}, tally: map[Kind]int{}}
}

// SetRate changes the plan's rate from now on.
func (i *Injector) SetRate(rate float64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.plan.Rate = rate
}

// Tally returns how often each kind was met.
func (i *Injector) Tally() map[Kind]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.tally)
}

// Close ends all waiting at once; requests that wait go on without.
func (i *Injector) Close() { i.close.Do(func() { close(i.closing) }) }

// next counts an arrival of key and returns what it meets.
func (i *Injector) next(menu Menu, key string) Fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen[key]++
	f := i.plan.At(menu, key, i.seen[key])
	if f.Kind != None {
		i.tally[f.Kind]++
	}
	return f
}

// hold waits for d, until gone is closed, or until the injector is closed. A
// nil gone never ends the wait.
func (i *Injector) hold(d time.Duration, gone <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-gone:
	case <-i.closing:
	}
}

// hiddenKey is where a request's context keeps how long its effect is hidden.
type hiddenKey struct{}

// Hidden returns how long lookups shall not see what the request with this
// context makes.
func Hidden(ctx context.Context) time.Duration {
	d, _ := ctx.Value(hiddenKey{}).(time.Duration)
	return d
}
