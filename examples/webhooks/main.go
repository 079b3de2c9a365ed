// Command webhooks shows how sagas follow from webhooks that come late, twice and out of order:
// every order of a small shop has one invoice, which says what the order says last. Package shop
// plays the shop.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/webhooks/shop"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

func main() {
	logrus.SetLevel(logrus.WarnLevel)
	dir, err := os.MkdirTemp("", "amends-webhooks-")
	if err == nil {
		err = run(context.Background(), filepath.Join(dir, "amends.db"), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run takes in what the shop tells, in the order in which it comes, and prints what followed.
func run(ctx context.Context, file string, out io.Writer) (err error) {
	db, err := store.Open(ctx, file, nil) // the ledger and the inbox
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// What is done for an order: one step, which updates the invoice that an earlier version of the
	// order has.
	write := func(_ context.Context, c saga.Call[shop.Order]) (id string, err error) {
		if id = c.PreviousID(); id == "" {
			id = "invoice for " + c.Input.ID
		}
		_, err = fmt.Fprintf(out, "%s says %s (version %s of the order)\n", id, c.Input.Total(), c.Revision)
		return id, err
	}
	void := func(_ context.Context, c saga.Call[shop.Order], _ *string) error { // nil if its answer was lost
		_, err := fmt.Fprintf(out, "invoice for %s is void\n", c.Input.ID)
		return err
	}
	invoicing, err := saga.Define("invoice-order", 1, saga.Do("invoice", write).Idempotent().UndoMaybe(void))
	if err != nil {
		return err
	}
	c, err := coordinator.New(db, nil) //nolint:contextcheck // what it does is bounded by Run's context
	if err != nil {
		return err
	}
	if err := c.Register(ctx, invoicing); err != nil {
		return err
	}

	// What decides which orders have it done: the shop, by its webhooks.
	s := shop.New()
	in, err := inbox.New(db, []*inbox.Source{{
		Name: "shop", Saga: "invoice-order",
		Webhooks: &webhook.Sender{
			Provider: webhook.Standard(webhook.Mapping{Version: "data.version", Deleted: []string{"order.deleted"}}),
			Secrets:  []webhook.Secret{{Name: "2026-11", Text: shop.Secret}},
		},
		Fetch: func(_ context.Context, o inbox.Object) (inbox.Fetched, error) { // asked wherever a webhook proves nothing
			order, ok := s.Order(o.ID)
			if !ok {
				return inbox.Fetched{Gone: true}, nil
			}
			body, err := json.Marshal(order)
			return inbox.Fetched{Version: inbox.Counter(order.Version), Body: body}, err
		},
		Decide: func(o inbox.Snapshot) (saga.Change, error) {
			return saga.Change{Input: o.Body}, nil // what is deleted is withdrawn
		},
		Apply: c.Apply,
	}}, nil)
	if err != nil {
		return err
	}
	receiver, err := webhook.New(in, nil) // an http.Handler
	if err != nil {
		return err
	}

	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running, in) }() // until its context ends
	server := httptest.NewServer(receiver)
	defer server.Close()
	err = s.Tell(ctx, out, server.URL+"/webhooks/shop", c.Wait)
	stop()
	return errors.Join(err, <-ended)
}
