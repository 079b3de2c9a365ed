package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// An action whose grounds have changed since it was planned is superseded, whatever changed.
// Nothing is done.
func TestStalePlanIsSuperseded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ planned, since func(*world, string) }{
		"the order changed":         {(*world).sold, func(w *world, key string) { w.changed(key, "11.00") }},
		"the order was cancelled":   {(*world).sold, func(w *world, key string) { w.orders[key] = &order{Version: 2, Total: "10.00", Cancelled: true} }},
		"the order is gone":         {(*world).sold, func(w *world, key string) { delete(w.orders, key) }},
		"somebody made the invoice": {(*world).sold, func(w *world, key string) { w.make(key, "10.00", "1") }},
		"the work began":            {(*world).sold, func(w *world, key string) { w.works[key] = &plan.Known{Works: 1, Status: saga.Running} }},
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
			w.works[key] = &plan.Known{Works: 1, Status: saga.Completed, Revision: "1", Made: w.live(key)[0].ID}
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
				if w.broke || r.Superseded != 1 || r.Applied != 0 || r.Result != schedule.OK {
					t.Errorf("acted: %t; report: %+v", w.broke, r)
				}
				if row := j.row(keyOf(1)); row.Outcome != plan.Superseded || row.Error == "" {
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

// A void document under our mark shows that the ledger has lost a work: its mail may have been
// sent, so nothing is started by itself. After a rebuild a newer version is the same work once
// more, and no second mail goes out.
func TestVoidDocumentIsARemnant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		w.live(keyOf(3))[0].Void = true
		w.changed(keyOf(3), "12.00")
		delete(w.works, keyOf(3))
		j := w.job(t, nil)
		r := j.mustRun()
		if row := j.row(keyOf(3)); row.Class != plan.Missing || row.Action != plan.Ask || r.Planned != 0 {
			t.Errorf("%s, %s (%s); %+v", row.Class, row.Action, row.Reason, r)
		}
		j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		j.mustRun()
		if live := w.live(keyOf(3)); len(live) != 1 || live[0].Fields["total"] != "12.00" || w.mails[keyOf(3)] != 1 {
			t.Errorf("after the rebuild: %+v, %d mails", live, w.mails[keyOf(3)])
		}
	})
}

// A plan is kept, applied by its id or the beginning of it, once; who approved it and why is
// kept, too.
func TestSavedPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		stale(w, keyOf(1))
		stale(w, keyOf(2))
		j := w.job(t, nil)
		id := j.mustPlan().Plan
		if err := j.store.Approve(t.Context(), id, saga.Actor{Name: "anna", Reason: "looked through it"}); err != nil {
			t.Fatal(err)
		}
		j = w.jobOver(t, j.store, nil) // in another process
		if r := j.must(j.Apply(t.Context(), id[:8])); r.Applied != 2 || r.Result != schedule.OK || r.Plan != id {
			t.Errorf("report: %+v", r)
		}
		p, err := j.store.Plan(t.Context(), id)
		if err != nil || p.Approved != (saga.Actor{Name: "anna", Reason: "looked through it"}) {
			t.Errorf("%+v, %v", p.Approved, err)
		}
		if r := j.must(j.Apply(t.Context(), id)); r.Applied != 2 || len(w.delivered) != 2 {
			t.Errorf("applied again: %+v, delivered %v", r, w.delivered)
		}
		if _, err := j.Apply(t.Context(), "no such plan"); !errors.Is(err, plan.ErrNotFound) {
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

// What is over its bound is withheld as a whole, the rest is done, and the run is refused
// until somebody has approved that very plan.
func TestOverABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(41)
		w.changed(keyOf(100), "12.00")
		j := w.job(t, nil)
		r := j.mustRun()
		if r.Result != schedule.Refused || r.OverLimit != 41 || r.Applied != 1 || r.Failed+r.NotAttempted != 0 {
			t.Errorf("report: %+v", r)
		}
		if len(w.live(keyOf(0))) != 0 || j.row(keyOf(0)).Outcome != plan.Withheld || w.live(keyOf(100))[0].Fields["total"] != "12.00" {
			t.Errorf("the wrong ones were withheld: %+v", j.row(keyOf(0)))
		}
		if err := j.store.Approve(t.Context(), r.Plan, saga.Actor{Name: "anna", Reason: "we imported the old shop"}); err != nil {
			t.Fatal(err)
		}
		if r = j.must(j.Apply(t.Context(), r.Plan)); r.Result != schedule.OK || r.Applied != 42 || r.OverLimit != 0 {
			t.Errorf("after the approval: %+v", r)
		}
	})
}

// The first runs of a job only plan, until somebody has approved the job, or the plan. Applying
// a plan by its id is a person's word as well.
func TestUnapprovedJobsOnlyPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(10)
		j := w.job(t, nil)
		j.approved = false
		for range 2 {
			r := j.mustRun()
			if r.Result != schedule.Refused || r.NotAttempted != 10 || len(w.delivered) > 0 || !strings.Contains(r.Message, "the job is not approved yet") {
				t.Errorf("report: %+v", r)
			}
		}
		j.approved = true
		if r := j.mustRun(); r.Result != schedule.OK || r.Applied != 10 {
			t.Errorf("report: %+v", r)
		}
		w = wide(10)
		j = w.job(t, nil)
		j.approved = false
		if r := j.must(j.Apply(t.Context(), j.mustRun().Plan)); r.Result != schedule.OK || r.Applied != 10 {
			t.Errorf("applied by hand: %+v", r)
		}
	})
}

// Two works under one natural key cannot be. Nothing more is done before a person has found out
// why, whatever else is to be done, and an approval changes nothing about that.
func TestTwoWorksStopTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(5)
		w.works[keyOf(50)].Works = 2
		j := w.job(t, nil)
		r := j.mustRun()
		if r.Result != schedule.Refused || !strings.Contains(r.Message, keyOf(50)) || len(w.delivered) > 0 {
			t.Errorf("%d delivered; %+v", len(w.delivered), r)
		}
		if err := j.store.Approve(t.Context(), r.Plan, saga.Actor{Name: "anna"}); err != nil {
			t.Fatal(err)
		}
		if r = j.must(j.Apply(t.Context(), r.Plan)); r.Result != schedule.Refused || len(w.delivered) > 0 {
			t.Errorf("approved: %+v", r)
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
			func(c *settings) { c.sweep.Name = "invoices" },
		} {
			if r := j.must(w.jobOver(t, j.store, other).Apply(t.Context(), id)); r.Result != schedule.Refused || r.Applied > 0 || r.Message == "" {
				t.Errorf("report: %+v", r)
			}
		}
	})
}
