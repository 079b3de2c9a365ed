package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// runSync is one sync process: it starts a work for every paid order and runs them, until ctx ends. It may be
// killed at any moment.
func runSync(ctx context.Context, p place, log logrus.FieldLogger) error {
	l, err := openLedger(ctx, p.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	sync, err := newSync(p)
	if err != nil {
		return err
	}
	definition, err := sync.Saga()
	if err != nil {
		return err
	}
	c, err := coordinator.New(l, &coordinator.Options{
		Log: log,
		// The servers are on this machine and so are their faults; a real shop is given more time.
		Lease: 3 * time.Second, Poll: 100 * time.Millisecond, Hold: 2 * time.Second,
		Destinations: map[string]coordinator.Limit{"shop": {Concurrent: 16}, "books": {Concurrent: 16}, "mail": {Concurrent: 4}},
	})
	if err != nil {
		return err
	}
	if err := c.Register(ctx, definition); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Run(ctx) })
	group.Go(func() error { return fetch(ctx, c, sync.shop, log) })
	return group.Wait()
}

func newSync(p place) (*Sync, error) {
	s := &Sync{mail: p.Mail, timeout: p.Answer, settle: p.Settle}
	var errShop, errBooks error
	s.shop, errShop = effect.New(p.Shop, &effect.Options{Timeout: p.Answer})
	s.books, errBooks = effect.New(p.Books, &effect.Options{Timeout: p.Answer})
	return s, errors.Join(errShop, errBooks)
}

// fetch is the cron job of the article: every few minutes, here every half second, it asks the shop for paid
// orders without our mark and starts a work for each. Most of them are known already; starting them again does
// nothing but count.
func fetch(ctx context.Context, c *coordinator.Coordinator, from *effect.Client, log logrus.FieldLogger) error {
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		if err := fetchOnce(ctx, c, from); err != nil && ctx.Err() == nil {
			log.WithError(err).Debug("fetching orders was cut short; the next round begins again")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func fetchOnce(ctx context.Context, c *coordinator.Coordinator, from *effect.Client) error {
	for after := ""; ; {
		var page shop.Page
		_, err := from.Do(ctx, effect.Request{
			Method: http.MethodGet, Path: effect.Path("orders"), Into: &page,
			Query: map[string][]string{"status": {"paid"}, "synced": {"no"}, "limit": {"100"}, "after": {after}},
		})
		if err != nil || len(page.Orders) == 0 {
			return err
		}
		starts, ctx := errgroup.WithContext(ctx)
		for _, o := range page.Orders {
			starts.Go(func() error {
				_, err := c.Start(ctx, sagaName, o.Ref(), o, &coordinator.StartOptions{Source: "fetch"})
				if err != nil {
					return fmt.Errorf("start %s: %w", o.Ref(), err)
				}
				return nil
			})
		}
		if err := starts.Wait(); err != nil {
			return err
		}
		after = page.Next
	}
}
