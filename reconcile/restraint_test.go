package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// The first actions of one kind do nothing that is withheld.
func TestFirstActionsLetWithheldThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		for n := range 60 { // updates, which need an approval
			w.changed(keyOf(n), "12.00")
		}
		for n := range 60 { // undone, and sold again: the same class and verb, and nothing stands
			key := keyOf(100 + n)
			w.live(key)[0].Void = true
			w.works[key].Status = saga.Compensated
			w.changed(key, "11.00")
		}
		j := w.job(t, func(c *settings) {
			many(c)
			c.Bounds.Update = plan.Bound{Ask: true}
		})
		r := j.mustRun()
		touched := 0
		for n := range 60 {
			if w.live(keyOf(n))[0].Fields["total"] != "10.00" {
				touched++
			}
		}
		if touched > 0 {
			t.Errorf("%d updates were done without an approval; %+v", touched, r)
		}
	})
}

// What an adoption leaves to be updated is an update.
func TestAdoptionUpdatesWithoutBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		for n := range 80 {
			w.changed(keyOf(n), "12.00")
			delete(w.works, keyOf(n))
		}
		j := w.job(t, func(c *settings) { c.Bounds.Update = plan.Bound{Ask: true} })
		r := j.mustRun()
		touched := 0
		for n := range 80 {
			if w.live(keyOf(n))[0].Fields["total"] != "10.00" {
				touched++
			}
		}
		if touched > 0 {
			t.Errorf("%d documents were changed, and none may be without an approval; %+v", touched, r)
		}
	})
}

// The diagnosis stays until somebody has mended the mapping or said that it is meant.
func TestDiagnosisIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 100 {
			w.done(keyOf(n))
		}
		j := w.job(t, many)
		j.mustRun()
		for n := range 100 {
			w.orders[keyOf(n)].Version = 2 // our own mark counts as a new version at the source
		}
		j = w.jobOver(t, j.store, func(c *settings) {
			many(c)
			c.sweep.Mapping = "2"
			c.sweep.Source.Want = func(o *scan.Listed) (plan.Truth, error) {
				truth, err := want(o)
				truth.Fields["total"] += " EUR"
				return truth, err
			}
		})
		for night := range 3 {
			r := j.mustRun()
			if r.Result != schedule.Refused || len(w.delivered) > 0 {
				t.Errorf("night %d: %d delivered; %+v", night, len(w.delivered), r)
			}
		}
	})
}

// A pause is obeyed right before the action, not only before the look, which may wait for its
// turn for minutes.
func TestPauseDuringTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wide(20)
		pause := errors.New("paused by anna")
		paused := false
		j := w.job(t, func(c *settings) {
			many(c)
			c.Workers = 8
			c.sweep.Proceed = func(context.Context) error {
				defer w.lock()()
				if paused {
					return pause
				}
				return nil
			}
		})
		r := j.mustPlan()
		w.onLook = func(string) { // the source is slow, and anna pauses meanwhile
			w.pass(time.Minute)
			defer w.lock()()
			paused = true
		}
		_, err := j.Apply(t.Context(), r.Plan)
		if len(w.delivered) > 0 {
			t.Errorf("%d were delivered after the pause (%v)", len(w.delivered), err)
		}
	})
}

// The next run probes, also when something is withheld.
func TestProbeIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		for n := range 30 {
			w.changed(keyOf(n), "12.00") // withheld, and first
		}
		for n := range 40 {
			key := fmt.Sprintf("shop:order:z%04d", n)
			w.sold(key)
			w.deliverFails[key] = errors.New("503")
		}
		j := w.job(t, func(c *settings) {
			many(c)
			c.Bounds.Update = plan.Bound{Ask: true}
		})
		r := j.mustRun()
		if r.Failed != 5 {
			t.Fatalf("%+v", r)
		}
		if r = j.mustRun(); r.Failed != 1 {
			t.Errorf("the second run tried %d: %+v", r.Failed, r)
		}
	})
}

// The words of amends reconcile plan --help: "Equal sides give the same plan, byte for
// byte, under the same id".
func TestEqualSidesEqualIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := wide(5).job(t, nil)
		a, b := j.mustPlan(), j.mustPlan()
		if a.Plan != b.Plan {
			t.Errorf("%s and %s", a.Plan, b.Plan)
		}
	})
}

// A listing that needs more than one run (the process is cut off) lets a rebuild asked for by a
// person come to its end.
func TestRebuildByHandNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ruins()
		left := 0
		j := w.job(t, func(c *settings) {
			c.sweep.Page = 5
			c.sweep.Proceed = func(context.Context) error {
				if left--; left < 0 {
					return errors.New("the process ends")
				}
				return nil
			}
		})
		asked := time.Now()
		var last schedule.Outcome
		for range 40 {
			left = 20 // calls
			r, err := j.Reconciler.Run(t.Context(), &schedule.Run{Ask: "rebuild", At: asked, By: "anna", Why: "the disk is gone"})
			if err == nil && r.Result == schedule.OK {
				return
			}
			last = r
			w.pass(time.Minute)
		}
		t.Errorf("it has not ended after 40 attempts with 20 calls each; the last: %+v", last)
	})
}
