// Command webhooks shows how sagas follow from webhooks that come late, twice and out of order: every order of a small
// shop has one invoice, which says what the order says last. receive.go is what a program of your own needs.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

func main() {
	dir, err := os.MkdirTemp("", "amends-webhooks-")
	if err == nil {
		err = run(context.Background(), filepath.Join(dir, "ledger.db"), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// invoicing is the saga: one step, which updates the invoice that an earlier version of the order has.
func invoicing(out io.Writer) (*saga.Definition[Order], error) {
	write := func(_ context.Context, c saga.Call[Order]) (string, error) {
		id := c.PreviousID()
		if id == "" {
			id = "invoice for " + c.Input.ID
		}
		_, err := fmt.Fprintf(out, "%s says %s (version %s of the order)\n", id, c.Input.Total, c.Revision)
		return id, err
	}
	void := func(_ context.Context, c saga.Call[Order], id *string) error {
		if id == nil { // its answer was lost, so it may be there or not: voiding what is not there changes nothing
			id = new("invoice for " + c.Input.ID)
		}
		_, err := fmt.Fprintf(out, "%s is void\n", *id)
		return err
	}
	return saga.Define("invoice-order", 1, saga.Do("invoice", write).Idempotent().UndoMaybe(void))
}

// run takes in what the shop tells, in the order in which it comes, and prints what followed.
func run(ctx context.Context, file string, out io.Writer) (err error) {
	db, err := sqlite.Open(ctx, file, nil) // the ledger and the inbox
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	c, err := coordinator.New(db, &coordinator.Options{Log: quiet}) //nolint:contextcheck // what it does is bounded by Run's context
	if err != nil {
		return err
	}
	definition, err := invoicing(out)
	if err != nil {
		return err
	}
	if err := c.Register(ctx, definition); err != nil {
		return err
	}
	shop := NewShop()
	receiver, processor, err := receive(c, db, shop)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running, processor) }()
	server := httptest.NewServer(receiver)
	defer server.Close()

	err = tell(ctx, out, shop, c, server.URL+"/webhooks/shop")
	stop()
	return errors.Join(err, <-ended)
}

// tell sends the shop's webhooks and waits for what each led to.
func tell(ctx context.Context, out io.Writer, shop *Shop, c *coordinator.Coordinator, url string) error {
	for _, w := range []struct {
		say     Webhook
		comment string
		settled saga.Status
	}{
		{Webhook{"order.created", Order{ID: "42", Version: 1, Total: "20.00"}}, "", saga.Completed},
		{Webhook{"order.updated", Order{ID: "42", Version: 3, Total: "25.00"}}, " (version 2 is late)", saga.Completed},
		{Webhook{"order.updated", Order{ID: "42", Version: 2, Total: "22.00"}}, " (here it is: nothing follows)", saga.Completed},
		{Webhook{"order.updated", Order{ID: "42", Version: 3, Total: "25.00"}}, " (again: nothing follows)", saga.Completed},
		{Webhook{"order.deleted", Order{ID: "42", Version: 4}}, "", saga.Compensated},
		{Webhook{"order.updated", Order{ID: "42", Version: 3, Total: "25.00"}}, " (an old one, months later: nothing follows)", saga.Compensated},
	} {
		fmt.Fprintf(out, "webhook: %s, version %d%s\n", w.say.Topic, w.say.Order.Version, w.comment)
		if err := shop.Send(ctx, http.DefaultClient, url, w.say); err != nil {
			return err
		}
		if err := await(ctx, c, w.say.Order, w.settled); err != nil {
			return err
		}
	}
	return nil
}

// await waits until the work has come to rest as it should.
func await(ctx context.Context, c *coordinator.Coordinator, o Order, status saga.Status) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		s, err := c.Wait(ctx, "invoice-order", "shop:order:"+o.ID)
		if err == nil && s.Status == status && saga.CompareRevisions(cmp.Or(s.Heard, s.Revision), fmt.Sprint(o.Version)) >= 0 {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("order %s did not come to rest: %w", o.ID, ctx.Err())
		}
	}
}
