// Command service is a whole program to begin from: paid orders of a shop become invoices in the
// books, by webhooks at once and by a comparison every night; cancelled ones are voided. It has a
// health check, counters and a slog logger, and runs on a SQLite file or on Postgres. main.go puts
// it together, saga.go says what is done, and shop.go and books.go speak with the two systems.
package main

import (
	"context"
	"errors"
	"expvar"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Getenv, slog.Default(), expvar.NewMap("amends"))
	if err != nil {
		slog.Error("the service ended", "error", err)
		os.Exit(1)
	}
}

// run runs everything that the process has until ctx ends. DATABASE is a path or postgres://…, LISTEN
// host:port, SHOP_URL and BOOKS_URL are the two systems, and the shop signs with WEBHOOK_SECRET.
func run(ctx context.Context, env func(string) string, logger *slog.Logger, counted *expvar.Map) (err error) {
	log := coordinator.Slog(logger)
	shop, errShop := newShop(env("SHOP_URL"))
	books, errBooks := newBooks(env("BOOKS_URL"))
	invoicing, errSaga := define(books)
	if err := errors.Join(errShop, errBooks, errSaga); err != nil {
		return err
	}
	db, err := store.Open(ctx, env("DATABASE"), &store.Options{Migrate: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// What runs sagas.
	c, err := coordinator.New(db, &coordinator.Options{ //nolint:contextcheck // what it does is bounded by Run's context
		Log: log, Listener: coordinator.Counters(counted),
		Destinations: map[string]coordinator.Limit{"books": {Concurrent: 8, PerSecond: 20}},
	})
	if err != nil {
		return err
	}
	if err := c.Register(ctx, invoicing); err != nil {
		return err
	}

	// What decides which run: the shop, by its webhooks.
	orders := &inbox.Source{
		Name: "shop", Saga: sagaName, Fetch: shop.fetch, Decide: decide, Apply: c.Apply,
		Webhooks: &webhook.Sender{
			Provider: webhook.Standard(webhook.Mapping{Version: "data.version"}),
			Secrets:  []webhook.Secret{{Name: "2026-11", Text: env("WEBHOOK_SECRET")}},
		},
	}
	in, err := inbox.New(db, []*inbox.Source{orders}, &inbox.Options{Log: log})
	if err != nil {
		return err
	}
	receiver, err := webhook.New(in, &webhook.Options{Log: log})
	if err != nil {
		return err
	}

	// What finds and repairs what webhooks, people and crashes have left, every night.
	r, err := reconcile.New(db, reconcile.Config{
		Name: "orders", Source: orders, Type: "order", All: shop.all, Changed: shop.changed,
		Begin:       time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), // older orders are left to comparisons, which have bounds
		Destination: reconcile.Destination{Marked: books.marked, Find: books.under},
		Coordinator: c, Step: "invoice", Fields: reconcile.FieldsOf(fields),
	}, &reconcile.Options{Log: log})
	if err != nil {
		return err
	}
	jobs, err := schedule.New(db, []schedule.Job{
		{Name: "orders-changed", Schedule: "*/5 * * * *", Approved: true, Work: r.SyncChanges},
		{Name: "orders", Schedule: "15 3 * * *", Zone: "Europe/Vienna", Work: r.Run}, // plans only, until a person approves it
	}, &schedule.Options{Log: log})
	if err != nil {
		return err
	}

	server := receiver.Server(env("LISTEN"))
	server.Handler = handler(receiver, c, counted)
	return c.Run(ctx, in, jobs, server)
}

// handler serves webhooks, and those who watch the process.
func handler(webhooks http.Handler, c *coordinator.Coordinator, counted *expvar.Map) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/webhooks/", webhooks)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := c.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/counters", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(counted.String())) })
	return mux
}
