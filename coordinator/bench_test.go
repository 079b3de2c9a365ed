package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// BenchmarkSagas measures what the coordinator itself costs: four steps that do nothing, on the
// ledger in memory. b.N is sagas, so ns/op is the time of one at that many in flight.
func BenchmarkSagas(b *testing.B) {
	for _, inFlight := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("in_flight=%d", inFlight), func(b *testing.B) { sagas(b, inFlight) })
	}
}

func sagas(b *testing.B, inFlight int) { //nolint:thelper // it is the test itself, once for each case
	l := memory.New(nil)
	c, err := coordinator.New(l, &coordinator.Options{Log: silent()})
	if err != nil {
		b.Fatal(err)
	}
	step := func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "id"}, nil }
	undo := func(context.Context, saga.Call[order], *thing) error { return nil }
	d, err := saga.Define(orderSaga, 1,
		saga.Do("customer", step).Idempotent().NoUndo("customers outlive their orders"),
		saga.Do("invoice", step).Idempotent().UndoMaybe(undo),
		saga.Do("mark", step).Idempotent().UndoMaybe(undo).Pivot(),
		saga.Do("receipt", step).AtMostOnce().NoUndo("a mail cannot be unsent"),
	)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Register(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	opened := make(chan struct{})
	go func() { close(opened); ended <- c.Run(ctx) }()
	<-opened
	if _, err := c.Start(ctx, orderSaga, "first", order{}, nil); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Wait(ctx, orderSaga, "first"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	next := make(chan int)
	var clients sync.WaitGroup
	for range inFlight {
		clients.Go(func() {
			for i := range next {
				work := fmt.Sprintf("o%d", i)
				_, err := c.Start(ctx, orderSaga, work, order{}, nil)
				if err == nil {
					_, err = c.Wait(ctx, orderSaga, work)
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	clients.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sagas/s")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
