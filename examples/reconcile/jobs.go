package main

import (
	"encoding/json"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// jobs are what is done by the clock: every five minutes what changed in the shop is taken in, webhook or not, and every
// night shop, ledger and books are compared, whole.
func (p *process) jobs() ([]schedule.Job, error) {
	r, err := reconcile.New(p.db, reconcile.Config{
		Name: "orders", Source: p.source, Destination: scan.Destination{Marked: p.books.Marked, Find: p.books.Find, Settle: settle},
		Mapping: "1", Coordinator: p.coordinator, Saga: "invoice-order", Step: "invoice", Deliver: p.deliver,
	}, &reconcile.Options{
		Begin: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), // older orders are left to comparisons, which have bounds
		Wake:  p.hearer.Nudge,
	})
	if err != nil {
		return nil, err
	}
	return []schedule.Job{
		{Name: "orders-changed", Schedule: "*/5 * * * *", Approved: true, Work: r.SyncChanges},
		{Name: "orders-compared", Schedule: "15 3 * * *", Zone: "Europe/Vienna", Work: r.Run}, // plans only, until a person approves it
	}, nil
}

// source is the shop for sweeps and for the hearer. They share a rate, of which sweeps leave three tenths to what is live.
func source(shop *Shop) scan.Source {
	return scan.Source{
		Object: inbox.Object{Source: "shop", Type: "order"}, Quota: inbox.NewQuota(inbox.Limits{PerSecond: 100}),
		Changed: shop.Changed, All: shop.All, Get: shop.Get, Want: want,
	}
}

// want says what the invoice of an order should say.
func want(o *scan.Object) (plan.Truth, error) {
	var order Order
	err := json.Unmarshal(o.Body, &order)
	return plan.Truth{Key: mark + o.ID, Revision: o.Version.Revision(), Wanted: !order.Cancelled, Fields: plan.Fields{"total": order.Total}}, err
}
