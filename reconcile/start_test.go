package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// statement is a coordinator that knows a saga which takes its time, and is undone when it is given up.
func statement(t *testing.T, db *memory.DB, takes time.Duration) *coordinator.Coordinator {
	t.Helper()
	silent := logrus.New()
	silent.SetLevel(logrus.PanicLevel)
	c, err := coordinator.New(db, &coordinator.Options{Log: silent, Poll: 5 * time.Second, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(context.Context, saga.Call[string]) (struct{}, error) { return struct{}{}, nil }
	undo := func(context.Context, saga.Call[string], struct{}) error { return nil }
	p, err := saga.Define("statement", 1,
		saga.Do("draw", nothing).Idempotent().Once().NoID().Undo(undo),
		saga.Delay[string]("lies", takes), saga.Do("send", nothing).Idempotent().Once().NoID().NoUndo("it is a test"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return c
}

// statements is a job that starts an instance every hour.
func statements(t *testing.T, db *memory.DB, takes time.Duration, while reconcile.While, approved bool) (stop func()) {
	t.Helper()
	c := statement(t, db, takes)
	work := reconcile.Start(c, "statement", while, func(at time.Time) (string, error) { return at.Format(time.RFC3339), nil })
	jobs, err := schedule.New(db, []schedule.Job{{Name: "hourly", Schedule: "0 * * * *", Approved: approved, Overlap: schedule.BufferAll, Timeout: 12 * time.Hour, Work: work}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- c.Run(ctx) }()
	go func() { done <- jobs.Run(ctx) }()
	return func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	}
}

// At each instant one instance is started, keyed by it, those that were missed in one late run, each its own. What becomes of one while the
// one before is not at its end is as the job says.
func TestStartByTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		while    reconcile.While
		takes    time.Duration
		approved bool
		want     []string // the hour of each instance, and its status at five to five
	}{
		{"beside", reconcile.Beside, 90 * time.Minute, true, []string{"01 completed", "02 completed", "03 completed", "04 waiting"}},
		{"skip", reconcile.Skip, 90 * time.Minute, true, []string{"01 completed", "03 completed"}},
		{"queue", reconcile.Queue, 90 * time.Minute, true, []string{"01 completed", "02 completed", "03 waiting"}},
		{"cancel", reconcile.Cancel, 90 * time.Minute, true, []string{"01 compensated", "02 compensated", "03 compensated", "04 waiting"}},
		{"healthy", reconcile.Skip, 10 * time.Minute, true, []string{"01 completed", "02 completed", "03 completed", "04 completed"}},
		{"unapproved", reconcile.Beside, time.Minute, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := memory.New(nil) // its clock is that of the bubble: midnight
				defer statements(t, db, c.takes, c.while, c.approved)()
				pass(4*time.Hour + 55*time.Minute)
				if got := hours(t, db); !slices.Equal(got, c.want) {
					t.Errorf("there are %q, want %q", got, c.want)
				}
			})
		})
	}
	t.Run("queued", func(t *testing.T) { // none is lost while one takes longer than several instants
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := memory.New(nil)
			defer statements(t, db, 150*time.Minute, reconcile.Queue, true)()
			pass(12 * time.Hour)
			if got := hours(t, db); !slices.Equal(got, []string{"01 completed", "02 completed", "03 completed", "04 completed", "05 waiting"}) {
				t.Errorf("there are %q", got)
			}
			c := statement(t, db, time.Hour)
			work := reconcile.Start(c, "statement", reconcile.Queue, func(time.Time) (string, error) { return "", nil })
			if _, err := work(t.Context(), &schedule.Run{Job: "hourly", Instant: "1", At: time.Now(), Approved: true, Overlap: schedule.BufferOne}); err == nil || !strings.Contains(err.Error(), "BufferAll") {
				t.Errorf("of a job that leaves instants out: %v", err)
			}
		})
	})
	t.Run("paused while it waits", func(t *testing.T) { // nothing is started until it is unpaused
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := memory.New(nil)
			defer statements(t, db, 90*time.Minute, reconcile.Queue, true)()
			pass(2*time.Hour + 5*time.Minute)
			if err := schedule.Pause(t.Context(), db, "hourly", saga.Actor{Name: "anna", Reason: "the template is wrong"}); err != nil {
				t.Fatal(err)
			}
			pass(time.Hour)
			if got := hours(t, db); !slices.Equal(got, []string{"01 completed"}) {
				t.Errorf("while it is paused there are %q", got)
			}
			if err := schedule.Unpause(t.Context(), db, "hourly"); err != nil {
				t.Fatal(err)
			}
			pass(5 * time.Minute)
			if got := hours(t, db); !slices.Equal(got, []string{"01 completed", "02 waiting"}) {
				t.Errorf("behind the pause there are %q", got)
			}
		})
	})
	t.Run("a later one", func(t *testing.T) { // is not given up for an earlier one
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := memory.New(nil)
			if _, err := statement(t, db, 3*time.Hour).Start(t.Context(), "statement", "hourly:"+time.Now().UTC().Format("2006-01-02")+"T05:00:00Z", "", nil); err != nil {
				t.Fatal(err)
			}
			defer statements(t, db, 3*time.Hour, reconcile.Cancel, true)()
			pass(time.Hour + 5*time.Minute)
			if got := hours(t, db); !slices.Equal(got, []string{"05 waiting", "01 waiting"}) {
				t.Errorf("there are %q", got)
			}
		})
	})
	t.Run("by hand", func(t *testing.T) { // it is that of the latest instant, once
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := memory.New(nil)
			stop := statements(t, db, time.Minute, reconcile.Skip, true)
			pass(time.Hour + 5*time.Minute)
			stop()
			for _, want := range [][]string{{"01 completed"}, {"01 completed", "02 completed"}} {
				if _, err := schedule.Request(t.Context(), db, "hourly", "", saga.Actor{Name: "anna", Reason: "now"}); err != nil {
					t.Fatal(err)
				}
				stop := statements(t, db, time.Minute, reconcile.Skip, true)
				pass(10 * time.Minute)
				stop()
				if got := hours(t, db); !slices.Equal(got, want) {
					t.Errorf("there are %q, want %q", got, want)
				}
				pass(time.Hour)
			}
		})
	})
	t.Run("backfilled", func(t *testing.T) { // it gives up none that goes on, and waits for it
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := memory.New(nil)
			defer statements(t, db, 30*time.Minute, reconcile.Cancel, true)()
			pass(time.Hour + 5*time.Minute)
			before := time.Now().Truncate(time.Hour).Add(-3 * time.Hour)
			rows, err := schedule.Backfill(t.Context(), db, "hourly", before, before.Add(90*time.Minute), saga.Actor{Name: "anna", Reason: "we begin earlier"}, false)
			if err != nil || len(rows) != 2 {
				t.Fatal(rows, err)
			}
			pass(5 * time.Minute)
			if got := hours(t, db); !slices.Equal(got, []string{"01 waiting"}) {
				t.Errorf("while one goes on there are %q", got)
			}
			pass(45 * time.Minute)
			if got := hours(t, db); !slices.Equal(got, []string{"01 completed", "22 waiting"}) {
				t.Errorf("behind it there are %q", got)
			}
		})
	})
	t.Run("cut off", func(t *testing.T) { // a late run that goes on gives up none of what it has started, and none of another job
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := memory.New(nil)
			stop := statements(t, db, time.Hour, reconcile.Cancel, true)
			pass(time.Minute)
			stop()
			pass(2*time.Hour + 5*time.Minute)
			c, today := statement(t, db, time.Hour), time.Now().UTC().Format("2006-01-02")
			for _, work := range []string{"hourly:" + today + "T01:00:00Z", "hourly:" + today + "T02:00:00Z", "hourly:eu:" + today + "T07:00:00Z"} {
				if _, err := c.Start(t.Context(), "statement", work, "", nil); err != nil {
					t.Fatal(err)
				}
			}
			defer statements(t, db, time.Hour, reconcile.Cancel, true)()
			pass(time.Minute)
			if got := hours(t, db); !slices.Equal(got, []string{"01 waiting", "02 waiting", "07 waiting"}) {
				t.Errorf("behind an attempt that was cut off there are %q", got)
			}
		})
	})
	t.Run("missed", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			db := memory.New(nil)
			stop := statements(t, db, time.Second, reconcile.Beside, true)
			pass(time.Minute)
			stop()
			pass(4*time.Hour + 5*time.Minute)
			defer statements(t, db, time.Second, reconcile.Beside, true)()
			pass(time.Minute)
			if got := hours(t, db); !slices.Equal(got, []string{"01 completed", "02 completed", "03 completed", "04 completed"}) {
				t.Errorf("of four that were missed there are %q", got)
			}
			runs, err := db.Runs(t.Context(), schedule.RunFilter{})
			if err != nil || len(runs) != 1 || runs[0].Applied != 4 {
				t.Errorf("the runs are %+v, %v", runs, err)
			}
		})
	})
}

// hours are the instances, by the hour in their work ids.
func hours(t *testing.T, db *memory.DB) (all []string) {
	t.Helper()
	for h, err := range coordinator.NewOperator(db).List(t.Context(), coordinator.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		_, at, _ := strings.Cut(h.ID.Work, "T")
		all = append(all, fmt.Sprintf("%s %s", at[:2], h.Status))
	}
	return all
}
