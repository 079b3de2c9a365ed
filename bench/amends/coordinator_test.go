package amends

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/memory"
)

// forgetful takes every record 2 ms later and keeps none.
type forgetful struct {
	ledger.Ledger
	last atomic.Int64
}

func (l *forgetful) Append(_ context.Context, _ machine.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	time.Sleep(2 * time.Millisecond)
	now := time.Now()
	answers := make([]ledger.Answer, len(entries))
	for i := range entries {
		number := entries[i].Number
		if number == 0 {
			number = l.last.Add(1)
		}
		answers[i] = ledger.Answer{Result: ledger.Appended, At: now, Number: number}
	}
	return answers, nil
}

// BenchmarkCoordinator is the coordinator's own share: sagas over a ledger that
// keeps nothing, 1,024 in flight. One iteration is one saga.
//
//	go test ./amends -run - -bench Coordinator -memprofile mem.out -cpuprofile cpu.out
func BenchmarkCoordinator(b *testing.B) {
	steps, free := workload.NewSteps(0, b.N)
	defer free()
	e, err := start(b.Context(), &forgetful{Ledger: memory.New(nil)}, steps, coordinator.Options{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	var g errgroup.Group
	var next atomic.Int64
	for range 1024 {
		g.Go(func() error {
			for n := int(next.Add(1)) - 1; n < b.N; n = int(next.Add(1)) - 1 {
				if err := e.Run(b.Context(), workload.NewSaga(n)); err != nil && !errors.Is(err, ledger.ErrNotFound) { // it had ended, and nothing is kept
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/saga")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sagas/s")
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	if err := steps.Verify(b.N); err != nil {
		b.Fatal(err)
	}
}

// cpu is what this process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
