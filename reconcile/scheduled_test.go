package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A reconciler heeds approval and pause of the job that runs it, with nothing wired: before
// the approval it only plans, and a pause in the middle of its actions ends the run between two of
// them.
func TestApprovalAndPauseNeedNoWiring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newSagaWorld(), memory.New(nil)
		for n := range 20 {
			w.sold(fmt.Sprint(n))
		}
		ctx, stop := context.WithCancel(t.Context())
		pauses := make(chan struct{}, 1)
		p := w.bootWith(t, memory.New(nil), store, func(c *wiring) {
			find := c.Destination.Find
			c.Destination.Find = func(ctx context.Context, key string) ([]plan.Document, error) {
				select {
				case <-pauses:
					if err := schedule.Pause(ctx, store, "orders", saga.Actor{Name: "anna", Reason: "enough"}); err != nil {
						t.Error(err)
					}
				default:
				}
				return find(ctx, key)
			}
		})
		runner, err := schedule.New(store, []schedule.Job{{Name: "orders", Schedule: "@yearly", Work: p.Reconciler.Run}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- runner.Run(ctx) }()
		run := func(what string) schedule.RunRow {
			t.Helper()
			synctest.Wait()
			asked, err := schedule.Request(t.Context(), store, "orders", what, saga.Actor{Name: "anna", Reason: "test"})
			if err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Minute)
			row, err := store.Run(t.Context(), "orders", asked.Number)
			if err != nil {
				t.Fatal(err)
			}
			return row
		}
		started := func() (n int) {
			heads, err := p.Instances().Heads(t.Context(), "", 100)
			if err != nil {
				t.Fatal(err)
			}
			return len(heads)
		}
		pass(time.Minute)
		if r := run(""); r.Result != schedule.Refused || r.Planned != 20 || started() != 0 {
			t.Errorf("before the approval: %+v; %d were started", r, started())
		}
		if err := schedule.Approve(t.Context(), store, "orders", saga.Actor{Name: "anna", Reason: "read"}); err != nil {
			t.Fatal(err)
		}
		planned := run("plan")
		pauses <- struct{}{} // at the first look of the apply
		if r := run("apply " + planned.Plan); r.Result == schedule.OK || started() != 0 {
			t.Errorf("paused while it applies: %+v; %d were started", r, started())
		}
		if err := schedule.Unpause(t.Context(), store, "orders"); err != nil {
			t.Fatal(err)
		}
		if r := run(""); r.Result != schedule.OK || started() != 20 {
			t.Errorf("behind the pause: %+v; %d were started", r, started())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
