package coordinator

import (
	"context"
	"errors"
	"time"
)

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// errWoken is why a work waits no longer: a signal was posted to it.
var errWoken = errors.New("a signal was posted to the work")

// doze sleeps for d, until ctx ends or wake is sent to.
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

func sleep(ctx context.Context, d time.Duration) error { return doze(ctx, nil, d) }
