package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
)

// sourceName is what the shop is called in events, work ids and the path of its webhooks.
const sourceName = "shop"

// volatile are the fields of an order that change without anything having been sold: our own mark
// among them.
var volatile = []string{"version", "updatedAt", "invoiceId"}

// newSource is the shop, for its webhooks, the inbox and the reconciler. forgetful: what was
// received is lost. A webhook that was on its way then may tell of an order that is no more, and
// only the shop knows better.
func newSource(job *Sync, c *coordinator.Coordinator, secret string, forgetful bool) *inbox.Source {
	return &inbox.Source{
		Name: sourceName, Saga: sagaName, Fetch: job.fetchOrder, Decide: decide, Apply: c.Apply, Limits: inbox.Limits{PerSecond: 200}, Begin: time.Unix(0, 0),
		Webhooks: &webhook.Sender{
			// The topic of an event is its type, like order.updated; its data is the whole order.
			Provider: webhook.Standard(webhook.Mapping{
				Version: "data.version", Deleted: []string{string(outside.TopicDeleted)},
			}),
			Secrets: []webhook.Secret{{Name: "example", Text: secret}},
		},
		// The shop is on this machine, and so are its faults; a real one is given more time.
		Policy: inbox.Policy{AlwaysFetch: forgetful, Settle: time.Second, Dense: true, Volatile: volatile, Initial: 50 * time.Millisecond, Max: 2 * time.Second},
	}
}

// hear receives and processes webhooks at address until ctx ends. A webhook is answered once it is
// stored; what follows from it follows later, and from the newest version.
func hear(ctx context.Context, address string, source *inbox.Source, db intake.Store, log logrus.FieldLogger) error {
	in, err := inbox.New(db, []*inbox.Source{source}, &inbox.Options{Lease: 3 * time.Second, Poll: 100 * time.Millisecond, Log: log})
	if err != nil {
		return err
	}
	receiver, err := webhook.New(in, &webhook.Options{Log: log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return in.Run(ctx) })
	group.Go(func() error { return listen(ctx, address, receiver) })
	return group.Wait()
}

// listen serves webhooks at address until ctx ends. The port may still be ours: of a process that has just
// been killed.
func listen(ctx context.Context, address string, receiver *webhook.Receiver) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	for try := 0; err != nil && try < 50; try++ {
		if outside.Pause(ctx, 20*time.Millisecond) != nil {
			return nil
		}
		l, err = config.Listen(ctx, "tcp", address)
	}
	if err != nil {
		return fmt.Errorf("listen for webhooks: %w", err)
	}
	s := receiver.Server(address)
	stop := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = s.Shutdown(last) // what is not answered by then is sent again
	})
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	return nil
}

// decide says what the saga of an order should do: a paid order has its invoice, a cancelled one is
// undone, and what is not paid yet waits.
func decide(state inbox.Snapshot) (saga.Change, error) {
	var o outside.Order
	if err := state.Decode(&o); err != nil {
		return saga.Change{}, err
	}
	switch o.Status {
	case outside.Paid:
		return saga.Change{Input: o}, nil
	case outside.Cancelled:
		return saga.Change{Want: saga.WantWithdrawn, Input: o, Reason: "cancelled in the shop"}, nil
	default:
		return saga.Change{Want: saga.WantNothing, Input: o}, nil
	}
}
