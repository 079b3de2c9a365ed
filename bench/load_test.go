package bench

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/workload"
)

// subject is what is measured, on a ledger of its own.
type subject struct {
	ledger, address string
	do              func(ctx context.Context, i int) error // many at once, each i once
	close           func() error
}

// warm is how many operations run before anything is measured.
func warm(inFlight int) int { return max(2*inFlight, 100) }

// figures are of n operations.
type figures struct {
	n        int
	wall     time.Duration
	p50, p99 time.Duration
	cost     cost.Reading
	peak     int64 // bytes of this process
}

func (f *figures) perSecond() float64 { return float64(f.n) / f.wall.Seconds() }

// cpu is what each operation cost, in milliseconds of this process and of the database.
func (f *figures) cpu() float64 { return ms(f.cost.EngineCPU+f.cost.DatabaseCPU) / float64(f.n) }

// measure runs n operations, inFlight of them at any time, behind those that warm up, and closes the
// subject. The timer of the benchmark runs as long as what is measured, if it is timed.
func (s subject) measure(b *testing.B, inFlight, n int, timed bool) (f figures) {
	b.Helper()
	b.StopTimer()
	settle(b)
	must(b, cost.ResetPeakMemory())
	took, free := workload.OffHeap[time.Duration](n)
	defer free()
	ctx := b.Context()
	_, err := s.loop(ctx, 0, warm(inFlight), inFlight, nil)
	must(b, err)
	m := meter(b, s.ledger, s.address)
	before, err := m.Read(ctx)
	must(b, err)
	if timed {
		b.StartTimer()
	}
	f.n = n
	f.wall, err = s.loop(ctx, warm(inFlight), n, inFlight, took)
	b.StopTimer()
	must(b, err)
	after, err := m.Read(ctx)
	must(b, err)
	f.cost = after.Sub(before)
	f.peak, err = cost.PeakMemory()
	must(b, err, s.close(), m.Close()) // in this order: see cost.OpenSQLite
	slices.Sort(took)
	f.p50, f.p99 = took[(n*50+99)/100-1], took[(n*99+99)/100-1]
	return f
}

// loop is closed: each of its runners begins an operation when its last one has ended.
func (s subject) loop(ctx context.Context, first, n, inFlight int, took []time.Duration) (time.Duration, error) {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range min(inFlight, n) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				start := time.Now()
				if err := s.do(ctx, first+i); err != nil {
					return err
				}
				if took != nil {
					took[i] = time.Since(start)
				}
			}
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

// As many operations as asked for are in flight, each runs once, and the first that fails ends the loop.
func TestLoop(t *testing.T) {
	var now, most atomic.Int64
	runs := make([]atomic.Int64, 100)
	s := subject{do: func(_ context.Context, i int) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		runs[i].Add(1)
		return nil
	}}
	took := make([]time.Duration, 90)
	if _, err := s.loop(t.Context(), 10, 90, 8, took); err != nil || most.Load() > 8 {
		t.Errorf("%d in flight, want at most 8 (%v)", most.Load(), err)
	}
	for i := range runs {
		if want := int64(min(i/10, 1)); runs[i].Load() != want {
			t.Errorf("operation %d ran %d times, want %d", i, runs[i].Load(), want)
		}
	}
	broken := errors.New("disk full")
	s.do = func(context.Context, int) error { return broken }
	if _, err := s.loop(t.Context(), 0, 1<<40, 4, nil); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
