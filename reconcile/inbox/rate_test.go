package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// "429: honour Retry-After, shrink the bucket, keep the key dirty". The whole source waits, not
// only the key.
func TestRetryAfterHoldsTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		var times []time.Duration
		b.source.Fetch = func(context.Context, inbox.Object) (inbox.Fetched, error) {
			times = append(times, time.Since(began))
			if len(times) == 1 {
				return inbox.Fetched{}, saga.RetryAfter(10*time.Second, errors.New("429"))
			}
			return shown(1), nil
		}
		b.source.Workers = 1
		b.hints("1")
		_, stop := b.run()
		defer stop()
		b.after(2 * time.Second)
		b.hints("2")
		b.after(5 * time.Minute)
		if len(times) < 3 || times[1] < 10*time.Second || len(b.delivered) != 2 {
			t.Fatalf("asked at %v, delivered %v", times, b.delivered)
		}
	})
}

// The bucket bounds what a source is asked for, a slow source keeps nobody else waiting, and
// deliveries need no turn.
func TestRateIsPerSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.source.Limits = inbox.Limits{PerSecond: 5, Burst: 1}
		began := time.Now()
		for i := range 100 {
			b.hints(fmt.Sprint("hint ", i))
		}
		b.pushes("pushed", 1)
		_, stop := b.run()
		defer stop()
		b.after(2 * time.Second)
		if n := len(b.fetched); n < 8 || n > 12 || !slices.Contains(b.delivered, "pushed@1") {
			t.Fatalf("%d fetches in %s; delivered %v", n, time.Since(began), b.delivered)
		}
		b.after(time.Minute)
		if _, told := b.told.now(); len(b.delivered) != 101 || told.deferred == 0 {
			t.Fatalf("%d delivered, %d deferred", len(b.delivered), told.deferred)
		}
	})
}

// "A sweep can never starve live traffic": beside a sweep without end, hints are heard at the
// rate that is theirs.
func TestHintsBesideASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.source.Limits = inbox.Limits{PerSecond: 10, Burst: 1}
		q := b.source.Quota()
		ctx, cancel := context.WithCancel(t.Context())
		var turns atomic.Int64
		for range 3 {
			go func() {
				for q.Take(ctx) == nil {
					turns.Add(1)
				}
			}()
		}
		for i := range 90 {
			b.hints(strings.Repeat("x", i+1))
		}
		_, stop := b.run()
		b.after(65 * time.Second)
		stop()
		cancel()
		if len(b.delivered) != 90 {
			t.Errorf("%d of 90 objects were fetched and delivered in a minute", len(b.delivered))
		}
		if n, hints := turns.Load(), int64(len(b.fetched)); hints < 90 || n < 300 || hints+n > 660 {
			t.Errorf("sweeps asked %d times, and hints %d times", n, hints)
		}
	})
}
