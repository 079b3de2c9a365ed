package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/cost"
)

// Load is a closed loop: InFlight sagas at any time, for a while.
type Load struct {
	InFlight int
	WarmUp   time.Duration // runs before anything is measured
	Duration time.Duration // no saga is started after it
	First    int           // number of the first saga
}

// Result is what one measured load showed.
type Result struct {
	Sagas    int           // finished in the measured time
	Wall     time.Duration // first start to last end
	P50, P99 time.Duration // of a saga, start to end
	Cost     cost.Reading  // spent in the measured time, all sagas together
}

// Drive runs the load on an engine and returns the figures of its measured
// part. It closes the engine and then checks the steps of every saga.
func (l Load) Drive(ctx context.Context, e Engine, steps *Steps, meter cost.Meter) (Result, error) {
	result, finished, err := l.drive(ctx, e, steps, meter)
	if err := errors.Join(err, e.Close()); err != nil {
		return Result{}, err
	}
	return result, steps.Verify(finished)
}

func (l Load) drive(ctx context.Context, e Engine, steps *Steps, meter cost.Meter) (Result, int, error) {
	loop := &loop{engine: e, steps: steps, inFlight: l.InFlight, first: l.First}
	if _, err := loop.run(ctx, l.WarmUp); err != nil {
		return Result{}, 0, fmt.Errorf("warm-up: %w", err)
	}
	before, err := meter.Read(ctx)
	if err != nil {
		return Result{}, 0, err
	}
	start := time.Now()
	latencies, err := loop.run(ctx, l.Duration)
	if err != nil {
		return Result{}, 0, err
	}
	wall := time.Since(start)
	after, err := meter.Read(ctx)
	if err != nil {
		return Result{}, 0, err
	}
	slices.Sort(latencies)
	return Result{
		Sagas: len(latencies),
		Wall:  wall,
		P50:   percentile(latencies, 50),
		P99:   percentile(latencies, 99),
		Cost:  after.Sub(before),
	}, int(loop.next.Load()), nil
}

// loop numbers the sagas of a load across its warm-up and its measured part.
type loop struct {
	engine   Engine
	steps    *Steps
	inFlight int
	first    int
	next     atomic.Int64
}

// run keeps sagas in flight for d, waits for the last of them, and returns how
// long each one took. The first failing saga ends the loop.
func (l *loop) run(ctx context.Context, d time.Duration) ([]time.Duration, error) {
	end := time.Now().Add(d)
	perRunner := make([][]time.Duration, l.inFlight)
	g, ctx := errgroup.WithContext(ctx)
	for i := range perRunner {
		g.Go(func() (err error) {
			perRunner[i], err = l.runner(ctx, end)
			return err
		})
	}
	err := g.Wait()
	return slices.Concat(perRunner...), err
}

func (l *loop) runner(ctx context.Context, end time.Time) (took []time.Duration, err error) {
	for start := time.Now(); start.Before(end); {
		n := int(l.next.Add(1)) - 1
		if n >= l.steps.Capacity() {
			return took, fmt.Errorf("only %d sagas can be counted; shorten the run", l.steps.Capacity())
		}
		saga := NewSaga(l.first + n)
		if err := l.engine.Run(ctx, saga); err != nil {
			return took, fmt.Errorf("%s: %w", saga.Work, err)
		}
		if err := l.steps.done(saga.Number); err != nil {
			return took, err
		}
		now := time.Now()
		took = append(took, now.Sub(start))
		start = now
	}
	return took, nil
}

// percentile returns the smallest value that p percent of the sorted values do
// not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
