package main

import (
	"net/http"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// receive turns the shop's webhooks into sagas: a handler for the HTTP server, and a processor that is to be run.
func receive(c *coordinator.Coordinator, db *sqlite.DB, shop *Shop) (http.Handler, *inbox.Processor, error) {
	in, err := inbox.New(db, []*inbox.Source{{
		Name: "shop", Saga: "invoice-order",
		Webhooks: &webhook.Sender{
			Provider: webhook.Standard(webhook.Mapping{Version: "data.version", Clock: inbox.CounterClock, Deleted: []string{"order.deleted"}}),
			Secrets:  []webhook.Secret{{Name: "2026-11", Text: shop.Secret}},
		},
		Fetch: shop.Fetch, // asked wherever a webhook proves nothing
		Decide: func(o inbox.Snapshot) (saga.Change, error) {
			return saga.Change{Input: o.Body}, nil // what is deleted is withdrawn
		},
		Apply: c.Apply,
	}}, nil)
	if err != nil {
		return nil, nil, err
	}
	receiver, err := webhook.New(in, nil)
	return receiver, in, err
}
