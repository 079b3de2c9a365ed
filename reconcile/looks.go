package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/plan"
)

// looks are the looks of one run. They end together: when the two systems hardly answer, and when
// one of them asked to be left alone.
type looks struct {
	mu      sync.Mutex
	breaker breaker
	last    error // the latest failure
	spent   error // one of the systems asked to be left alone
}

func newLooks(b *plan.Bounds) *looks { return &looks{breaker: newLookBreaker(b)} }

// each looks at every sight, on so many goroutines.
func (l *looks) each(ctx context.Context, workers int, sights []*sight, look func(*sight)) {
	var g errgroup.Group
	g.SetLimit(workers)
	for _, s := range sights {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			l.one(s, look)
			return nil
		})
	}
	_ = g.Wait() // it has no errors
}

// one looks at one sight, unless there is no use in it any more.
func (l *looks) one(s *sight, look func(*sight)) {
	if s.err = l.over(); s.err != nil {
		return
	}
	look(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(s.err, asking.ErrSpent) {
		l.spent = s.err
		return
	}
	if s.err != nil {
		l.last = s.err
	}
	l.breaker.note(s.err != nil)
}

func (l *looks) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.breaker.open() {
		return l.last
	}
	return l.spent
}

// failed says why the looks were ended for their failures.
func (l *looks) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.breaker.open() {
		return nil
	}
	return fmt.Errorf("looking at what differs: %s, the last with: %w", l.breaker.why, l.last)
}

// firstPause is the wait behind the first failure of a call; the longest is half a minute.
const firstPause = 250 * time.Millisecond

// ask asks one of the systems, in its turn, until it answers, some attempts long.
func (r *Reconciler) ask(ctx context.Context, q *asking.Quota, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		if err := q.Take(ctx); err != nil {
			return err
		}
		err := r.once(ctx, call)
		q.Answered(err)
		if err == nil || ctx.Err() != nil || asking.Refused(err) || attempt >= r.sweep.Attempts {
			return err
		}
		if err := nap.For(ctx, firstPause<<min(attempt-1, 7)); err != nil {
			return err
		}
	}
}

// once makes one call. A function that panics will do so again.
func (r *Reconciler) once(ctx context.Context, call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.sweep.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = asking.Permanent(fmt.Errorf("panic: %v", p))
		}
	}()
	return call(ctx)
}
