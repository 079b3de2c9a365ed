package main

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/jobs"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/works"
)

// jobs are what is done by the clock: every five minutes what changed in the shop is heard, webhook or not, and every
// night shop, ledger and books are compared, whole.
func (p *process) jobs() ([]schedule.Job, error) {
	s, errSweep := scan.New(scan.Config{
		Name: "orders", Store: p.db, Mapping: "1", Proceed: schedule.Proceed,
		Begin:  time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), // older orders are left to comparisons, which have bounds
		Source: p.source, Destination: scan.Destination{Marked: p.books.Marked, Find: p.books.Find, Settle: settle},
	})
	w, errWorks := works.New(works.Config{Saga: "invoice-order", Document: "invoice", Coordinator: p.coordinator, Ledger: p.db})
	if err := errors.Join(errSweep, errWorks); err != nil {
		return nil, err
	}
	r, err := repair.New(repair.Config{
		Sweep: s, Works: w, Plans: p.db, Drifts: p.db, Deliver: p.deliver,
		Effects: repair.Made("invoice", nil), Approved: schedule.Approved, // the mail is not shown by an invoice, so it counts as sent
	})
	return []schedule.Job{
		{Name: "orders-changed", Schedule: "*/5 * * * *", Approved: true, Work: jobs.Changed(s, p.hearer.Nudge)},
		{Name: "orders-compared", Schedule: "15 3 * * *", Zone: "Europe/Vienna", Work: jobs.Compared(r)}, // plans only, until a person approves it
	}, err
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
