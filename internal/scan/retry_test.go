package scan_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/saga"
)

// A call that fails is tried again, after a wait; what will not change is not.
func TestCallsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.fill(10)
		b.config.Attempts = 4
		failures := 3
		b.before = func(*scan.Query) error {
			if failures--; failures >= 0 {
				return errors.New("503")
			}
			return nil
		}
		began := time.Now()
		if r := b.changed(); r.Result != scan.OK || r.Calls != 4 || time.Since(began) < 5*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), r)
		}
		b.current()
		failures = 4
		if r := b.changed(); r.Result != scan.Partial || r.Calls != 4 {
			t.Errorf("report %+v", r)
		}
		b.before = func(*scan.Query) error { return asking.Permanent(errors.New("403 no permission")) }
		if r := b.changed(); r.Result != scan.Partial || r.Calls != 1 || !strings.Contains(r.Why, "403 no permission") {
			t.Errorf("report %+v", r)
		}
	})
}

// "Too many requests" is waited for as long as was asked, and everybody who shares the
// quota with the sweep is slower.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.fill(10)
		b.config.Attempts, b.config.Source.Quota = 4, asking.NewQuota(asking.Limits{PerSecond: 10})
		b.before = func(*scan.Query) error {
			b.before = nil
			return saga.RetryAfter(40*time.Second, errors.New("429"))
		}
		began := time.Now()
		if r := b.changed(); r.Result != scan.OK || r.Calls != 2 || time.Since(began) < 40*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), r)
		}
		began = time.Now()
		for range 20 {
			if err := b.config.Source.Quota.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d < 3*time.Second {
			t.Errorf("20 more turns took %s, at ten a second", d)
		}
	})
}

// A call that does not come back is cut off.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Timeout = 10 * time.Second
		b.config.Source.Changed = func(ctx context.Context, _ scan.Query) (scan.Page, error) {
			<-ctx.Done()
			return scan.Page{}, ctx.Err()
		}
		if r := b.changed(); r.Result != scan.Partial || !strings.Contains(r.Why, "deadline") {
			t.Errorf("report %+v", r)
		}
	})
}

// A run that is told to stop stops, with what told it; it is not the source's fault, and stores
// nothing more.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := divided(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		b.before = func(*scan.Query) error {
			if len(b.asked) == 5 {
				cancel(errors.New("the lease is over"))
			}
			return nil
		}
		if r, err := b.sweep().List(ctx, scan.SourceSide); err == nil || r.Result != scan.Partial {
			t.Errorf("%+v, %v", r, err)
		}
		if n := len(b.asked); n > 6 {
			t.Errorf("it asked %d times", n)
		}
	})
}

// shaky is a store whose answers get lost, before or after it has stored a page.
type shaky struct {
	scan.Store

	n    int
	lost func(n int) (before, after bool)
}

var errLost = errors.New("the connection was lost")

func (s *shaky) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	s.n++
	before, after := s.lost(s.n)
	if before {
		return p, errLost
	}
	next, err := s.Store.Advance(ctx, p, page)
	if after && err == nil {
		return p, errLost
	}
	return next, err
}

// "It may be repeated": an answer of the store that was lost, before or after it has stored a page,
// is no end and no second process; the page is there once.
func TestLostAnswersOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lost := range []func(int) (bool, bool){
			func(n int) (bool, bool) { return n%3 == 1, false },
			func(n int) (bool, bool) { return false, n%2 == 1 },
			func(n int) (bool, bool) { return n%5 == 1, n%5 == 3 },
		} {
			b := divided(t)
			b.now = b.now.Add(time.Minute)
			b.config.Store = &shaky{Store: b.store, lost: lost}
			b.ok(b.changed())
			b.current()
			b.ok(b.list())
			if n := len(b.sightings(1)); n != 100 {
				t.Errorf("%d rows", n)
			}
		}
		b := divided(t)
		b.config.Store = &shaky{Store: b.store, lost: func(int) (bool, bool) { return true, false }}
		if _, err := b.sweep().Changed(t.Context()); !errors.Is(err, errLost) {
			t.Errorf("a store that is gone: %v", err)
		}
	})
}
