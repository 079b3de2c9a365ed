package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/reconcile/works"
)

// jobs are what is done by the clock: every five minutes what changed in the shop is heard, webhook or not, and every
// night shop, ledger and books are compared, whole.
func (p *process) jobs() []schedule.Job {
	limits := reconcile.Limits{PerSecond: 100, PerDay: 50_000} // of which sweeps leave a share to what is live
	ofShop, ofBooks := reconcile.NewQuota(limits), reconcile.NewQuota(limits)
	sweeper := func(run *schedule.Run) (*sweep.Sweep, error) {
		return sweep.New(sweep.Config{
			Name: "orders", Store: p.box, Mapping: "1", Proceed: run.Proceed,
			Source: sweep.Source{
				Object: reconcile.Object{Source: "shop", Type: "order"}, Quota: ofShop,
				Changed: p.shop.Changed, All: p.shop.All, Get: p.shop.Get, Want: want,
			},
			Destination: sweep.Destination{Quota: ofBooks, Marked: p.books.Marked, Find: p.books.Find, Settle: settle},
		})
	}
	changed := func(ctx context.Context, run *schedule.Run) (schedule.Outcome, error) {
		s, err := sweeper(run)
		if err != nil {
			return schedule.Outcome{}, err
		}
		rep, err := s.Changed(ctx)
		p.hearer.Nudge()
		return schedule.Outcome{Verdict: schedule.Verdict(rep.Verdict), Before: rep.Before, After: rep.After, Seen: rep.Seen, Calls: rep.Calls, Note: rep.Why}, err
	}
	compared := func(ctx context.Context, run *schedule.Run) (schedule.Outcome, error) {
		s, errSweep := sweeper(run)
		w, errWorks := works.New(works.Config{Saga: "invoice-order", Document: "invoice", Coordinator: p.coordinator, Ledger: p.ledger})
		if err := errors.Join(errSweep, errWorks); err != nil {
			return schedule.Outcome{}, err
		}
		r, err := repair.New(repair.Config{
			Sweep: s, Works: w, Plans: p.box, Drifts: p.box, Deliver: p.deliver, Effects: effects,
			Approved: func(context.Context) (bool, error) { return run.Approved, nil },
		})
		if err != nil {
			return schedule.Outcome{}, err
		}
		rep, err := r.Do(ctx, run.Ask, repair.By{Actor: cmp.Or(run.By, "schedule"), Reason: cmp.Or(run.Why, "it was due")})
		return schedule.Outcome{
			Verdict: schedule.Verdict(rep.Verdict), Seen: rep.Seen, Planned: rep.Planned, Applied: rep.Applied,
			Refused: rep.Withheld, Errors: rep.Failed, Plan: rep.Plan, Note: rep.Words,
		}, err
	}
	return []schedule.Job{
		{Name: "orders-changed", Schedule: "*/5 * * * *", Approved: true, Work: changed},
		{Name: "orders-compared", Schedule: "15 3 * * *", Zone: "Europe/Vienna", Work: compared}, // plans only, until a person approves it
	}
}

// want says what the invoice of an order should say.
func want(o *sweep.Object) (drift.Truth, error) {
	var order Order
	err := json.Unmarshal(o.Body, &order)
	return drift.Truth{Key: mark + o.ID, Revision: o.Version.Revision(), Wanted: !order.Cancelled, Fields: drift.Fields{"total": order.Total}}, err
}

// effects says which steps the invoices of an order show to be done. The mail is not among them, so it counts as sent.
func effects(_ *sweep.Object, live []drift.Document) (map[string]repair.Effect, error) {
	stands := map[string]repair.Effect{}
	for _, inv := range live {
		stands["invoice"] = repair.Effect{ExternalID: inv.ID, Output: inv.ID}
	}
	return stands, nil
}
