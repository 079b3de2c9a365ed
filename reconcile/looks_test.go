package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// A system that cannot be listed today stands as it was listed last: what differs is looked at and
// repaired all the same, and the run is partial.
func TestOlderListingsStand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		w.live(keyOf(1))[0].Fields["total"] = "9.00"
		j := w.job(t, nil)
		j.mustRun()
		j = w.jobOver(t, j.store, func(c *settings) {
			c.Policy.Fields = map[string]plan.Rule{"total": plan.Enforce}
			c.sweep.Source.All = func(context.Context, scan.Query) (scan.Page, error) {
				return scan.Page{}, asking.Permanent(errors.New("401"))
			}
		})
		r := j.mustPlan()
		if r.Result != schedule.Partial || !strings.Contains(r.Message, "401") || r.Planned != 1 {
			t.Errorf("the plan: %+v", r)
		}
		if r = j.mustRun(); r.Result != schedule.Partial || r.Applied != 1 || !strings.Contains(r.Message, "401") {
			t.Errorf("the run: %+v", r)
		}
	})
}

// What nobody could look at is listed as such; the rest is planned and done, and the run is
// partial.
func TestLooksThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		w.changed(keyOf(1), "11.00")
		w.changed(keyOf(2), "11.00")
		w.getFails[keyOf(1)] = errors.New("502")
		j := w.job(t, nil)
		r := j.mustRun()
		if row := j.row(keyOf(1)); row.Class != plan.Stale || row.Action != plan.Nothing || !strings.Contains(row.Reason, "502") {
			t.Errorf("row: %+v", row)
		}
		if r.Result != schedule.Partial || r.Failed != 1 || r.Applied != 1 {
			t.Errorf("report: %+v", r)
		}
	})
}

// A source that asks to be left alone for longer than the patience is. What was not looked at
// is listed, and has its turn with the next run; the run is partial, and says why.
func TestLongRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
			w.changed(keyOf(n), "12.00")
		}
		gets := 0
		j := w.job(t, func(c *settings) {
			many(c)
			c.Workers = 1
			get := c.sweep.Source.Get
			c.sweep.Source.Get = func(ctx context.Context, id string) (*scan.Listed, error) {
				if gets++; gets == 18 {
					return nil, saga.RetryAfter(time.Hour, errors.New("429"))
				}
				return get(ctx, id)
			}
		})
		r := j.mustPlan()
		if r.Result != schedule.Partial || r.Planned != 17 || r.Failed != 13 || !strings.Contains(r.Message, "asked not to be asked before") {
			t.Errorf("the first plan: %+v", r)
		}
		w.pass(2 * time.Hour)
		if r = j.mustRun(); r.Result != schedule.OK || r.Applied != 30 {
			t.Errorf("the next run: %+v", r)
		}
	})
}

// A source that answers nobody is no source: the run breaks off, and there is no plan.
func TestDeadSourceEndsARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.sold(keyOf(n))
			w.getFails[keyOf(n)] = errors.New("503")
		}
		j := w.job(t, nil)
		r, err := j.Run(t.Context())
		if err == nil || r.Result != schedule.Failed || !strings.Contains(err.Error(), "503") {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := j.store.Latest(t.Context(), "orders"); !errors.Is(err, plan.ErrNotFound) {
			t.Errorf("there is a plan: %v", err)
		}
	})
}

// A user's function that panics spoils one key, not the run.
func TestPanicsAreOfOneKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		w.changed(keyOf(1), "11.00")
		w.changed(keyOf(2), "11.00")
		j := w.job(t, func(c *settings) {
			find := c.sweep.Destination.Find
			c.sweep.Destination.Find = func(ctx context.Context, key string) ([]plan.Document, error) {
				if key == keyOf(1) {
					panic("nil map")
				}
				return find(ctx, key)
			}
		})
		if r := j.mustRun(); r.Failed != 1 || r.Applied != 1 || !strings.Contains(j.row(keyOf(1)).Reason, "nil map") {
			t.Errorf("%+v, %+v", r, j.row(keyOf(1)))
		}
	})
}
