package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/books"
	"github.com/amends-dev/amends/examples/orders-to-accounting/shop"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/jobs"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/works"
)

// The jobs by their names, as amends schedule list shows them.
const (
	jobChanges = "orders-changed"  // what changed in the shop is heard, webhook or not
	jobAll     = "orders-invoices" // shop, ledger and books are compared, whole
)

// sweepLag is how old a change is to be before a sweep relies on having seen it: the shop's times are whole seconds.
const sweepLag = time.Second

// distrustful is what a sync process does by the clock, because it trusts neither webhooks nor itself.
type distrustful struct {
	changes    *scan.Sweep
	everything *repair.Reconciler
	records    *records
	log        logrus.FieldLogger
}

// newDistrustful puts it together. The source has the quota that the hearer of the same shop uses.
func newDistrustful(job *Sync, c *coordinator.Coordinator, hears *ear, rec *records, log logrus.FieldLogger) (*distrustful, error) {
	s, errSweep := scan.New(scan.Config{
		Name: jobAll, Source: hears.shop, Destination: job.invoices(), Store: rec.journal, Mapping: mapping, Proceed: schedule.Proceed,
		Overlap: 5 * time.Second, Safety: sweepLag, Timeout: job.timeout, Attempts: 20,
	})
	w, errWorks := works.New(works.Config{
		Saga: sagaName, Document: "invoice", Coordinator: c, Ledger: rec.ledger, Input: orderOfChange, Fields: fieldsOfInput,
	})
	if err := errors.Join(errSweep, errWorks); err != nil {
		return nil, err
	}
	r, err := repair.New(repair.Config{
		Sweep: s, Works: w, Deliver: hears.deliver, Effects: effects, Plans: rec.journal, Drifts: rec.journal,
		Approved: schedule.Approved, Log: log,
	})
	return &distrustful{changes: s, everything: r, records: rec, log: log}, err
}

// run does it until ctx ends. A real shop is swept every few minutes, and compared every night.
func (d *distrustful) run(ctx context.Context) error {
	runner, err := schedule.New(d.records.journal, []schedule.Job{
		{Name: jobChanges, Schedule: "@every 10s", Lease: 3 * time.Second, Timeout: time.Minute, Approved: true, Work: jobs.Changed(d.changes, nil)},
		{Name: jobAll, Schedule: "15 3 * * *", Zone: "Europe/Vienna", Lease: 3 * time.Second, Approved: true, Work: jobs.Compared(d.everything)},
	}, &schedule.Options{Poll: 200 * time.Millisecond, Log: d.log})
	if err != nil {
		return err
	}
	return runner.Run(ctx)
}

// orderOfChange is the input of the saga for an accepted state of an order.
func orderOfChange(c inbox.Change) (any, error) {
	var o shop.Order
	if err := json.Unmarshal(c.Body, &o); err != nil {
		return nil, fmt.Errorf("%s is no order: %w", c.Object, err)
	}
	return o, nil
}

// fieldsOfInput is what the invoice should say for an input of the saga. That a newer version of an order is no news when
// only our mark has moved, is seen by it.
func fieldsOfInput(input json.RawMessage) (plan.Fields, error) {
	var o shop.Order
	err := json.Unmarshal(input, &o)
	return fields(o.Customer.Ref(), invoiceLines(o)), err
}

// effects says which steps stand, as order and invoice show it. Neither shows whether a receipt went out: what is not named
// here and cannot be asked for counts as sent. But before the mark there is none, unless a void invoice shows that the
// mark may have been taken off again.
func effects(o *scan.Object, live, void []plan.Document) (map[string]repair.Effect, error) {
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
	switch {
	case marked:
		stands["mark-synced"] = repair.Effect{Output: order}
	case len(void) > 0:
		stands["mark-synced"] = repair.Effect{NotDone: true}
	default:
		stands["mark-synced"], stands["receipt"] = repair.Effect{NotDone: true}, repair.Effect{NotDone: true}
	}
	return stands, nil
}
