package main

import (
	"errors"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// hear turns the shop's webhooks into work: a receiver for the HTTP server, and a processor that is to be run.
func hear(c *coordinator.Coordinator, db *sqlite.DB, shop *Shop) (*webhook.Receiver, *inbox.Processor, error) {
	processor, errProcessor := inbox.New(db, inbox.Options{Sources: map[string]*inbox.Source{"shop": {
		Saga:  "invoice-order",
		Fetch: shop.Fetch, // asked wherever a webhook proves nothing
		Decide: func(o inbox.Snapshot) (saga.Change, error) {
			return saga.Change{Input: o.Body}, nil // what is deleted is withdrawn
		},
		Apply: c.Apply,
	}}})
	sender, errSender := webhook.Standard(webhook.Mapping{Version: "data.version", Clock: inbox.CounterClock, Deleted: []string{"order.deleted"}})
	if err := errors.Join(errProcessor, errSender); err != nil {
		return nil, nil, err
	}
	receiver, err := webhook.New(db, []webhook.Source{{
		Name: "shop", Provider: sender, Secrets: []webhook.Secret{{Name: "2026-11", Text: shop.Secret}},
	}}, &webhook.Options{Wake: processor.Wake})
	return receiver, processor, err
}
