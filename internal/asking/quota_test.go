package asking_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/saga"
)

// "Hints reserved 30 %": sweeps that ask as often as they can get seven tenths of the rate,
// however many they are.
func TestSweepsLeaveHintsTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := asking.NewQuota(asking.Limits{PerSecond: 10})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var sweeps sync.WaitGroup
		var turns atomic.Int64
		for range 5 {
			sweeps.Go(func() {
				for q.Take(ctx) == nil {
					turns.Add(1)
				}
			})
		}
		sweeps.Wait()
		if n := turns.Load(); n < 410 || n > 430 {
			t.Errorf("sweeps were given %d turns in a minute of 600", n)
		}
	})
}

// A Retry-After silences hints and sweeps alike, and both are slower for a while. One that
// is long ends a sweep.
func TestRetryAfterSilencesBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := asking.NewQuota(asking.Limits{PerSecond: 10, Burst: 1})
		q.Answered(saga.RetryAfter(30*time.Second, errors.New("429")))
		began := time.Now()
		if err := q.Take(t.Context()); err != nil || time.Since(began) < 30*time.Second {
			t.Errorf("a sweep asked after %s: %v", time.Since(began), err)
		}
		turn := func() time.Duration {
			began := time.Now()
			if err := q.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Since(began).Round(time.Millisecond)
		}
		if d := turn(); d != 286*time.Millisecond {
			t.Errorf("a sweep's next turn comes after %s, want seven tenths of half the rate", d)
		}
		for range 20 {
			q.Answered(nil)
		}
		if d := turn(); d != 143*time.Millisecond {
			t.Errorf("after answers a sweep's next turn comes after %s", d)
		}
		q.Answered(saga.RetryAfter(time.Hour, errors.New("429")))
		if err := q.Take(t.Context()); !errors.Is(err, asking.ErrSpent) {
			t.Errorf("a sweep waits for an hour: %v", err)
		}
	})
}

// A sweep that is stopped while it waits for its turn stops.
func TestTakeHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := asking.NewQuota(asking.Limits{PerSecond: 0.001})
		if err := q.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("stopped"))
		defer cancel()
		if err := q.Take(ctx); err == nil || err.Error() != "stopped" {
			t.Errorf("got %v", err)
		}
	})
}

// Limits that make no sense are the defaults: they neither stop the calls nor let all of them
// through.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := asking.NewQuota(asking.Limits{PerSecond: math.NaN(), Burst: -1, Patience: -1})
		began := time.Now()
		for range 77 {
			if err := q.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began).Round(time.Second); d != 10*time.Second {
			t.Errorf("77 turns of a sweep took %s, want seven a second behind a burst of seven", d)
		}
	})
}
