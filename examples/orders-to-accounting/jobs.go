package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store"
)

// The jobs by their names, as amends schedule list shows them.
const (
	jobChanges = "orders-changed"  // what changed in the shop is heard, webhook or not
	jobAll     = "orders-invoices" // shop, ledger and books are compared, whole
)

// sweepLag is how old a change is to be before a sweep relies on having seen it: the shop's times
// are whole seconds.
const sweepLag = time.Second

// byTheClock is what a sync process does by the clock, because webhooks are lost and people edit
// invoices.
type byTheClock struct {
	reconciler *reconcile.Reconciler
	db         store.DB
	log        logrus.FieldLogger
}

// newByTheClock puts it together. The source is the one of the inbox.
func newByTheClock(job *Sync, c *coordinator.Coordinator, source *inbox.Source, db store.DB, log logrus.FieldLogger) (*byTheClock, error) {
	r, err := reconcile.New(db, reconcile.Config{
		Name: jobAll, Source: source, Type: "order",
		All: job.allOrders, Changed: job.changedOrders, Destination: job.invoices(),
		Coordinator: c, Step: "invoice", Fields: reconcile.FieldsOf(fieldsOf),
	}, &reconcile.Options{
		Partitions: job.orderRanges, Mapping: mapping, Effects: effects,
		Overlap: 5 * time.Second, Safety: sweepLag, Timeout: job.timeout, Attempts: 20, Log: log,
	})
	return &byTheClock{reconciler: r, db: db, log: log}, err
}

// run does it until ctx ends. A real shop is swept every few minutes, and compared every night.
func (b *byTheClock) run(ctx context.Context) error {
	runner, err := schedule.New(b.db, []schedule.Job{
		{Name: jobChanges, Schedule: "@every 10s", Lease: 3 * time.Second, Timeout: time.Minute, Approved: true, Work: b.reconciler.SyncChanges},
		{Name: jobAll, Schedule: "15 3 * * *", Zone: "Europe/Vienna", Lease: 3 * time.Second, Approved: true, Work: b.reconciler.Run},
	}, &schedule.Options{Poll: 200 * time.Millisecond, Log: b.log})
	if err != nil {
		return err
	}
	return runner.Run(ctx)
}

// effects says which steps stand, as order and invoice show it. Neither shows whether a receipt
// went out: what is not named here and cannot be asked for counts as sent. But before the mark
// there is none, unless a void invoice shows that the mark may have been taken off again.
func effects(o *reconcile.Listed, live, void []reconcile.Document) (map[string]reconcile.Effect, error) {
	var order outside.Order
	if err := json.Unmarshal(o.Body, &order); err != nil {
		return nil, err
	}
	marked := false
	stands := map[string]reconcile.Effect{"customer": {NotDone: true}, "invoice": {NotDone: true}}
	for _, d := range live {
		var inv outside.Invoice
		if err := json.Unmarshal(d.Body, &inv); err != nil {
			return nil, err
		}
		stands["customer"] = reconcile.Effect{Output: outside.Customer{
			ID: inv.Customer, Ref: inv.CustomerRef, Contact: outside.Contact{Name: order.Customer.Name, Email: order.Customer.Email},
		}}
		stands["invoice"] = reconcile.Effect{Output: inv}
		marked = marked || order.InvoiceID == inv.ID
	}
	switch {
	case marked:
		stands["mark-synced"] = reconcile.Effect{Output: order}
	case len(void) > 0:
		stands["mark-synced"] = reconcile.Effect{NotDone: true}
	default:
		stands["mark-synced"], stands["receipt"] = reconcile.Effect{NotDone: true}, reconcile.Effect{NotDone: true}
	}
	return stands, nil
}
