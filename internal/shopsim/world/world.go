// Package world starts the outer world of the example: the shop with its
// orders, the books and the mail server, each on a loopback port and with its
// own storage in one data directory, misbehaving at a given rate.
//
// Two worlds with the same seed are equal: the same customers and orders, the
// same faults for the same requests, the same orders edited and cancelled, the
// same webhooks lost on their way. So the sync that uses amends and the naive
// one can be set to the same task.
//
// Customers change their minds at two times: some cancel or edit as soon as their
// invoice is booked, others edit or cancel after the order is marked. The sync
// learns of it by webhook, or by asking the shop; of an early cancel also by the
// shop's refusal to mark. The shop's owner deletes some orders. People change
// invoices in the books, and no sync is told; see [World.Tamper].
//
// A world runs in the supervisor's process. The supervisor kills the processes
// of the syncs only, so a world is never killed.
package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/hooks"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/rest"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// Config describes a world.
type Config struct {
	// Dir is where the data is kept. It is created when it is not there, and
	// must not hold another world.
	Dir  string
	Seed uint64
	// Orders is how many paid orders the shop has.
	Orders int
	// Faults is the share of requests that meet a fault, from 0 to 1.
	Faults float64
	// Cancels is the share of orders that are cancelled as soon as their
	// invoice is in the books and before the sync could mark them.
	Cancels float64
	// Bounces is the share of customers whose address refuses mail.
	Bounces float64
	// Edits is the share of orders that are edited after they were marked, some
	// of them twice in quick succession. A quarter as many are edited as soon as
	// their invoice is in the books.
	Edits float64
	// LateCancels is the share of orders that are cancelled after they were
	// marked, and after their edits.
	LateCancels float64
	// Deletes is the share of orders that the shop's owner deletes after they were
	// marked, and after their edits and late cancels.
	Deletes float64
	// Tampering says what people do in the books when Tamper is called.
	Tampering Tampering
	// Webhooks names the receivers of the webhooks and says what happens on the
	// way; its seed is the world's. Without receivers no webhook is sent.
	Webhooks hooks.Options
	// Timing says how long slow things take. Zero means DefaultTiming.
	Timing faults.Timing
	// Pace is how long customers think before a change, and how long webhooks
	// take, at most. Zero means a second.
	Pace time.Duration
}

// World is a running world.
type World struct {
	ShopURL  string // without a slash at the end
	BooksURL string // without a slash at the end
	MailAddr string // host and port

	config  Config
	shop    *shop.Store
	books   *books.Store
	mailbox *mail.Mailbox
	faults  *faults.Injector
	outage  faults.Outage // of the books
	crowd   *crowd
	desk    desk
	sender  *hooks.Sender  // nil: no webhook is sent
	closers []func() error // in the order of opening
}

// Start creates the world's storage and orders, and starts its servers. The
// world must be closed.
func Start(ctx context.Context, c Config) (*World, error) {
	if c.Timing == (faults.Timing{}) {
		c.Timing = faults.DefaultTiming
	}
	if c.Pace == 0 {
		c.Pace = time.Second
	}
	c.Webhooks.Seed, c.Webhooks.Spread = c.Seed, c.Pace
	w := &World{config: c}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := w.populate(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := w.serve(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// open creates the storage.
func (w *World) open(ctx context.Context) error {
	if err := os.MkdirAll(w.config.Dir, 0o750); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	var err error
	if w.shop, err = shop.Open(filepath.Join(w.config.Dir, "shop.db")); err != nil {
		return err
	}
	w.closers = append(w.closers, w.shop.Close)
	if w.books, err = books.Open(filepath.Join(w.config.Dir, "books.db")); err != nil {
		return err
	}
	w.closers = append(w.closers, w.books.Close)
	if w.mailbox, err = mail.OpenMailbox(filepath.Join(w.config.Dir, "mailbox")); err != nil {
		return err
	}
	there, err := w.shop.Tally(ctx)
	if err != nil {
		return err
	}
	if there != (shop.Tally{}) {
		return fmt.Errorf("world: %s holds another world already; use an empty directory", w.config.Dir)
	}
	return nil
}

// populate brings in the customers with their orders, and the one who carries
// webhooks.
func (w *World) populate(ctx context.Context) error {
	w.crowd = newCrowd(ctx, w.config, w.shop)
	w.closers = append(w.closers, w.crowd.close)
	wake := func() {}
	if len(w.config.Webhooks.Receivers) > 0 {
		var err error
		if w.sender, err = hooks.Start(ctx, w.shop, w.config.Webhooks); err != nil {
			return err
		}
		w.closers = append(w.closers, w.sender.Close)
		wake = w.sender.Wake
	}
	w.shop.Changed = func(hook shop.Webhook) { w.crowd.hear(hook); wake() }
	return w.shop.Add(ctx, Orders(w.config)...)
}

// serve starts the three servers behind their faults.
func (w *World) serve(ctx context.Context) error {
	w.faults = faults.New(faults.Plan{Seed: w.config.Seed, Rate: w.config.Faults}, w.config.Timing)
	shopServer, err := rest.Listen(ctx, w.faults.HTTP(faults.ByURL, shop.NewHandler(w.shop)))
	if err != nil {
		return err
	}
	w.closers = append(w.closers, shopServer.Close)
	booksServer, err := rest.Listen(ctx, w.outage.HTTP(w.faults.HTTP(w.atBooks, books.NewHandler(w.books, books.Options{
		Hidden: faults.Hidden,
		Booked: w.meanwhile,
	}))))
	if err != nil {
		return err
	}
	w.closers = append(w.closers, booksServer.Close)
	mailServer, err := mail.Listen(ctx, w.mailbox, w.faults.SMTP)
	if err != nil {
		return err
	}
	w.closers = append(w.closers, mailServer.Close, func() error { w.faults.Close(); return nil })
	w.ShopURL, w.BooksURL, w.MailAddr = shopServer.URL, booksServer.URL, mailServer.Addr
	return nil
}

// Close stops the servers and closes the storage; the data stays in Dir.
func (w *World) Close() error {
	var errs []error
	for len(w.closers) > 0 {
		last := len(w.closers) - 1
		errs = append(errs, w.closers[last]())
		w.closers = w.closers[:last]
	}
	return errors.Join(errs...)
}

// SetFaults changes the share of requests that meet a fault from now on.
func (w *World) SetFaults(rate float64) { w.faults.SetRate(rate) }

// BooksOutAfter has the books be out of order with the n-th change that they are asked for. What
// they have begun they finish.
func (w *World) BooksOutAfter(n int) { w.outage.After(n) }

// BooksOut reports whether the books are out of order.
func (w *World) BooksOut() bool { return w.outage.On() }

// BooksBack has the books be in order again.
func (w *World) BooksBack() { w.outage.End() }

// BooksAsked returns how many requests came while the books were out of order.
func (w *World) BooksAsked() int { return w.outage.Asked() }

// Faults returns how often each fault was met so far.
func (w *World) Faults() map[faults.Kind]int { return w.faults.Tally() }

// Timing returns the durations in force: callers need a deadline below
// Timing.Silent, and may believe lookups after Timing.Settled.
func (w *World) Timing() faults.Timing { return w.config.Timing }

// Progress counts the shop's orders by where they stand.
func (w *World) Progress(ctx context.Context) (shop.Tally, error) { return w.shop.Tally(ctx) }

// Changes counts what customers changed after their orders were invoiced.
func (w *World) Changes() Changes { return w.crowd.changes() }

// Webhooks counts what became of the webhooks.
func (w *World) Webhooks(ctx context.Context) (hooks.Tally, error) {
	if w.sender == nil {
		return hooks.Tally{}, nil
	}
	return w.sender.Tally(ctx)
}

// Quiet reports whether nothing more is to come by itself: every customer whose
// order was marked has changed what they wanted to change, and nothing more
// becomes of any webhook. A new mark may end the quiet.
func (w *World) Quiet(ctx context.Context) (bool, error) {
	quiet, err := w.crowd.quiet()
	if err != nil || !quiet || w.sender == nil {
		return quiet, err
	}
	return w.sender.Quiet(ctx)
}

// Mailbox is the mailbox, as a person would open it.
func (w *World) Mailbox() *mail.Mailbox { return w.mailbox }

// Shop is what the shop keeps.
func (w *World) Shop() *shop.Store { return w.shop }

// Books is what the books keep.
func (w *World) Books() *books.Store { return w.books }
