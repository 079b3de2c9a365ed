package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// deaf lets Deliver ignore what it is told about one key while on is true.
func deaf(key string, on *bool) func(*settings) {
	return func(c *settings) {
		many(c)
		deliver := c.Deliver
		c.Deliver = func(ctx context.Context, ch inbox.Snapshot) error {
			if *on && ch.String() == key {
				return nil
			}
			return deliver(ctx, ch)
		}
	}
}

// An action that was carried out and changed nothing is not a success every night. The second
// night, and for as long as nothing it rests on changes, it is for a person; once something changes
// it has its turn again.
func TestWhatIsInVainIsForAPerson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		planned func(*world, string)
		since   func(*world, string)
	}{
		"a withdrawal": {cancelled, func(w *world, key string) { w.orders[key] = &order{Version: 3, Total: "10.00", Cancelled: true} }},
		"a revision":   {stale, func(w *world, key string) { w.changed(key, "13.00") }},
		"a start":      {(*world).sold, func(w *world, key string) { w.changed(key, "11.00") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wide(0)
				key := keyOf(500)
				c.planned(w, key)
				ignored := true
				j := w.job(t, deaf(key, &ignored))
				if r := j.mustRun(); r.Applied != 1 {
					t.Fatalf("%+v", r)
				}
				for night := range 3 {
					w.pass(24 * time.Hour)
					r := j.mustRun()
					if row := j.row(key); row.Action != plan.Ask || row.Suggestion == "" || !strings.Contains(row.Reason, "nothing came of it") || r.Planned != 0 || r.NeedsReview != 1 {
						t.Errorf("night %d: %s, %s (%s); %+v", night+2, row.Class, row.Action, row.Reason, r)
					}
				}
				ignored = false
				c.since(w, key)
				if r := j.mustRun(); r.Applied != 1 || r.NeedsReview != 0 || r.Result != schedule.OK {
					t.Errorf("something changed: %+v", r)
				}
				if r := j.mustRun(); r.Planned+r.NeedsReview != 0 {
					t.Errorf("it is not home: %+v; %+v", r, j.rows())
				}
			})
		})
	}
}

// What is planned for the first time, or failed, or differs anew after it was well, is not in vain.
func TestWhatIsNotInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		key := keyOf(3)
		j := w.job(t, func(c *settings) {
			many(c)
			c.Policy.Fields = map[string]plan.Rule{"total": plan.Enforce}
		})
		for night := range 3 { // somebody writes the same over ours, every other night
			w.live(key)[0].Fields["total"] = "0.01"
			if r := j.mustRun(); r.Applied != 1 || r.NeedsReview != 0 {
				t.Errorf("night %d: %+v", night, r)
			}
			if r := j.mustRun(); r.Planned+r.NeedsReview != 0 {
				t.Errorf("night %d: %+v", night, r)
			}
		}
		w.works[key].Status, w.works[key].Reason = saga.Review, saga.ReasonInDoubt
		if r := j.mustRun(); r.NeedsReview != 1 || strings.Contains(j.row(key).Reason, "nothing came of it") {
			t.Errorf("what is for a person anyway: %+v", r)
		}
	})
}
