package coordinator

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/saga"
)

// looksPerSecond is how often a process asks the ledger which of the works have come to rest that its
// callers wait for, however many they are.
const looksPerSecond = 2

// rests are the works that callers of this process wait for and that it does not have in hand. One
// look asks for all of them.
type rests struct {
	pace *rate.Limiter

	mu      sync.Mutex
	waiting map[saga.ID]map[chan struct{}]bool
	stop    context.CancelFunc // ends the looks; nil: nothing is waited for
}

func newRests() *rests {
	return &rests{pace: rate.NewLimiter(looksPerSecond, 1), waiting: make(map[saga.ID]map[chan struct{}]bool)}
}

// await blocks until the work is said to be at rest.
func (c *Coordinator) await(ctx context.Context, id saga.ID) error {
	told := c.rests.add(id, c.lookForRest)
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		c.rests.drop(id, told)
		return ctx.Err()
	}
}

// lookForRest asks for as long as something is waited for.
func (c *Coordinator) lookForRest(ctx context.Context) {
	for c.rests.pace.Wait(ctx) == nil {
		rest, err := c.ledger.AtRest(ctx, c.rests.all())
		if err != nil {
			continue // a ledger that is away is asked again
		}
		for _, id := range rest {
			c.rests.tell(id)
		}
	}
}

// add returns what is closed when the work is at rest. look is begun with the first one.
func (r *rests) add(id saga.ID, look func(context.Context)) (told chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[id] == nil {
		r.waiting[id] = make(map[chan struct{}]bool, 1)
	}
	told = make(chan struct{})
	r.waiting[id][told] = true
	if r.stop == nil {
		var ctx context.Context
		ctx, r.stop = context.WithCancel(context.Background())
		go look(ctx)
	}
	return told
}

func (r *rests) drop(id saga.ID, told chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.waiting[id], told); len(r.waiting[id]) == 0 {
		r.forget(id)
	}
}

// tell wakes those who wait for the work.
func (r *rests) tell(id saga.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for told := range r.waiting[id] {
		close(told)
	}
	r.forget(id)
}

func (r *rests) forget(id saga.ID) {
	if delete(r.waiting, id); len(r.waiting) == 0 && r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

func (r *rests) all() []saga.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.waiting))
}
