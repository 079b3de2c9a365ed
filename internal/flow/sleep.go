package flow

import (
	"context"
	"errors"
	"time"
)

// ErrWoken is why a work waits no longer: a signal was posted to it.
var ErrWoken = errors.New("a signal was posted to the work")

// Doze sleeps for d, until ctx ends or wake, which may be nil, is sent to.
func Doze(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-wake:
		return ErrWoken
	case <-ctx.Done():
		return ctx.Err()
	}
}

func sleep(ctx context.Context, d time.Duration) error { return Doze(ctx, nil, d) }

// Latest is the later of two times.
func Latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
