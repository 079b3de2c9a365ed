package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// U6: "hints reserved 30 %": sweeps that ask as often as they can get seven tenths of the rate, however many they are.
func TestSweepsLeaveHintsTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reconcile.NewQuota(reconcile.Limits{PerSecond: 10})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var sweeps sync.WaitGroup
		for range 5 {
			sweeps.Go(func() {
				for q.Take(ctx, "orders") == nil {
				}
			})
		}
		sweeps.Wait()
		if n := q.Usage().Sweeps; n < 410 || n > 430 {
			t.Errorf("sweeps were given %d turns in a minute of 600", n)
		}
	})
}

// U6: "a sweep can never starve live traffic": beside a sweep without end, hints are heard at the rate that is theirs.
func TestHintsBesideASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		q := reconcile.NewQuota(reconcile.Limits{PerSecond: 10, Burst: 1})
		b.source.Rate, b.source.Burst, b.source.Quota = 0, 0, q
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() {
				for q.Take(ctx, "orders") == nil {
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
			t.Errorf("%d of 90 objects were fetched and delivered in a minute; usage %+v", len(b.delivered), q.Usage())
		}
		if u := q.Usage(); u.Hints < 90 || u.Sweeps < 300 || u.Hints+u.Sweeps > 660 {
			t.Errorf("usage %+v", u)
		}
	})
}

// U6: the calls of a day are bounded; hints have what sweeps may not use, and a new day begins at midnight UTC.
func TestDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins at midnight
		q := reconcile.NewQuota(reconcile.Limits{PerSecond: 100, PerDay: 100})
		take := func() (n int) {
			for {
				err := q.Take(t.Context(), "orders")
				if errors.Is(err, reconcile.ErrSpent) {
					return n
				}
				if n++; err != nil || n > 100 {
					t.Fatal(n, err)
				}
			}
		}
		if n := take(); n != 70 {
			t.Errorf("sweeps made %d calls of 100 a day", n)
		}
		<-time.After(25 * time.Hour)
		if n := take(); n != 70 {
			t.Errorf("on the next day sweeps made %d calls of 100", n)
		}
	})
}

// A restart forgets nothing that a sweep has stored; what is known is never lowered, and yesterday is past.
func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := reconcile.NewQuota(reconcile.Limits{PerDay: 100})
		for range 10 {
			if err := before.Take(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
		}
		stored := before.Spent("orders")
		q := reconcile.NewQuota(reconcile.Limits{PerDay: 100})
		q.Recall("orders", stored)
		q.Recall("orders", reconcile.Spending{Day: stored.Day, Calls: 3})
		q.Recall("customers", reconcile.Spending{Day: stored.Day, Calls: 60})
		if u := q.Usage(); u.Sweeps != 70 || u.Left != 0 {
			t.Errorf("it knows of %+v", u)
		}
		if err := q.Take(t.Context(), "orders"); !errors.Is(err, reconcile.ErrSpent) || !strings.Contains(err.Error(), "70") {
			t.Errorf("got %v", err)
		}
		<-time.After(24 * time.Hour)
		q.Recall("orders", stored)
		if u := q.Usage(); u.Sweeps != 0 || u.Left != 70 {
			t.Errorf("the next day begins with %+v", u)
		}
	})
}

// E6, U6: a Retry-After silences hints and sweeps alike, and both are slower for a while. One that is long ends a sweep.
func TestRetryAfterSilencesBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reconcile.NewQuota(reconcile.Limits{PerSecond: 10, Burst: 1})
		q.Answered(reconcile.Later(errors.New("429"), 30*time.Second))
		began := time.Now()
		if err := q.Take(t.Context(), "orders"); err != nil || time.Since(began) < 30*time.Second {
			t.Errorf("a sweep asked after %s: %v", time.Since(began), err)
		}
		if r := q.Usage().Rate; r != 5 {
			t.Errorf("the rate is %v", r)
		}
		for range 20 {
			q.Answered(nil)
		}
		if r := q.Usage().Rate; r != 10 {
			t.Errorf("after answers the rate is %v", r)
		}
		q.Answered(reconcile.Later(errors.New("429"), time.Hour))
		if err := q.Take(t.Context(), "orders"); !errors.Is(err, reconcile.ErrSpent) {
			t.Errorf("a sweep waits for an hour: %v", err)
		}
	})
}

// A sweep that is stopped while it waits for its turn stops.
func TestTakeHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reconcile.NewQuota(reconcile.Limits{PerSecond: 0.001})
		if err := q.Take(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("stopped"))
		defer cancel()
		if err := q.Take(ctx, "orders"); err == nil || err.Error() != "stopped" {
			t.Errorf("got %v", err)
		}
	})
}

// Limits that make no sense are refused, all of them at once.
func TestLimits(t *testing.T) {
	t.Parallel()
	err := reconcile.Limits{PerSecond: -1, Reserved: 1, Patience: -1}.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v", err)
	}
	if err := (reconcile.Limits{}).Validate(); err != nil {
		t.Error(err)
	}
}
