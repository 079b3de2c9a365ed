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

type Trip struct{ From, To string }

var tickets = map[string]string{} // the railway's, by idempotency key

func bookTrain(_ context.Context, c saga.Call[Trip]) (string, error) {
	fmt.Println("train to", c.Input.To, "booked") // a real one sends c.Key along: the same on every attempt
	tickets[c.Key] = "ticket_1"
	return tickets[c.Key], nil
}

// findTrain is asked when the answer of bookTrain was lost.
func findTrain(_ context.Context, c saga.Call[Trip]) (saga.Finding[string], error) {
	if ticket, ok := tickets[c.Key]; ok {
		return saga.Found(ticket), nil
	}
	return saga.NotFound[string](), nil
}

func cancelTrain(_ context.Context, _ saga.Call[Trip], ticket string) error {
	fmt.Println("cancelled", ticket)
	return nil
}

func bookHotel(_ context.Context, c saga.Call[Trip]) (string, error) {
	return "", saga.Permanent(errors.New("no room in " + c.Input.To))
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	trip := must(saga.Define("book-trip", 1,
		saga.Do("train", bookTrain).Find(findTrain).Undo(cancelTrain),
		saga.Do("hotel", bookHotel).Idempotent().NoUndo("a room that is not paid lapses by itself"),
	))
	c := must(coordinator.New(must(sqlite.Open(ctx, "trips.db", nil)), nil))
	must(0, c.Register(ctx, trip))
	stopped := make(chan error)
	go func() { stopped <- c.Run(ctx) }()

	must(0, trip.Start(ctx, c, "trip:4711", Trip{"Vienna", "Rome"})) // once, however often you run this
	work := must(c.Wait(ctx, "book-trip", "trip:4711"))
	fmt.Println(work.Status+":", work.Next)
	stop()
	must(0, <-stopped)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
