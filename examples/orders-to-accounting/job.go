package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/play"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
	"github.com/amends-dev/amends/store"
)

// destinations is what each server can bear from one process. A Retry-After silences the whole line
// for a second, and one request in fifty meets one: the more are under way, the less is waited. The
// mail server gets few, because each letter on its way at a kill is a question to a person.
var destinations = map[string]coordinator.Limit{
	"shop":  {Concurrent: 64},
	"books": {Concurrent: 64},
	"mail":  {Concurrent: 4},
}

// runSync is one sync process: it hears of paid orders, starts a work for each and runs them, and
// compares by the clock, until ctx ends. It may be killed at any moment.
func runSync(ctx context.Context, p play.Place, log logrus.FieldLogger) error {
	return withSync(ctx, p, log, func(s *syncProcess) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return s.works.Run(ctx) })
		group.Go(func() error { return hear(ctx, p.Door, s.source, s.db, log) })
		if p.Sweep {
			group.Go(func() error { return s.clock.run(ctx) })
		}
		return group.Wait()
	})
}

// runRebuild rebuilds a ledger that was lost, and ends. No sync process may run.
func runRebuild(ctx context.Context, p play.Place, log logrus.FieldLogger) error {
	return withSync(ctx, p, log, func(s *syncProcess) error {
		for {
			rep, err := s.clock.reconciler.Rebuild(ctx, p.Lost, saga.Actor{Name: "the example", Reason: "the ledger was lost"})
			if err == nil && rep.Result == schedule.OK {
				return nil
			}
			log.WithError(err).WithField("result", rep.Result).Warn("the rebuild goes on: " + rep.Message)
			if err := outside.Pause(ctx, 200*time.Millisecond); err != nil {
				return err
			}
		}
	})
}

// syncProcess is what a sync process is made of.
type syncProcess struct {
	db     store.DB
	works  *coordinator.Coordinator
	source *inbox.Source
	clock  *byTheClock
}

// withSync puts a sync process together, lets do work with it, and takes it apart.
func withSync(ctx context.Context, p play.Place, log logrus.FieldLogger, do func(*syncProcess) error) (err error) {
	db, err := store.Open(ctx, p.Ledger, &store.Options{Migrate: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	job, err := newSync(p)
	if err != nil {
		return err
	}
	definition, err := job.Saga()
	if err != nil {
		return err
	}
	c, err := coordinator.New(db, &coordinator.Options{ //nolint:contextcheck // what it does is bounded by Run's context
		Log: log,
		// The servers are on this machine and so are their faults; a real shop is given more time.
		Lease: 3 * time.Second, Poll: 100 * time.Millisecond, Hold: 2 * time.Second, Drain: 5 * time.Second,
		Destinations: destinations,
	})
	if err != nil {
		return err
	}
	if err := c.Register(ctx, definition); err != nil {
		return err
	}
	source := newSource(job, c, p.Secret, !p.Lost.IsZero())
	clock, err := newByTheClock(job, c, source, db, log)
	if err != nil {
		return err
	}
	return do(&syncProcess{db: db, works: c, source: source, clock: clock})
}

// givesUp tells the network of this machine until when a request is awaited, so that it carries
// none for longer than real ones do.
func givesUp(r *http.Request) error {
	if until, ok := r.Context().Deadline(); ok {
		r.Header.Set(outside.GivenUp, strconv.FormatInt(until.UnixMilli(), 10))
	}
	return nil
}

func newSync(p play.Place) (*Sync, error) {
	s := &Sync{timeout: p.Answer, settle: p.Settle, approveAbove: p.ApproveAbove}
	var errShop, errBooks, errMail error
	options := &sagahttp.Options{Timeout: p.Answer, Authorize: givesUp}
	s.shop, errShop = sagahttp.New(p.Shop, options)
	s.books, errBooks = sagahttp.New(p.Books, options)
	s.mail, errMail = sagahttp.New(p.Mail, options)
	return s, errors.Join(errShop, errBooks, errMail)
}
