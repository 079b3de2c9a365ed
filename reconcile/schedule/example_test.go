package schedule_test

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/store/sqlite"
)

// A time that the clocks leap over runs at the leap: on the 29th of March no clock in Vienna shows 02:30.
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

// Every process that is deployed does this; each instant is run by one of them.
func ExampleRunner() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := sqlite.Open(ctx, "ledger.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	runner, err := schedule.New(store, []schedule.Job{{
		Name: "shop:sweep", Schedule: "*/5 * * * *",
		Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			out := schedule.Outcome{Verdict: schedule.OK, Before: r.Watermark, After: r.Watermark}
			for page := range 10 { // stands for the pages of a listing
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
		log.Print(err)
	}
}
