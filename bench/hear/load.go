package hear

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/internal/intake"
)

// Load is a closed loop: InFlight deliveries at any time, for a while.
type Load struct {
	InFlight int
	WarmUp   time.Duration // runs before anything is measured
	Duration time.Duration // no delivery begins after it
	Meter    cost.Meter
}

// Accepted is what a load showed.
type Accepted struct {
	Deliveries int
	Wall       time.Duration
	P50, P99   time.Duration // of a delivery, from its call to the durable answer
	Cost       cost.Reading  // of all of them
}

// Drive runs the load.
func (l Load) Drive(ctx context.Context, a Acceptor) (Accepted, error) {
	var last atomic.Int64
	if _, err := l.run(ctx, a, &last, l.WarmUp); err != nil {
		return Accepted{}, err
	}
	before, err := l.Meter.Read(ctx)
	if err != nil {
		return Accepted{}, err
	}
	start := time.Now()
	took, err := l.run(ctx, a, &last, l.Duration)
	if err != nil {
		return Accepted{}, err
	}
	if len(took) == 0 {
		return Accepted{}, errors.New("not one delivery was accepted in the measured time")
	}
	wall := time.Since(start)
	after, err := l.Meter.Read(ctx)
	if err != nil {
		return Accepted{}, err
	}
	slices.Sort(took)
	return Accepted{
		Deliveries: len(took),
		Wall:       wall,
		P50:        took[(len(took)*50+99)/100-1],
		P99:        took[(len(took)*99+99)/100-1],
		Cost:       after.Sub(before),
	}, nil
}

// run keeps deliveries in flight for d and returns how long each took.
func (l Load) run(ctx context.Context, a Acceptor, last *atomic.Int64, d time.Duration) ([]time.Duration, error) {
	end := time.Now().Add(d)
	each := make([][]time.Duration, l.InFlight)
	g, ctx := errgroup.WithContext(ctx)
	for i := range each {
		g.Go(func() error {
			for start := time.Now(); start.Before(end); {
				n := last.Add(1)
				if err := a.Accept(ctx, []intake.Event{event(n, n, 1)}); err != nil {
					return err
				}
				now := time.Now()
				each[i] = append(each[i], now.Sub(start))
				start = now
			}
			return nil
		})
	}
	err := g.Wait()
	return slices.Concat(each...), err
}
