// Package nap waits.
package nap

import (
	"context"
	"errors"
	"time"
)

// ErrWoken is why a wait ended before its time.
var ErrWoken = errors.New("woken")

// For waits for d, or for the end of ctx, which is its error.
func For(ctx context.Context, d time.Duration) error { return Until(ctx, nil, d) }

// Until waits for d. The error is ErrWoken after a send to wake, which may be nil, and that of ctx at its end.
func Until(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
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
