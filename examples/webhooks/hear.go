package main

import (
	"context"
	"errors"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/store/sqlite"
)

// hear turns the shop's webhooks into work: a door for the HTTP server, and a hearer that is to be run.
func hear(works *coordinator.Coordinator, db *sqlite.DB, shop *Shop) (*webhook.Receiver, *inbox.Hearer, error) {
	hearer, errHearer := inbox.New(db, inbox.Options{Sources: map[string]inbox.Source{"shop": {
		Fetch: shop.Fetch, // asked wherever a webhook proves nothing
		Deliver: func(ctx context.Context, c inbox.Change) error { // being told twice changes nothing
			if !c.Deleted {
				_, err := works.Start(ctx, "invoice-order", c.String(), c.Body, &coordinator.StartOptions{Revision: c.Revision, Source: "webhook", Cause: c.Cause})
				return err
			}
			err := works.Withdraw(ctx, "invoice-order", c.String(), c.Revision, coordinator.By{Actor: "webhook", Reason: "deleted in the shop"})
			if errors.Is(err, ledger.ErrNotFound) {
				return nil // nothing was done for it
			}
			return err
		},
	}}})
	sender, errSender := webhook.Standard(webhook.Mapping{Version: "data.version", Clock: inbox.CounterClock, Deleted: []string{"order.deleted"}})
	if err := errors.Join(errHearer, errSender); err != nil {
		return nil, nil, err
	}
	door, err := webhook.New(db, []webhook.Source{{
		Name: "shop", Provider: sender, Secrets: []webhook.Secret{{Name: "2026-11", Text: shop.Secret}},
	}}, &webhook.Options{Wake: hearer.Nudge})
	return door, hearer, err
}
