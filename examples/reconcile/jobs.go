package main

import (
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// jobs are what is done by the clock: every five minutes what changed in the shop is taken in, webhook or not, and every
// night shop, ledger and books are compared, whole.
func (p *process) jobs() ([]schedule.Job, error) {
	r, err := reconcile.New(p.db, reconcile.Config{
		Name: "orders", Source: p.source, Type: "order", All: p.shop.All, Changed: p.shop.Changed,
		Destination: reconcile.Destination{Marked: p.books.Marked, Find: p.books.Find, Settle: settle},
		Coordinator: p.coordinator, Step: "invoice", Mapping: "1",
		Fields: reconcile.FieldsOf(func(o Order) plan.Fields { return plan.Fields{"total": o.Total} }),
	}, &reconcile.Options{
		Begin: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), // older orders are left to comparisons, which have bounds
	})
	if err != nil {
		return nil, err
	}
	return []schedule.Job{
		{Name: "orders-changed", Schedule: "*/5 * * * *", Approved: true, Work: r.SyncChanges},
		{Name: "orders-compared", Schedule: "15 3 * * *", Zone: "Europe/Vienna", Work: r.Run}, // plans only, until a person approves it
	}, nil
}

// processing takes in what the shop tells, and what it is asked for. The reconciler has the same source, and shares its
// rate: it leaves three tenths to what is live.
func (p *process) processing() (err error) {
	p.source = &inbox.Source{
		Name: "shop", Saga: "invoice-order", Fetch: p.shop.Fetch, Decide: decide, Apply: p.coordinator.Apply,
		Quota: inbox.NewQuota(inbox.Limits{PerSecond: 100}),
	}
	p.processor, err = inbox.New(p.db, []*inbox.Source{p.source}, nil)
	return err
}
