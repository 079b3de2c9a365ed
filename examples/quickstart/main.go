// Command quickstart is the smallest program that runs a saga. The README shows it.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

func bookTrain(_ context.Context, c saga.Call[string]) (string, error) {
	fmt.Println("train to", c.Input, "booked") // a real request carries c.Key: the same on every attempt
	return "ticket_1", nil
}

func cancelTrain(_ context.Context, c saga.Call[string], _ *string) error {
	fmt.Println("train to", c.Input, "cancelled")
	return nil
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	trip := must(saga.Define("book-trip", 1,
		saga.Do("train", bookTrain).Idempotent().UndoMaybe(cancelTrain),
		saga.Do("hotel", func(_ context.Context, c saga.Call[string]) (string, error) {
			return "", saga.Permanent(errors.New("no room in " + c.Input))
		}).Idempotent().NoUndo("an unpaid room lapses by itself")))
	c := must(coordinator.New(must(sqlite.Open(ctx, "trips.db", nil)), nil))
	must(0, c.Register(ctx, trip))
	stopped := make(chan error)
	go func() { stopped <- c.Run(ctx) }()
	must(0, trip.Start(ctx, c, "trip:4711", "Rome")) // once, however often you run this
	fmt.Println(must(c.Wait(ctx, "book-trip", "trip:4711")).Next)
	stop()
	must(0, <-stopped)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
