package schedule_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/memory"
)

// A time that the clocks leap over runs at the leap: on the 29th of March no clock in Vienna shows
// 02:30.
func ExampleSchedule_Upcoming() {
	s, err := schedule.Parse("30 2 * * *", "Europe/Vienna")
	if err != nil {
		log.Fatal(err)
	}
	for _, at := range s.Upcoming(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC), 3) {
		fmt.Println(at.Format("Mon 2006-01-02 15:04:05 MST"))
	}
	// Output:
	// Sat 2026-03-28 02:30:00 CET
	// Sun 2026-03-29 03:00:00 CEST
	// Mon 2026-03-30 02:30:00 CEST
}

// Every process that is deployed does this, on the database they share; each instant is run by one
// of them.
func ExampleRunner() {
	began := time.Now()
	store := memory.New(&memory.Options{Now: func() time.Time { // its clock: soon it is five past ten
		return time.Date(2026, 6, 15, 10, 4, 59, 900_000_000, time.UTC).Add(time.Since(began))
	}})
	ctx, stop := context.WithCancel(context.Background())
	runner, err := schedule.New(store, []schedule.Job{{
		Name: "shop:sweep", Schedule: "*/5 * * * *",
		Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			defer stop() // the example is over
			out := schedule.Outcome{Result: schedule.OK, Before: r.Watermark, After: r.Watermark}
			for page := range 3 { // of a listing, say
				if err := r.Proceed(ctx); err != nil {
					return out, err
				}
				out.Seen, out.After = out.Seen+100, fmt.Sprint("page ", page)
				r.Report(out)
			}
			return out, nil
		},
	}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := runner.Run(ctx); err != nil {
		log.Fatal(err)
	}
	runs, err := store.Runs(context.Background(), schedule.RunFilter{Job: "shop:sweep"})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range runs {
		fmt.Printf("%s: %s, %d seen, up to %s\n", r.Instant, r.Result, r.Seen, r.After)
	}
	// Output:
	// 2026-06-15T10:05:00Z: ok, 300 seen, up to page 2
}
