// Command quickstart is the smallest program that runs a saga. The README shows it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/ledger/sqlite"
	"github.com/amends-dev/amends/saga"
)

type Trip struct{ From, To string }

func book(what string) func(context.Context, saga.Call[Trip]) (string, error) {
	return func(_ context.Context, c saga.Call[Trip]) (string, error) {
		if what == "hotel" {
			return "", saga.Permanent(errors.New("no room in " + c.Input.To))
		}
		fmt.Println("booked a", what, "to", c.Input.To) // send c.Key along: it is the same on every attempt
		return what + "_1", nil
	}
}

func cancelTrain(_ context.Context, _ saga.Call[Trip], ticket *string) error {
	fmt.Println("cancelled", *ticket)
	return nil
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	trip, err := saga.Define("book-trip", 1,
		saga.Do("train", book("train")).Idempotent().ID(func(id string) string { return id }).Undo(cancelTrain),
		saga.Do("hotel", book("hotel")).Idempotent().NoUndo("it is the last step: there is nothing after it to fail"),
	)
	check(err)
	ledger, err := sqlite.Open(ctx, "trips.db", nil)
	check(err)
	c, err := coordinator.New(ledger, nil)
	check(err)
	check(c.Register(ctx, trip))
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	_, err = c.Start(ctx, "book-trip", "trip:4711", Trip{"Vienna", "Rome"}, nil) // again: the same trip, run once
	check(err)
	work, err := c.Wait(ctx, "book-trip", "trip:4711")
	check(err)
	fmt.Println(work.Status, "-", work.Next)
	stop()
	check(<-done)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
