package amends

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store/memory"
)

// BenchmarkCoordinator is the coordinator's own share: sagas over a ledger that
// costs next to nothing, 1,024 in flight. One iteration is one saga.
//
//	go test ./amends -run - -bench Coordinator -memprofile mem.out -cpuprofile cpu.out
func BenchmarkCoordinator(b *testing.B) {
	steps, free := workload.NewSteps(0, b.N)
	defer free()
	e, err := start(b.Context(), memory.New(nil), steps, coordinator.Options{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var g errgroup.Group
	g.SetLimit(1024)
	for n := range b.N {
		g.Go(func() error { return e.Run(b.Context(), workload.NewSaga(n)) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	if err := steps.Verify(b.N); err != nil {
		b.Fatal(err)
	}
}
