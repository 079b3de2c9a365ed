package main

import (
	"context"
	"errors"
	"expvar"
	"log/slog"
	"net/http"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/store"
)

// run runs everything that the process has until ctx ends.
func run(ctx context.Context, s settings, logger *slog.Logger, counted *expvar.Map) (err error) {
	log := coordinator.Slog(logger)
	shop, errShop := newShop(s.Shop)
	books, errBooks := newBooks(s.Books)
	invoicing, errSaga := define(books)
	if err := errors.Join(errShop, errBooks, errSaga); err != nil {
		return err
	}
	db, err := store.Open(ctx, s.Database, &store.Options{Migrate: true})
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
			Secrets:  []webhook.Secret{{Name: "2026-11", Text: s.Secret}},
		},
		Begin: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), // older orders are left to comparisons, which have bounds
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

	server := receiver.Server(s.Listen)
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
