package coordinator

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// destination hands out send slots. A slot is in hand before a step is armed, so that an armed step is sent
// at once and the window of doubt is the send itself.
type destination struct {
	rate  *rate.Limiter // nil: no limit
	slots chan struct{} // nil: no limit

	mu     sync.Mutex
	paused time.Time // until then the destination asked for silence
}

func newDestination(l Limit) *destination {
	d := &destination{}
	if l.PerSecond > 0 {
		d.rate = rate.NewLimiter(rate.Limit(l.PerSecond), max(1, l.Burst))
	}
	if l.Concurrent > 0 {
		d.slots = make(chan struct{}, l.Concurrent)
	}
	return d
}

// try takes a slot if one is free now.
func (d *destination) try() bool {
	if d.pause() > 0 {
		return false
	}
	if d.slots != nil {
		select {
		case d.slots <- struct{}{}:
		default:
			return false
		}
	}
	if d.rate != nil && !d.rate.Allow() {
		d.release()
		return false
	}
	return true
}

// errWoken is why a work leaves the line for a slot: somebody has posted a signal to it.
var errWoken = errors.New("the work was spoken to")

// take waits for a slot until ctx ends or wake is sent to, which may be nil. Who got a slot while the destination
// asked for silence gives it back and waits on: the answer that asked may have come to the one ahead of us in the
// line.
func (d *destination) take(ctx context.Context, wake <-chan struct{}) error {
	for {
		for p := d.pause(); p > 0; p = d.pause() {
			if err := doze(ctx, wake, p); err != nil {
				return err
			}
		}
		if err := d.queue(ctx, wake); err != nil {
			return err
		}
		if d.pause() <= 0 {
			return nil
		}
		d.release()
	}
}

// queue stands in line for a slot and for its time.
func (d *destination) queue(ctx context.Context, wake <-chan struct{}) error {
	if d.slots != nil {
		select {
		case d.slots <- struct{}{}:
		case <-wake:
			return errWoken
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if d.rate != nil {
		turn := d.rate.Reserve()
		if err := doze(ctx, wake, turn.Delay()); err != nil {
			turn.Cancel() // whoever comes next may have it
			d.release()
			return err
		}
	}
	return nil
}

// doze sleeps for t, until ctx ends or wake is sent to.
func doze(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-wake:
		return errWoken
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release gives a slot back once its attempt is over.
func (d *destination) release() {
	if d.slots != nil {
		<-d.slots
	}
}

// longestHush is the longest Retry-After that is believed, as for a single step.
const longestHush = 24 * time.Hour

// hush keeps everybody away for as long as the destination asked in a Retry-After.
func (d *destination) hush(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if until := time.Now().Add(min(t, longestHush)); until.After(d.paused) {
		d.paused = until
	}
}

func (d *destination) pause() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Until(d.paused)
}

func sleep(ctx context.Context, d time.Duration) error { return doze(ctx, nil, d) }
