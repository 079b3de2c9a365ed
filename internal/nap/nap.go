// Package nap waits.
package nap

import (
	"context"
	"time"
)

// For waits for d, or for the end of ctx, which is its error.
func For(ctx context.Context, d time.Duration) error { return Until(ctx, nil, d) }

// Until waits for d, until something is said on soon, which may be nil, or for the end of ctx, which is its error.
func Until(ctx context.Context, soon <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-soon:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
