// Package batch gathers calls that arrive at the same time into batches, so that many of them share
// one commit. It does not wait for further calls: a call that is alone is a batch of one, and while
// one batch is being written the next gathers.
package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed says that the store is closed.
var ErrClosed = errors.New("the store is closed")

// Call is one caller's work on its way.
type Call[W any] struct {
	Work W

	ctx   context.Context //nolint:containedctx // the caller's: a writer checks whether the caller still waits
	state atomic.Int32
	done  chan error
}

// The states of a call.
const (
	waiting int32 = iota
	taken         // a writer works on it
	left          // its caller is gone
)

// Answer ends a call. Each call of a batch is answered once.
func (c *Call[W]) Answer(err error) { c.done <- err }

// Context is for what is done for calls. It ends after most, and when no caller waits any more: by a deadline, where theirs have passed.
func Context[W any](calls []*Call[W], most time.Duration) (context.Context, context.CancelFunc) {
	now := time.Now()
	last, bounded := now, true
	for _, c := range calls {
		d, ok := c.ctx.Deadline()
		if bounded = bounded && ok; ok && d.After(last) {
			last = d
		}
	}
	if end := now.Add(most); !bounded || last.After(end) {
		last = end
	}
	ctx, cancel := context.WithDeadline(context.Background(), last)
	var there atomic.Int64
	there.Store(int64(len(calls)))
	stops := make([]func() bool, len(calls))
	for i, c := range calls {
		stops[i] = context.AfterFunc(c.ctx, func() {
			if there.Add(-1) == 0 && (!bounded || !errors.Is(c.ctx.Err(), context.DeadlineExceeded)) {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// Group gathers calls for a few writers.
type Group[W any] struct {
	limit int
	size  func(W) int
	write func([]*Call[W])

	queue   chan *Call[W]
	closing chan struct{} // writers end
	closed  chan struct{} // they have
	once    sync.Once
	writers sync.WaitGroup
}

// depth is how many calls may wait. Behind them callers wait for a place, each as long as its
// context allows.
const depth = 4096

// New starts writers. Each takes what is waiting, up to limit by size, and gives it to write, which
// answers every call.
func New[W any](writers, limit int, size func(W) int, write func([]*Call[W])) *Group[W] {
	g := &Group[W]{limit: limit, size: size, write: write, queue: make(chan *Call[W], depth),
		closing: make(chan struct{}), closed: make(chan struct{})}
	for range writers {
		g.writers.Go(g.run)
	}
	return g
}

// Do hands work to a writer and returns its answer. When ctx ends first Do returns at once; what a
// writer already holds may be done nevertheless.
func (g *Group[W]) Do(ctx context.Context, work W) error {
	_, err := g.do(ctx, work)
	return err
}

// DoOrNot is Do for work that touches what is the caller's: when ctx ends it returns only when no
// writer works on it, and will not.
func (g *Group[W]) DoOrNot(ctx context.Context, work W) error {
	c, err := g.do(ctx, work)
	if c != nil {
		return <-c.done
	}
	return err
}

// do returns the call if it ended early while a writer had it.
func (g *Group[W]) do(ctx context.Context, work W) (*Call[W], error) {
	c := &Call[W]{Work: work, ctx: ctx, done: make(chan error, 1)}
	select {
	case <-g.closing:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ended(ctx)
	case g.queue <- c:
	}
	select {
	case err := <-c.done:
		if last, bounded := ctx.Deadline(); err != nil && bounded && !time.Now().Before(last) { // it is why, see [Context]
			<-ctx.Done()
			err = ended(ctx)
		}
		return nil, err
	case <-ctx.Done():
		err := ended(ctx)
		if c.state.CompareAndSwap(waiting, left) {
			return nil, err
		}
		return c, err
	case <-g.closed: // no writer takes the call any more; a writer that had taken it has answered
		if c.state.CompareAndSwap(waiting, left) {
			return nil, ErrClosed
		}
		return nil, <-c.done
	}
}

func ended(ctx context.Context) error {
	return fmt.Errorf("it is not known yet whether it is stored, try again: %w", context.Cause(ctx))
}

// Close waits until the writers have done what they hold. Who is still waiting then gets
// [ErrClosed].
func (g *Group[W]) Close() {
	g.once.Do(func() {
		close(g.closing)
		g.writers.Wait()
		close(g.closed)
	})
}

func (g *Group[W]) run() {
	for {
		select {
		case <-g.closing:
			return
		case c := <-g.queue:
			if g.isClosing() {
				c.Answer(ErrClosed)
				return
			}
			if batch := g.gather(c); len(batch) > 0 {
				g.write(batch)
			}
		}
	}
}

func (g *Group[W]) isClosing() bool {
	select {
	case <-g.closing:
		return true
	default:
		return false
	}
}

// gather takes first and what else is waiting. Calls whose callers are gone are left out.
func (g *Group[W]) gather(first *Call[W]) []*Call[W] {
	var batch []*Call[W]
	n := 0
	take := func(c *Call[W]) {
		if c.ctx.Err() == nil && c.state.CompareAndSwap(waiting, taken) {
			batch = append(batch, c)
			n += g.size(c.Work)
			return
		}
		c.Answer(ended(c.ctx)) // it is known already, or will be in a moment
	}
	take(first)
	for n < g.limit {
		select {
		case c := <-g.queue:
			take(c)
		default:
			return batch
		}
	}
	return batch
}
