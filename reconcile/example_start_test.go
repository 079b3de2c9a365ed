package reconcile_test

import (
	"context"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/memory"
)

// On the first of each month, at six in Vienna, a statement of the month before is drawn up.
func ExampleStart() {
	monthBefore := func(at time.Time) (string, error) { return at.AddDate(0, 0, -1).Format("2006-01"), nil }
	_ = func(ctx context.Context, db *memory.DB, c *coordinator.Coordinator) error {
		jobs, err := schedule.New(db, []schedule.Job{{
			Name: "statements", Schedule: "0 6 1 * *", Zone: "Europe/Vienna", Approved: true, Overlap: schedule.BufferAll, CatchUp: 7 * 24 * time.Hour,
			Work: reconcile.Start(c, "statement", reconcile.Queue, monthBefore),
		}}, nil)
		if err != nil {
			return err
		}
		return c.Run(ctx, jobs)
	}
	// Output:
}
