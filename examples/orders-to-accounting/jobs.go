package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/books"
	"github.com/amends-dev/amends/examples/orders-to-accounting/shop"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/reconcile/works"
)

// The jobs by their names, as amends schedule list shows them.
const (
	jobChanges = "orders-changed"  // what changed in the shop is heard, webhook or not
	jobAll     = "orders-invoices" // shop, ledger and books are compared, whole
)

// sweepLag is how old a change is to be before a sweep relies on having seen it: the shop's times are whole seconds.
const sweepLag = time.Second

// reconciler distrusts what the sync process heard and did.
type reconciler struct {
	job     *Sync
	works   *coordinator.Coordinator
	records *records
	deliver func(context.Context, reconcile.Change) error
	log     logrus.FieldLogger

	shop, books *reconcile.Quota
}

// jobs are what is done by the clock. A real shop is swept every few minutes and compared every night.
func (r *reconciler) jobs() []schedule.Job {
	return []schedule.Job{
		{Name: jobChanges, Schedule: "@every 10s", Lease: 3 * time.Second, Timeout: time.Minute, Approved: true, Work: r.changes},
		{Name: jobAll, Schedule: "15 3 * * *", Zone: "Europe/Vienna", Lease: 3 * time.Second, Approved: true, Work: r.all},
	}
}

// run runs the jobs until ctx ends.
func (r *reconciler) run(ctx context.Context) error {
	runner, err := schedule.New(r.records.journal, r.jobs(), &schedule.Options{Poll: 200 * time.Millisecond, Log: r.log})
	if err != nil {
		return err
	}
	return runner.Run(ctx)
}

// changes is one run of the incremental sweep.
func (r *reconciler) changes(ctx context.Context, run *schedule.Run) (schedule.Outcome, error) {
	s, err := r.sweep(run.Proceed)
	if err != nil {
		return schedule.Outcome{}, err
	}
	rep, err := s.Changed(ctx)
	return schedule.Outcome{
		Verdict: schedule.Verdict(rep.Verdict), Before: rep.Before, After: rep.After, Seen: rep.Seen, Calls: rep.Calls, Note: rep.Why,
	}, err
}

// all is one comparison of everything, and what follows from it within bounds; or what a person asked for.
func (r *reconciler) all(ctx context.Context, run *schedule.Run) (schedule.Outcome, error) {
	rec, err := r.reconciler(run.Proceed)
	if err != nil {
		return schedule.Outcome{}, err
	}
	rep, err := rec.Do(ctx, run.Ask, repair.By{Actor: cmp.Or(run.By, "schedule"), Reason: cmp.Or(run.Why, "it was due")})
	return schedule.Outcome{
		Verdict: schedule.Verdict(rep.Verdict), Seen: rep.Seen, Planned: rep.Planned, Applied: rep.Applied, Refused: rep.Withheld,
		Errors: rep.Failed, Plan: rep.Plan, Note: rep.Words,
	}, err
}

func (r *reconciler) sweep(proceed func(context.Context) error) (*sweep.Sweep, error) {
	source, destination := r.job.orders(), r.job.invoices()
	source.Quota, destination.Quota = r.shop, r.books
	return sweep.New(sweep.Config{
		Name: jobAll, Source: source, Destination: destination, Store: r.records.journal, Mapping: mapping, Proceed: proceed,
		Overlap: 5 * time.Second, Safety: sweepLag, Timeout: r.job.timeout, Attempts: 20,
	})
}

func (r *reconciler) reconciler(proceed func(context.Context) error) (*repair.Reconciler, error) {
	s, err := r.sweep(proceed)
	if err != nil {
		return nil, err
	}
	w, err := works.New(works.Config{
		Saga: sagaName, Document: "invoice", Coordinator: r.works, Ledger: r.records.ledger, Input: orderOfChange, Fields: fieldsOfInput,
	})
	if err != nil {
		return nil, err
	}
	return repair.New(repair.Config{
		Sweep: s, Works: w, Deliver: r.deliver, Effects: effects, Plans: r.records.journal, Drifts: r.records.journal,
		Approved: func(context.Context) (bool, error) { return true, nil }, Log: r.log,
	})
}

// orderOfChange is the input of the saga for an accepted state of an order.
func orderOfChange(c reconcile.Change) (any, error) {
	var o shop.Order
	if err := json.Unmarshal(c.Body, &o); err != nil {
		return nil, fmt.Errorf("%s is no order: %w", c.Object, err)
	}
	return o, nil
}

// fieldsOfInput is what the invoice should say for an input of the saga. That a newer version of an order is no news when
// only our mark has moved, is seen by it.
func fieldsOfInput(input json.RawMessage) (drift.Fields, error) {
	var o shop.Order
	err := json.Unmarshal(input, &o)
	return fields(o.Customer.Ref(), invoiceLines(o)), err
}

// effects says which steps stand, as order and invoice show it. Whether a receipt went out nobody can say: what is not
// named here and cannot be asked for counts as sent. But before the mark there is none.
func effects(o *sweep.Object, live []drift.Document) (map[string]repair.Effect, error) {
	var order shop.Order
	if err := json.Unmarshal(o.Body, &order); err != nil {
		return nil, err
	}
	marked := false
	stands := map[string]repair.Effect{"customer": {NotDone: true}, "invoice": {NotDone: true}}
	for _, d := range live {
		var inv books.Invoice
		if err := json.Unmarshal(d.Body, &inv); err != nil {
			return nil, err
		}
		stands["customer"] = repair.Effect{Output: books.Customer{ID: inv.Customer, Ref: inv.CustomerRef, Name: order.Customer.Name, Email: order.Customer.Email}}
		stands["invoice"] = repair.Effect{Output: inv}
		marked = marked || order.InvoiceID == inv.ID
	}
	if marked {
		stands["mark-synced"] = repair.Effect{Output: order}
	} else {
		stands["mark-synced"], stands["receipt"] = repair.Effect{NotDone: true}, repair.Effect{NotDone: true}
	}
	return stands, nil
}
