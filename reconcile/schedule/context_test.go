package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// What was made once for many runs is told by the context which run it works for: a pause and an
// approval reach it.
func TestContextKnowsItsRun(t *testing.T) {
	t.Parallel()
	began := time.Now()
	store := memory.New(&memory.Options{Now: func() time.Time { // soon it is five past ten
		return time.Date(2026, 6, 15, 10, 4, 59, 900_000_000, time.UTC).Add(time.Since(began))
	}})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ran := false
	var wrong error
	work := func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
		defer stop()
		ran, wrong = true, told(ctx, store, r)
		return schedule.Outcome{Result: schedule.OK}, nil
	}
	runner, err := schedule.New(store, []schedule.Job{{Name: "job", Schedule: "*/5 * * * *", Approved: true, Work: work}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !ran || wrong != nil {
		t.Errorf("the job ran: %v; %v", ran, wrong)
	}
}

// told says what is wrong with what the work's context is told of its run.
func told(ctx context.Context, store schedule.Store, r *schedule.Run) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if schedule.Of(ctx) != r {
		return errors.New("its context has another run")
	}
	if !r.Approved {
		return errors.New("the approved job is told that it is not")
	}
	if err := schedule.Proceed(ctx); err != nil {
		return fmt.Errorf("before the pause: %w", err)
	}
	if err := schedule.Pause(ctx, store, "job", saga.Actor{Name: "anna", Reason: "enough"}); err != nil {
		return err
	}
	if err := schedule.Proceed(ctx); !errors.Is(err, schedule.ErrPaused) {
		return fmt.Errorf("behind the pause it may go on: %w", err)
	}
	return nil
}

// Outside of a run work goes on for as long as its context does.
func TestContextWithoutRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if err := schedule.Proceed(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	if err := schedule.Proceed(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("behind the end of the context: %v", err)
	}
}
