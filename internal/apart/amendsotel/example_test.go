package amendsotel_test

import (
	"context"
	"errors"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/amends-dev/amends/amendsotel"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A program has a span for each attempt, and finds them by the work id.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // a program has an exporter for its collector, and WithBatcher
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	c, err := coordinator.New(memory.New(nil), &coordinator.Options{Listener: amendsotel.New(tracers, nil), Log: silent()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := book(c); err != nil {
		fmt.Println(err)
		return
	}
	trip := amendsotel.TraceID(saga.ID{Saga: "book-trip", Work: "trip:4711"}, "")
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name, span.SpanContext.TraceID() == trip)
	}
	// Output:
	// book-trip train true
	// book-trip seat true
}

// book runs a saga of two steps.
func book(c *coordinator.Coordinator) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	train := func(context.Context, saga.Call[string]) (string, error) { return "ticket_1", nil }
	seat := func(context.Context, saga.Call[string]) (string, error) { return "seat_1", nil }
	trip, err := saga.Define("book-trip", 1,
		saga.Do("train", train).Idempotent().NoUndo("a ticket that is not used lapses"),
		saga.Do("seat", seat).Idempotent().NoUndo("so does a seat"))
	if err != nil {
		return err
	}
	if err := c.Register(ctx, trip); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	if err := trip.Start(ctx, c, "trip:4711", "Rome"); err != nil {
		return err
	}
	_, err = c.Wait(ctx, "book-trip", "trip:4711")
	stop()
	return errors.Join(err, <-ended)
}
