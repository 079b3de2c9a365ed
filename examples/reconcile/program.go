package main

import (
	"context"
	"errors"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/reconcile/town"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// serve runs everything that the process has, over the database in a file, for as long as the story
// takes.
func serve(ctx context.Context, file string, shop town.Shop, books town.Books, story town.Story) (err error) {
	db, err := store.Open(ctx, file, nil) // the ledger, the inbox, plans and jobs
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// What is done for an order: it has an invoice, which says what the order says last, and a mail
	// tells of it once.
	s, b := source{shop}, destination{books}
	invoicing, err := saga.Define("invoice-order", 1,
		saga.Do("invoice", b.write).Find(b.find).Update(b.update).Undo(b.void).Pivot(),
		saga.Do("mail", b.mail).AtMostOnce().NoID().NoUndo("the shop tells the customer that the order is cancelled"),
	)
	if err != nil {
		return err
	}
	c, err := coordinator.New(db, nil) //nolint:contextcheck // what it does is bounded by Run's context
	if err != nil {
		return err
	}
	if err := c.Register(ctx, invoicing); err != nil {
		return err
	}

	// What decides which orders have it done: the shop, by its webhooks.
	orders := &inbox.Source{
		Name: "shop", Saga: "invoice-order", Fetch: s.fetch, Decide: decide, Apply: c.Apply,
		Webhooks: &webhook.Sender{
			Provider: webhook.Standard(webhook.Mapping{Version: "data.version"}),
			Secrets:  []webhook.Secret{{Name: "2026-11", Text: town.Secret}},
		},
		Begin: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), // older orders are left to comparisons, which have bounds
	}
	in, err := inbox.New(db, []*inbox.Source{orders}, nil)
	if err != nil {
		return err
	}
	receiver, err := webhook.New(in, nil) // an http.Handler
	if err != nil {
		return err
	}

	// What is done by the clock: every five minutes what changed in the shop is taken in, webhook
	// or not, and every night shop, ledger and books are compared, whole.
	r, err := reconcile.New(db, reconcile.Config{
		Name: "orders", Source: orders, Type: "order", All: s.all, Changed: s.changed,
		Destination: reconcile.Destination{Marked: b.marked, Find: b.under, Settle: town.Settle},
		Coordinator: c, Step: "invoice", Fields: reconcile.FieldsOf(fields),
	}, nil)
	if err != nil {
		return err
	}
	jobs, err := schedule.New(db, []schedule.Job{
		{Name: "orders-changed", Schedule: story.Or("*/5 * * * *"), Approved: true, Work: r.SyncChanges},
		{Name: "orders-compared", Schedule: story.Or("15 3 * * *"), Zone: "Europe/Vienna", Work: r.Run}, // plans only, until a person approves it
	}, nil)
	if err != nil {
		return err
	}
	return story.Tell(ctx, db, c, jobs, receiver, func(ctx context.Context) error { return c.Run(ctx, in) })
}

// decide says what the saga of an order should do, by whichever way a state of the order came.
func decide(o inbox.Snapshot) (saga.Change, error) {
	var order town.Order
	err := o.Decode(&order)
	if order.Status == "cancelled" {
		return saga.Change{Want: saga.WantWithdrawn, Input: order, Reason: "cancelled in the shop"}, err
	}
	return saga.Change{Input: order}, err
}

// fields are what an invoice should say for an order.
func fields(o town.Order) map[string]string { return map[string]string{"total": o.Total()} }
