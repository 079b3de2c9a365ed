package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// shopOrder is the input of the sagas the tests run. Its number decides what its destinations do.
type shopOrder struct {
	Number int
	Card   string // never to be seen outside of --bodies
}

// made is what a destination answers.
type made struct{ ID string }

func (m made) ExternalID() string { return m.ID }

// canary stands for everything in an input that must not be shown.
const canary = "4111-1111-1111-1111"

type (
	call  = saga.Call[shopOrder]
	event = context.Context
)

// invoicing is a saga whose works end in every way there is, by the order's number:
//
//	1 completed            2 mark-synced is refused: compensated
//	3 receipt in doubt     4 receipt refused behind the pivot
//	5 invoice not sent     6 mark-synced refused, and so is the invoice's undo
//	7 receipt in doubt until it is done again
//
// What the shop says about an order later:
//
//	8 completed, and revised by version 18
//	9 completed, revised by version 18 under a definition that sends no mail any more, and cancelled at version 19:
//	  nothing says how the mail that was sent is undone
//	10 receipt in doubt, and version 20 waits for it
//	11 invoice not sent, and cancelled at version 21: compensated
//
// Version 2 of the definition sends no receipt.
func invoicing(version int) (*saga.Definition[shopOrder], error) {
	// An answer later than the timeout would change what the ledger tells, on a busy machine too;
	// but what is in doubt is not sent again before its timeout.
	const timeout, settle = 5 * time.Second, time.Millisecond
	steps := []saga.Step[shopOrder]{
		saga.Do("customer", func(event, call) (made, error) { return made{"cus_1"}, nil }).
			Idempotent().NoUndo("customers outlive their orders"),
		saga.Do("invoice", func(_ event, c call) (made, error) {
			if c.Input.Number == 5 || c.Input.Number == 11 {
				return made{}, saga.RetryAfter(time.Hour, saga.NotSent(errors.New("the books are closed for the night")))
			}
			return made{fmt.Sprintf("inv_%d", c.Input.Number)}, nil
		}).Idempotent().
			UndoMaybe(func(_ event, c call, _ *made) error {
				if c.Input.Number == 6 {
					return saga.Permanent(errors.New("the invoice is paid"))
				}
				return nil
			}),
		saga.Do("mark-synced", func(_ event, c call) (made, error) {
			if c.Input.Number == 2 || c.Input.Number == 6 {
				return made{}, saga.Permanent(errors.New("the order was cancelled \x1b[2Kmeanwhile"))
			}
			return made{fmt.Sprintf("mark_%d", c.Input.Number)}, nil
		}).Idempotent().Pivot().UndoMaybe(func(event, call, *made) error { return nil }),
	}
	if version == 1 {
		steps = append(steps, saga.Do("receipt", receipt).AtMostOnce().NoUndo("a mail cannot be unsent").Timeout(timeout).Settle(settle))
	}
	return saga.Define("order-to-invoice", version, steps...)
}

func receipt(_ event, c call) (made, error) {
	if err := c.Sending(); err != nil {
		return made{}, err
	}
	switch {
	case c.Input.Number == 3, c.Input.Number == 7 && c.Attempt == 1, c.Input.Number == 10:
		return made{}, errors.New("connection reset by peer")
	case c.Input.Number == 4:
		return made{}, saga.Permanent(errors.New("no such mailbox"))
	}
	return made{fmt.Sprintf("mail_%d", c.Input.Number)}, nil
}

// shipping is a second saga over the same work ids.
func shipping() (*saga.Definition[shopOrder], error) {
	return saga.Define("order-to-parcel", 3,
		saga.Tags(func(o shopOrder) map[string]string {
			return map[string]string{"shop": "at", "number": fmt.Sprint(o.Number)}
		}),
		saga.Do("parcel", func(_ event, c call) (made, error) { return made{fmt.Sprintf("parcel_%d", c.Input.Number)}, nil }).
			Idempotent().NoUndo("parcels come back by themselves"),
	)
}

// running runs a coordinator with both sagas over l for as long as fn takes, the first up to the
// given version.
func running(ctx context.Context, l store, version int, fn func(context.Context, *coordinator.Coordinator) error) error {
	log := logrus.New()
	log.SetOutput(io.Discard)
	opened := make(chan struct{}, 1)
	c, err := coordinator.New(l, &coordinator.Options{ //nolint:contextcheck // it starts nothing; Run gets the context
		Log: log, Poll: 10 * time.Millisecond, CallbackSecrets: [][]byte{[]byte("a secret of these tests")},
		Listener: &coordinator.Listener{SessionOpened: func(string) { tell(opened) }},
	})
	if err != nil {
		return err
	}
	parcels, err := shipping()
	if err != nil {
		return err
	}
	programs := []saga.Program{parcels}
	for v := range version {
		invoices, err := invoicing(v + 1)
		if err != nil {
			return err
		}
		programs = append(programs, invoices)
	}
	if err := c.Register(ctx, programs...); err != nil {
		return err
	}
	inner, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(inner) }()
	select {
	case <-opened: // works that are started before are stored first and armed later
		err = fn(ctx, c)
		stop()
		return errors.Join(err, <-ended)
	case err := <-ended:
		stop()
		return err
	}
}

// tell says on a channel that something happened, to whoever waits for it to happen once.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// seed fills a ledger with works that stand in every way there is. What the shop says later it says
// while no coordinator runs, so that it is heard between two steps and never in the middle of one.
func seed(ctx context.Context, l store) error {
	if err := invoiced(ctx, l); err != nil {
		return err
	}
	for _, n := range []int{8, 10, 11} {
		if _, err := l.Post(ctx, saga.ID{Saga: "order-to-invoice", Work: orderID(n)}, changed(n)); err != nil {
			return err
		}
	}
	err := running(ctx, l, 1, func(ctx context.Context, c *coordinator.Coordinator) error {
		for _, n := range []int{8, 10, 11} {
			if err := reads(ctx, l, c, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	edited := machine.Signal{Kind: machine.SignalRevise, Key: "revise:18", Actor: "webhook", News: machine.News{Revision: "18", Version: 2, Input: []byte(`{"Number":9,"Card":"another card"}`)}}
	for _, said := range []machine.Signal{edited, changed(9)} {
		if _, err := l.Post(ctx, saga.ID{Saga: "order-to-invoice", Work: orderID(9)}, said); err != nil {
			return err
		}
		if err := running(ctx, l, 2, func(ctx context.Context, c *coordinator.Coordinator) error { return reads(ctx, l, c, 9) }); err != nil {
			return err
		}
	}
	return nil
}

// reads waits until a work has read everything that was said to it, and rests.
func reads(ctx context.Context, l store, c *coordinator.Coordinator, n int) error {
	return errors.Join(heard(ctx, l, orderID(n), putDown), settled(ctx, c.Operator, orderID(n), quiet))
}

// causes are what some starts say made them, by the order's number.
var causes = map[int]string{3: "shop/11"}

// invoiced runs every work once.
func invoiced(ctx context.Context, l store) error {
	return running(ctx, l, 1, func(ctx context.Context, c *coordinator.Coordinator) error {
		start := func(name string, n int, in shopOrder, source string) error {
			_, err := c.Start(ctx, name, orderID(n), in, &saga.StartOptions{Revision: fmt.Sprint(n), Source: source, Cause: causes[n]})
			return err
		}
		invoice := func(n int) error {
			if err := start("order-to-invoice", n, shopOrder{n, canary}, "cron"); err != nil {
				return err
			}
			return settled(ctx, c.Operator, orderID(n), quiet)
		}
		for n := 1; n <= 7; n++ {
			if err := invoice(n); err != nil {
				return err
			}
		}
		for _, source := range []string{"webhook", "webhook", "cron"} { // duplicates of 1; cron is the latest, or counted at the same moment
			if err := start("order-to-invoice", 1, shopOrder{1, canary}, source); err != nil {
				return err
			}
			if err := tallied(ctx, l, orderID(1), source); err != nil { // so that their times tell which source was the latest
				return err
			}
		}
		// The same key says something else: a conflict.
		if err := start("order-to-invoice", 5, shopOrder{5, "another card"}, "webhook"); !errors.Is(err, coordinator.ErrConflict) {
			return fmt.Errorf("expected a conflict, got %w", err)
		}
		if err := heard(ctx, l, "shop:order:5", putDown); err != nil {
			return err
		}
		if err := start("order-to-parcel", 2, shopOrder{2, canary}, "cron"); err != nil {
			return err
		}
		if _, err := c.Wait(ctx, "order-to-parcel", "shop:order:2"); err != nil {
			return err
		}
		for n := 8; n <= 11; n++ {
			if err := errors.Join(invoice(n), heard(ctx, l, orderID(n), putDown)); err != nil {
				return err
			}
		}
		return nil
	})
}

func orderID(n int) string { return fmt.Sprintf("shop:order:%d", n) }

// changed is what the shop says about an order later: even numbers have a newer version, odd ones
// are cancelled.
func changed(n int) machine.Signal {
	news := machine.News{Revision: fmt.Sprint(10 + n)}
	if n%2 == 1 {
		return machine.Signal{Kind: machine.SignalCancel, Key: "withdraw:" + news.Revision, Actor: "webhook", Reason: "the order is cancelled", News: news}
	}
	news.Version, news.Input = 1, fmt.Appendf(nil, `{"Number":%d,"Card":"another card"}`, n)
	return machine.Signal{Kind: machine.SignalRevise, Key: "revise:" + news.Revision, Actor: "webhook", News: news}
}

// settled waits until a work of saga order-to-invoice stands as wanted.
func settled(ctx context.Context, op *coordinator.Operator, work string, wanted func(saga.Status) bool) error {
	id := saga.ID{Saga: "order-to-invoice", Work: work}
	if strings.HasPrefix(work, "batch:") {
		id.Saga = coordinator.BatchSaga
	}
	for {
		s, err := op.Show(ctx, id)
		if err != nil || wanted(s.Status) {
			return err
		}
		if err := moment(ctx); err != nil {
			return fmt.Errorf("%s is still %s: %w", work, s.Status, err)
		}
	}
}

// heard waits until the head of a work is as wanted.
func heard(ctx context.Context, l store, work string, wanted func(*ledger.Instance) bool) error {
	for {
		heads, err := ledger.First(ctx, l, ledger.Filter{Work: work})
		if err != nil || len(heads) == 1 && wanted(&heads[0]) {
			return err
		}
		if err := moment(ctx); err != nil {
			return fmt.Errorf("%s is not as wanted: %+v: %w", work, heads, err)
		}
	}
}

// tallied waits until the ledger has counted a duplicate of a work from a source.
func tallied(ctx context.Context, l store, work, source string) error {
	for {
		ds, err := l.Duplicates(ctx, ledger.Filter{Saga: "order-to-invoice", Work: work})
		if err != nil || slices.ContainsFunc(ds, func(d ledger.Duplicate) bool { return d.Source == source }) {
			return err
		}
		if err := moment(ctx); err != nil {
			return fmt.Errorf("no duplicate of %s from %s is counted: %w", work, source, err)
		}
	}
}

// putDown: nobody holds the work, and it has read everything that was said to it.
func putDown(h *ledger.Instance) bool { return h.Posted == h.Consumed && h.Session == 0 }

// moment waits before looking again.
func moment(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * time.Millisecond):
		return nil
	}
}

// quiet: nothing more happens to the work before somebody speaks or an hour has passed.
func quiet(s saga.Status) bool { return !s.Live() || s == saga.Retrying }
