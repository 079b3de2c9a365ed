package repair_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/saga"
)

// P3: an action whose grounds have changed since it was planned is superseded, whatever changed. Nothing is done.
func TestStalePlanIsSuperseded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ planned, since func(*world, string) }{
		"the order changed":         {(*world).sold, func(w *world, key string) { w.changed(key, "11.00") }},
		"the order was cancelled":   {(*world).sold, func(w *world, key string) { w.orders[key] = &order{Version: 2, Total: "10.00", Cancelled: true} }},
		"the order is gone":         {(*world).sold, func(w *world, key string) { delete(w.orders, key) }},
		"somebody made the invoice": {(*world).sold, func(w *world, key string) { w.make(key, "10.00", "1") }},
		"the work began":            {(*world).sold, func(w *world, key string) { w.works[key] = &drift.Known{Works: 1, Status: saga.Running} }},
		"the invoice was edited": {stale, func(w *world, key string) {
			w.live(key)[0].Fields["total"] = "10.50"
		}},
		"the invoice was posted": {stale, func(w *world, key string) { w.live(key)[0].Locked = true }},
		"the invoice was voided": {stale, func(w *world, key string) { w.live(key)[0].Void = true }},
		"another one was made":   {stale, func(w *world, key string) { w.make(key, "10.00", "1") }},
		"a newer version was applied": {stale, func(w *world, key string) {
			w.works[key].Revision = "2"
		}},
		"it is newer still":     {stale, func(w *world, key string) { w.changed(key, "13.00") }},
		"it was cancelled":      {stale, func(w *world, key string) { w.orders[key] = &order{Version: 3, Total: "12.00", Cancelled: true} }},
		"it was sold after all": {cancelled, func(w *world, key string) { w.orders[key] = &order{Version: 3, Total: "10.00"} }},
		"the ledger was told": {lost, func(w *world, key string) {
			w.works[key] = &drift.Known{Works: 1, Status: saga.Completed, Revision: "1", Made: w.live(key)[0].ID}
		}},
		"the lost one was edited":      {lost, func(w *world, key string) { w.live(key)[0].Fields["total"] = "8.00" }},
		"the stuck one moved":          {stuck, func(w *world, key string) { w.works[key].Overdue = false }},
		"the stuck one needs a person": {stuck, func(w *world, key string) { w.works[key].Status, w.works[key].Overdue = saga.Review, false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				c.planned(w, keyOf(1))
				j := w.job(t, nil)
				r := j.mustPlan()
				if r.Planned != 1 {
					t.Fatalf("nothing was planned: %+v", r)
				}
				c.since(w, keyOf(1))
				w.frozen = errors.New("somebody acted")
				r = j.must(j.Apply(t.Context(), r.Plan))
				if w.broke || r.Superseded != 1 || r.Applied != 0 || r.Verdict != repair.OK {
					t.Errorf("acted: %t; report: %+v", w.broke, r)
				}
				if row := j.row(keyOf(1)); row.Outcome != drift.Superseded || row.Error == "" {
					t.Errorf("row: %+v", row)
				}
			})
		})
	}
}

func stale(w *world, key string) {
	w.done(key)
	w.changed(key, "12.00")
}

func cancelled(w *world, key string) {
	w.done(key)
	w.orders[key] = &order{Version: 2, Total: "10.00", Cancelled: true}
}

func lost(w *world, key string) {
	w.done(key)
	delete(w.works, key)
}

func stuck(w *world, key string) {
	w.done(key)
	w.works[key].Status, w.works[key].Overdue = saga.Running, true
}

// A void document under our mark shows that the ledger has lost a work: its mail may have been sent, so nothing is
// started by itself. After a rebuild a newer version is the same work once more, and no second mail goes out.
func TestVoidDocumentIsARemnant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		w.live(keyOf(3))[0].Void = true
		w.changed(keyOf(3), "12.00")
		delete(w.works, keyOf(3))
		j := w.job(t, nil)
		r := j.mustRun()
		if row := j.row(keyOf(3)); row.Class != drift.Missing || row.Do != drift.Ask || r.Planned != 0 {
			t.Errorf("%s, %s (%s); %+v", row.Class, row.Do, row.Why, r)
		}
		j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		j.mustRun()
		if live := w.live(keyOf(3)); len(live) != 1 || live[0].Fields["total"] != "12.00" || w.mails[keyOf(3)] != 1 {
			t.Errorf("after the rebuild: %+v, %d mails", live, w.mails[keyOf(3)])
		}
	})
}

// P4: a plan is kept, applied by its id or the beginning of it, once; who approved it and why is kept, too.
func TestSavedPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		stale(w, keyOf(1))
		stale(w, keyOf(2))
		j := w.job(t, nil)
		id := j.mustPlan().Plan
		if err := j.store.Approve(t.Context(), id, drift.By{Actor: "anna", Reason: "looked through it"}); err != nil {
			t.Fatal(err)
		}
		j = w.jobOver(t, j.store, nil) // in another process
		if r := j.must(j.Apply(t.Context(), id[:8])); r.Applied != 2 || r.Verdict != repair.OK || r.Plan != id {
			t.Errorf("report: %+v", r)
		}
		p, err := j.store.Plan(t.Context(), id)
		if err != nil || p.Approved != (drift.By{Actor: "anna", Reason: "looked through it"}) {
			t.Errorf("%+v, %v", p.Approved, err)
		}
		if r := j.must(j.Apply(t.Context(), id)); r.Applied != 2 || len(w.delivered) != 2 {
			t.Errorf("applied again: %+v, delivered %v", r, w.delivered)
		}
		if _, err := j.Apply(t.Context(), "no such plan"); !errors.Is(err, drift.ErrNotFound) {
			t.Errorf("an unknown plan: %v", err)
		}
	})
}

// wide is a world of a hundred orders of which many are not in the books.
func wide(missing int) *world {
	w := newWorld()
	for n := range 200 {
		if n < missing {
			w.sold(keyOf(n))
		} else {
			w.done(keyOf(n))
		}
	}
	return w
}

// X1, X2: what is over its bound is withheld as a whole, the rest is done, and the run is refused until somebody has
// approved that very plan.
func TestOverABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(41)
		w.changed(keyOf(100), "12.00")
		j := w.job(t, nil)
		r := j.mustRun()
		if r.Verdict != repair.Refused || r.Withheld != 41 || r.Applied != 1 || r.Failed+r.Left != 0 {
			t.Errorf("report: %+v", r)
		}
		if len(w.live(keyOf(0))) != 0 || j.row(keyOf(0)).Outcome != drift.Withheld || w.live(keyOf(100))[0].Fields["total"] != "12.00" {
			t.Errorf("the wrong ones were withheld: %+v", j.row(keyOf(0)))
		}
		if err := j.store.Approve(t.Context(), r.Plan, drift.By{Actor: "anna", Reason: "we imported the old shop"}); err != nil {
			t.Fatal(err)
		}
		if r = j.must(j.Apply(t.Context(), r.Plan)); r.Verdict != repair.OK || r.Applied != 42 || r.Withheld != 0 {
			t.Errorf("after the approval: %+v", r)
		}
	})
}

// X4: five failures in a row end a run. What is left is left, and the next run begins with one that did not fail.
func TestFailuresEndARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(30)
		for n := range 7 {
			w.deliverFails[keyOf(n)] = errors.New("422")
		}
		j := w.job(t, many)
		r := j.mustRun()
		if r.Failed != 5 || r.Applied != 0 || r.Left != 25 || r.Verdict != repair.Partial || !strings.Contains(r.Words, "one after the other") {
			t.Errorf("report: %+v", r)
		}
		for range 2 { // what failed goes last, but nobody knows these two yet, and the first decides
			r = j.mustRun()
			if r.Failed != 1 || r.Applied != 0 || !strings.Contains(r.Words, "first action of this one") {
				t.Errorf("report: %+v", r)
			}
		}
		if r = j.mustRun(); r.Applied != 23 || r.Failed != 5 || r.Verdict != repair.Partial {
			t.Errorf("the others had their turn: %+v", r)
		}
		clear(w.deliverFails)
		if r = j.mustRun(); r.Applied != 7 || r.Verdict != repair.OK {
			t.Errorf("all is well again: %+v", r)
		}
	})
}

// X4: one failure here and there is listed, and does not end a run; it is tried again by the next one.
func TestFailuresHereAndThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(40)
		for n := 0; n < 40; n += 10 {
			w.deliverFails[keyOf(n)] = errors.New("422")
		}
		j := w.job(t, func(c *settings) { many(c); c.Workers = 4 })
		r := j.mustRun()
		if r.Failed != 4 || r.Applied != 36 || r.Verdict != repair.Partial {
			t.Errorf("report: %+v", r)
		}
		if row := j.row(keyOf(10)); row.Outcome != drift.Failed || !strings.Contains(row.Error, "422") {
			t.Errorf("row: %+v", row)
		}
		clear(w.deliverFails)
		if r = j.mustRun(); r.Applied != 4 || r.Verdict != repair.OK {
			t.Errorf("second report: %+v", r)
		}
	})
}

// X5: of many actions of a kind the first few are read back when their works have come to rest. If what they made is
// not what it should be, nothing more of the kind is done; other kinds are.
func TestCanary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slow  time.Duration
		wrong bool
		made  int
		words string
	}{
		"well":               {0, false, 60, ""},
		"well, in its time":  {20 * time.Second, false, 60, ""},
		"wrong":              {0, true, 5, "adopt"},
		"wrong, in its time": {20 * time.Second, true, 5, ""},
		"it never ends":      {time.Hour, false, 5, "still running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wide(60)
				w.slow = c.slow
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
				if ok := r.Verdict == repair.OK; ok != (c.made == 60) || !ok && (r.Left != 55 || !strings.Contains(r.Words, "stopped behind its first actions")) {
					t.Errorf("report: %+v", r)
				}
			})
		})
	}
}

// X6: a pause is obeyed between any two actions, and what was done until then is on record.
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
		if !errors.Is(err, paused) || len(w.delivered) != 7 || r.Applied != 7 || r.Left != 13 {
			t.Errorf("%d delivered; %+v, %v", len(w.delivered), r, err)
		}
		applied := 0
		for _, row := range j.rows() {
			if row.Outcome == drift.Applied {
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
			c.Deliver = func(ctx context.Context, ch reconcile.Change) error {
				if len(w.delivered) == 3 {
					stop()
					return fmt.Errorf("start: %w", ctx.Err())
				}
				return deliver(ctx, ch)
			}
		})
		r, err := j.Run(ctx)
		if !errors.Is(err, context.Canceled) || r.Applied != 3 || r.Failed != 0 || r.Left != 17 {
			t.Errorf("%+v, %v", r, err)
		}
		if row := j.row(keyOf(3)); row.Outcome != drift.Pending {
			t.Errorf("row: %+v", row)
		}
	})
}

// strict is a store that does nothing for whoever was told to stop.
type strict struct{ drift.Plans }

func (s strict) Done(ctx context.Context, number int64, rows []drift.Row) error {
	return cmp.Or(ctx.Err(), s.Plans.Done(ctx, number, rows))
}

// X7: the first runs of a job only plan, until somebody has approved the job, or the plan. Applying a plan by its id is
// a person's word as well.
func TestUnapprovedJobsOnlyPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(10)
		approved := false
		ask := func(c *settings) { c.Approved = func(context.Context) (bool, error) { return approved, nil } }
		j := w.job(t, ask)
		for range 2 {
			r := j.mustRun()
			if r.Verdict != repair.Refused || r.Left != 10 || len(w.delivered) > 0 || !strings.Contains(r.Words, "nobody has approved the job") {
				t.Errorf("report: %+v", r)
			}
		}
		approved = true
		if r := j.mustRun(); r.Verdict != repair.OK || r.Applied != 10 {
			t.Errorf("report: %+v", r)
		}
		w = wide(10)
		j = w.job(t, func(c *settings) { c.Approved = nil })
		if r := j.must(j.Apply(t.Context(), j.mustRun().Plan)); r.Verdict != repair.OK || r.Applied != 10 {
			t.Errorf("applied by hand: %+v", r)
		}
	})
}

// X9: withdrawals that are withheld, and one that fails, neither end the run nor read as success.
func TestWithheldIsNoSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(10)
		for n := 100; n < 115; n++ {
			w.orders[keyOf(n)] = &order{Version: 2, Total: "10.00", Cancelled: true}
		}
		w.deliverFails[keyOf(4)] = errors.New("409")
		r := w.job(t, nil).mustRun()
		if r.Verdict != repair.Refused || r.Withheld != 15 || r.Applied != 9 || r.Failed != 1 || r.Left != 0 {
			t.Errorf("report: %+v", r)
		}
		for _, what := range []string{"15 withdrawals", "1 failed"} {
			if !strings.Contains(r.Words, what) {
				t.Errorf("the words %q do not speak of %s", r.Words, what)
			}
		}
		w = wide(10)
		w.orders[keyOf(100)] = &order{Version: 2, Total: "10.00", Cancelled: true}
		w.deliverFails[keyOf(100)] = errors.New("409")
		if r := w.job(t, nil).mustRun(); r.Verdict != repair.Partial || r.Applied != 10 || r.Failed != 1 {
			t.Errorf("a withdrawal that failed: %+v", r)
		}
	})
}

// A plan of another mapping, or of another job, is not applied.
func TestPlansOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(5)
		j := w.job(t, nil)
		id := j.mustPlan().Plan
		for _, other := range []func(*settings){
			func(c *settings) { c.sweep.Mapping = "2" },
			func(c *settings) { c.Name = "invoices" },
		} {
			if r := j.must(w.jobOver(t, j.store, other).Apply(t.Context(), id)); r.Verdict != repair.Refused || r.Applied > 0 || r.Words == "" {
				t.Errorf("report: %+v", r)
			}
		}
	})
}
