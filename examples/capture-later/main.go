// Command capture-later authorizes a payment now and captures it after a while, unless the booking is cancelled
// meanwhile. While it waits nothing runs: stop the program, and start it again when you like.
//
//	go run ./examples/capture-later -delay 10s
//	amends --db bookings.db show booking:4711
//	amends --db bookings.db wake booking:4711 --reason "the customer does not want to wait"
//	amends --db bookings.db cancel booking:4711 --reason "the customer changed his mind"
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// Booking is what a customer has booked.
type Booking struct {
	Customer string
	Cents    int
}

// Payments is the customer's bank. A real one is asked by HTTP, under c.Key.
type Payments struct{}

func (Payments) authorize(_ context.Context, c saga.Call[Booking]) (string, error) {
	fmt.Printf("authorized %d cents of %s\n", c.Input.Cents, c.Input.Customer)
	return "aut_" + c.Work, nil
}

func (Payments) release(_ context.Context, c saga.Call[Booking], _ *string) error {
	fmt.Printf("released the money of %s\n", c.Input.Customer)
	return nil
}

func (Payments) capture(_ context.Context, c saga.Call[Booking]) (string, error) {
	fmt.Printf("captured %s\n", c.ExternalID("authorize"))
	return "cap_" + c.Work, nil
}

// captureLater is the saga. It has a month for the whole; what is not captured by then is released.
func captureLater(p Payments, delay time.Duration) (*saga.Definition[Booking], error) {
	const month = 30 * 24 * time.Hour
	return saga.Define("capture-later", 1,
		saga.Deadline[Booking](month, saga.Compensate),
		saga.Do("authorize", p.authorize).Keyed(2*month).Once().UndoMaybe(p.release),
		saga.Delay[Booking]("cooling-off", delay),
		saga.Do("capture", p.capture).Keyed(2*month).Once().NoUndo("a refund is a saga of its own").Pivot(),
	)
}

func main() {
	delay := flag.Duration("delay", 14*24*time.Hour, "how long the customer may change his mind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *delay)
	if stop(); err != nil {
		log.Fatal(err)
	}
}

// run takes one booking and works until it is at its end, or ctx is.
func run(ctx context.Context, delay time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d, err := captureLater(Payments{}, delay)
	if err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, "bookings.db", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := coordinator.New(db, nil)
	if err != nil {
		return err
	}
	if err := c.Register(ctx, d); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()
	if err := d.Start(ctx, c, "booking:4711", Booking{"Ada", 12900}, saga.StartOptions{Source: "web", Cause: "the form"}); err != nil {
		return err
	}
	if s, err := c.Wait(ctx, "capture-later", "booking:4711"); err == nil {
		fmt.Printf("%s: %s\n", s.Status, s.Next)
	}
	stop()
	return <-stopped
}
