package amendsprom_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A program exports what it does and what its ledger says.
func Example() {
	db, reg := memory.New(nil), prometheus.NewRegistry()
	c, err := coordinator.New(db, &coordinator.Options{Listener: amendsprom.New(reg), Log: silent()})
	if err != nil {
		fmt.Println(err)
		return
	}
	amendsprom.Ledger(reg, db, nil)
	metrics := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})

	if err := book(c); err != nil {
		fmt.Println(err)
		return
	}
	answer := httptest.NewRecorder()
	metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "amends_works") || strings.HasPrefix(line, "amends_step_attempts") {
			fmt.Println(line)
		}
	}
	// Output:
	// amends_step_attempts_total{direction="forward",outcome="done",saga="book-trip",step="train"} 1
	// amends_works{saga="book-trip",status="completed"} 1
}

// book runs a saga of one step.
func book(c *coordinator.Coordinator) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	train := func(context.Context, saga.Call[string]) (string, error) { return "ticket_1", nil }
	trip, err := saga.Define("book-trip", 1, saga.Do("train", train).Idempotent().NoUndo("a ticket that is not used lapses"))
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
