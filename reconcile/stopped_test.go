package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Five failures in a row end a run. What is left is left, and the next run begins with one that
// did not fail.
func TestFailuresEndARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(30)
		for n := range 7 {
			w.deliverFails[keyOf(n)] = errors.New("422")
		}
		j := w.job(t, many)
		r := j.mustRun()
		if r.Failed != 5 || r.Applied != 0 || r.NotAttempted != 25 || r.Result != schedule.Partial || !strings.Contains(r.Message, "one after the other") {
			t.Errorf("report: %+v", r)
		}
		for range 2 { // what failed goes last, but nobody knows these two yet, and the first decides
			r = j.mustRun()
			if r.Failed != 1 || r.Applied != 0 || !strings.Contains(r.Message, "first action of this one") {
				t.Errorf("report: %+v", r)
			}
		}
		if r = j.mustRun(); r.Applied != 23 || r.Failed != 5 || r.Result != schedule.Partial {
			t.Errorf("the others had their turn: %+v", r)
		}
		clear(w.deliverFails)
		if r = j.mustRun(); r.Applied != 7 || r.Result != schedule.OK {
			t.Errorf("all is well again: %+v", r)
		}
	})
}

// One failure here and there is listed, and does not end a run; it is tried again by the next
// one.
func TestFailuresHereAndThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(40)
		for n := 0; n < 40; n += 10 {
			w.deliverFails[keyOf(n)] = errors.New("422")
		}
		j := w.job(t, func(c *settings) { many(c); c.Workers = 4 })
		r := j.mustRun()
		if r.Failed != 4 || r.Applied != 36 || r.Result != schedule.Partial {
			t.Errorf("report: %+v", r)
		}
		if row := j.row(keyOf(10)); row.Outcome != plan.Failed || !strings.Contains(row.Error, "422") {
			t.Errorf("row: %+v", row)
		}
		clear(w.deliverFails)
		if r = j.mustRun(); r.Applied != 4 || r.Result != schedule.OK {
			t.Errorf("second report: %+v", r)
		}
	})
}

// Of many actions of a kind the first few are done one by one, and each is read back when its
// work has come to rest. If what it made is not what it should be, nothing more of the kind is
// done; other kinds are.
func TestFirstActionsAreReadBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slow  time.Duration
		doubt bool
		wrong bool
		made  int
		words string
	}{
		"well":                {0, false, false, 60, ""},
		"well, in its time":   {20 * time.Second, false, false, 60, ""},
		"well, after a doubt": {40 * time.Second, true, false, 60, ""},
		"wrong":               {0, false, true, 4, "is diverged"},
		"wrong, in its time":  {20 * time.Second, false, true, 4, "is diverged"},
		"it never ends":       {time.Hour, false, false, 1, "still running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wide(60)
				w.slow, w.doubtful = c.slow, c.doubt
				w.mangles[keyOf(3)] = c.wrong
				stale(w, "shop:order:stale")
				j := w.job(t, many)
				r := j.mustRun()
				made := 0
				for _, key := range w.delivered {
					if key != "shop:order:stale" {
						made++
					}
				}
				if made != c.made || len(w.delivered) != made+1 {
					t.Errorf("%d made, want %d; report: %+v", made, c.made, r)
				}
				if !strings.Contains(r.Message, c.words) {
					t.Errorf("the words %q do not say %q", r.Message, c.words)
				}
				if ok := r.Result == schedule.OK; ok != (c.made == 60) || !ok && (r.NotAttempted != int64(60-c.made) || !strings.Contains(r.Message, "stopped behind its first actions")) {
					t.Errorf("report: %+v", r)
				}
			})
		})
	}
}

// A pause is obeyed between any two actions, and what was done until then is on record.
func TestPauseBetweenActions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(20)
		paused := errors.New("paused by anna")
		j := w.job(t, func(c *settings) {
			many(c)
			c.sweep.Proceed = func(context.Context) error {
				defer w.lock()()
				if len(w.delivered) == 7 {
					return paused
				}
				return nil
			}
		})
		r, err := j.Run(t.Context())
		if !errors.Is(err, paused) || len(w.delivered) != 7 || r.Applied != 7 || r.NotAttempted != 13 {
			t.Errorf("%d delivered; %+v, %v", len(w.delivered), r, err)
		}
		applied := 0
		for _, row := range j.rows() {
			if row.Outcome == plan.Applied {
				applied++
			}
		}
		if applied != 7 {
			t.Errorf("%d actions are on record", applied)
		}
		j = w.jobOver(t, j.store, many)
		if r = j.must(j.Apply(t.Context(), r.Plan)); r.Applied != 20 || len(w.delivered) != 20 {
			t.Errorf("the plan goes on: %+v", r)
		}
	})
}

// A process that is told to stop in the middle of an action leaves that action untried, not failed.
func TestStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(20)
		ctx, stop := context.WithCancel(t.Context())
		j := w.job(t, func(c *settings) {
			many(c)
			c.Plans = strict{c.Plans}
			deliver := c.Deliver
			c.Deliver = func(ctx context.Context, ch inbox.Snapshot) error {
				if len(w.delivered) == 3 {
					stop()
					return fmt.Errorf("start: %w", ctx.Err())
				}
				return deliver(ctx, ch)
			}
		})
		r, err := j.Run(ctx)
		if !errors.Is(err, context.Canceled) || r.Applied != 3 || r.Failed != 0 || r.NotAttempted != 17 {
			t.Errorf("%+v, %v", r, err)
		}
		if row := j.row(keyOf(3)); row.Outcome != plan.Pending {
			t.Errorf("row: %+v", row)
		}
	})
}

// strict is a store that does nothing for whoever was told to stop.
type strict struct{ plan.Plans }

func (s strict) Done(ctx context.Context, of plan.Ref, rows []plan.Row) error {
	return cmp.Or(ctx.Err(), s.Plans.Done(ctx, of, rows))
}

// Withdrawals that are withheld, and one that fails, neither end the run nor read as success.
func TestWithheldIsNoSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(10)
		for n := 100; n < 115; n++ {
			w.orders[keyOf(n)] = &order{Version: 2, Total: "10.00", Cancelled: true}
		}
		w.deliverFails[keyOf(4)] = errors.New("409")
		r := w.job(t, nil).mustRun()
		if r.Result != schedule.Refused || r.OverLimit != 15 || r.Applied != 9 || r.Failed != 1 || r.NotAttempted != 0 {
			t.Errorf("report: %+v", r)
		}
		for _, what := range []string{"15 withdrawals", "1 failed"} {
			if !strings.Contains(r.Message, what) {
				t.Errorf("the words %q do not speak of %s", r.Message, what)
			}
		}
		w = wide(10)
		w.orders[keyOf(100)] = &order{Version: 2, Total: "10.00", Cancelled: true}
		w.deliverFails[keyOf(100)] = errors.New("409")
		if r := w.job(t, nil).mustRun(); r.Result != schedule.Partial || r.Applied != 10 || r.Failed != 1 {
			t.Errorf("a withdrawal that failed: %+v", r)
		}
	})
}
