package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/effect"
	"github.com/amends-dev/amends/examples/orders-to-accounting/shop"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/postgres"
	"github.com/amends-dev/amends/ledger/sqlite"
)

// place says where the sync finds everything. The supervisor hands it to the processes it starts.
type place struct {
	Shop   string        `json:"shop"`
	Books  string        `json:"books"`
	Mail   string        `json:"mail"`
	Ledger string        `json:"ledger"` // a file, or a Postgres URL
	Doors  []string      `json:"doors"`  // where each of the sync processes listens for webhooks
	Secret string        `json:"secret"` // which the shop signs them with
	Poll   bool          `json:"poll"`   // also ask the shop for paid orders now and then
	Answer time.Duration `json:"answer"` // how long one attempt may take
	Settle time.Duration `json:"settle"`
}

// store is a ledger with both of its sides.
type store interface {
	ledger.Ledger
	ledger.Reader
}

// openLedger opens the ledger at db: a Postgres URL, or else a SQLite file.
func openLedger(ctx context.Context, db string) (store, error) {
	if isPostgres(db) {
		return postgres.Open(ctx, db, &postgres.Options{Migrate: true})
	}
	return sqlite.Open(ctx, db, nil)
}

func isPostgres(db string) bool {
	return strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://")
}

// destinations is what each server can bear from one process. A Retry-After silences the whole line for a second,
// and one request in fifty meets one: the more are under way, the less is waited. The mail server gets few, because
// each letter on its way at a kill is a question to a person.
var destinations = map[string]coordinator.Limit{
	"shop":  {Concurrent: 64},
	"books": {Concurrent: 64},
	"mail":  {Concurrent: 4},
}

// runSync is one sync process: it hears of paid orders, starts a work for each and runs them, until ctx ends. It may
// be killed at any moment.
func runSync(ctx context.Context, p place, number int, log logrus.FieldLogger) (err error) {
	l, err := openLedger(ctx, p.Ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	job, err := newSync(p)
	if err != nil {
		return err
	}
	definition, err := job.Saga()
	if err != nil {
		return err
	}
	c, err := coordinator.New(l, &coordinator.Options{ //nolint:contextcheck // what it does is bounded by Run's context
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
	box, err := openInbox(ctx, p.Ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Run(ctx) })
	group.Go(func() error {
		return (&ear{shop: job.shop, works: c, log: log}).hear(ctx, p.Doors[number], p.Secret, box)
	})
	if p.Poll {
		group.Go(func() error { return fetch(ctx, c, job.shop, log) })
	}
	return group.Wait()
}

func newSync(p place) (*Sync, error) {
	s := &Sync{mail: p.Mail, timeout: p.Answer, settle: p.Settle}
	var errShop, errBooks error
	s.shop, errShop = effect.New(p.Shop, &effect.Options{Timeout: p.Answer})
	s.books, errBooks = effect.New(p.Books, &effect.Options{Timeout: p.Answer})
	return s, errors.Join(errShop, errBooks)
}

// The pauses of fetch: between two rounds, and after a page that did not come.
const (
	fetchEvery = 5 * time.Second
	fetchAgain = 200 * time.Millisecond
)

// fetch is the cron job of the article: every few minutes, here every few seconds, it asks the shop for paid orders
// without our mark and starts a work for each. Most of them are known already; starting them again does nothing but
// count.
func fetch(ctx context.Context, c *coordinator.Coordinator, from *effect.Client, log logrus.FieldLogger) error {
	for after := ""; ctx.Err() == nil; {
		var page shop.Page
		_, err := from.Do(ctx, effect.Request{
			Method: http.MethodGet, Path: effect.Path("orders"), Into: &page,
			Query: map[string][]string{"status": {"paid"}, "synced": {"no"}, "limit": {"100"}, "after": {after}},
		})
		switch {
		case err != nil:
			if ctx.Err() == nil {
				log.WithError(err).Warn("a page of orders did not come and is asked for again")
			}
			_ = pause(ctx, fetchAgain) // the loop sees the end of ctx
		case len(page.Orders) == 0:
			after = ""
			_ = pause(ctx, fetchEvery)
		default:
			startAll(ctx, c, page.Orders, log)
			after = page.Next
		}
	}
	return nil
}

// startAll starts a work for each order. One that cannot be started, or has become another order under its old
// number, does not hold up the others; the next round brings it again.
func startAll(ctx context.Context, c *coordinator.Coordinator, orders []shop.Order, log logrus.FieldLogger) {
	var starts sync.WaitGroup
	for _, o := range orders {
		starts.Go(func() {
			if _, err := c.Start(ctx, sagaName, o.Ref(), o, &coordinator.StartOptions{Source: "fetch", Revision: revisionOf(o)}); err != nil && ctx.Err() == nil {
				log.WithError(err).WithField("work", o.Ref()).Warn("not started")
			}
		})
	}
	starts.Wait()
}
