package workload

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/bench/cost"
)

// fake is an engine without a ledger; run may misbehave.
type fake struct {
	steps  *Steps
	run    func(s Saga) error
	closes func()
}

func (f *fake) Run(_ context.Context, s Saga) error { return f.run(s) }

func (f *fake) Close() error {
	if f.closes != nil {
		f.closes()
	}
	return nil
}

// all runs every step once.
func (f *fake) all(s Saga) error {
	for step := range StepCount {
		f.steps.Do(s.Number, step)
	}
	return nil
}

// counter is a meter that shows one commit more at every reading.
type counter struct{ readings int64 }

func (c *counter) Read(context.Context) (cost.Reading, error) {
	c.readings++
	return cost.Reading{Commits: c.readings * c.readings}, nil
}

func (c *counter) Close() error { return nil }

func drive(t *testing.T, load Load, misbehave func(*fake)) (Result, error) {
	t.Helper()
	f := &fake{steps: NewSteps(load.First, 1<<20)}
	f.run = f.all
	misbehave(f)
	return load.Drive(t.Context(), f, f.steps, &counter{})
}

var short = Load{InFlight: 8, WarmUp: time.Millisecond, Duration: 10 * time.Millisecond, First: 1000}

// A run in which a step was skipped has no figures.
func TestSkippedStepFailsTheRun(t *testing.T) {
	_, err := drive(t, short, func(f *fake) {
		f.run = func(s Saga) error {
			for step := range StepCount - 1 {
				f.steps.Do(s.Number, step)
			}
			return nil
		}
	})
	if err == nil || !strings.Contains(err.Error(), `"receipt" ran 0 times`) {
		t.Errorf("got %v, want an error that names the skipped step", err)
	}
}

// A step that runs again after its saga has ended is found when the engine is closed.
func TestLateRepeatFailsTheRun(t *testing.T) {
	_, err := drive(t, short, func(f *fake) {
		f.closes = func() { f.steps.Do(short.First, 1) }
	})
	if err == nil || !strings.Contains(err.Error(), `"invoice" ran 2 times`) {
		t.Errorf("got %v, want an error that names the repeated step", err)
	}
}

// The first saga that fails ends the run, with its work in the error.
func TestFailingSagaEndsTheRun(t *testing.T) {
	broken := errors.New("disk full")
	_, err := drive(t, Load{InFlight: 4, Duration: time.Hour, First: 7}, func(f *fake) {
		f.run = func(Saga) error { return broken }
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "shop:order:") {
		t.Errorf("got %v, want %v with the work it happened to", err, broken)
	}
}

// As many sagas as asked for are in flight, and never more.
func TestLoadInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu        sync.Mutex
			now, most int
		)
		result, err := drive(t, short, func(f *fake) {
			f.run = func(s Saga) error {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				<-time.After(time.Millisecond)
				mu.Lock()
				now--
				mu.Unlock()
				return f.all(s)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if most != short.InFlight {
			t.Errorf("%d sagas were in flight, want %d", most, short.InFlight)
		}
		if result.Sagas != 80 || result.P50 != time.Millisecond || result.P99 != time.Millisecond || result.Wall != short.Duration {
			t.Errorf("odd figures: %+v", result)
		}
	})
}

// Costs are those between the warm-up and the last end: the second reading
// minus the first.
func TestCostsAreOfTheMeasuredPart(t *testing.T) {
	result, err := drive(t, short, func(*fake) {})
	if err != nil {
		t.Fatal(err)
	}
	if result.Cost.Commits != 2*2-1*1 {
		t.Errorf("%d commits, want the difference of two readings, 3", result.Cost.Commits)
	}
}

// External ids are 20 bytes, whatever the number of the saga.
func TestExternalIDLength(t *testing.T) {
	for _, saga := range []int{0, 12_345_678} {
		if id := NewSteps(saga, 1).Do(saga, 3); len(id) != 20 {
			t.Errorf("external id %q has %d bytes, want 20", id, len(id))
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, test := range []struct {
		sorted []time.Duration
		p      int
		want   time.Duration
	}{
		{hundred, 50, 50},
		{hundred, 99, 99},
		{[]time.Duration{1, 2, 3}, 50, 2},
		{[]time.Duration{7}, 99, 7},
		{nil, 50, 0},
	} {
		if got := percentile(test.sorted, test.p); got != test.want {
			t.Errorf("percentile %d of %d values: got %d, want %d", test.p, len(test.sorted), got, test.want)
		}
	}
}
