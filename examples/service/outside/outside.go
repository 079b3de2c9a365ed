// Package outside is a shop and books, each behind HTTP, for a service that was told of none.
package outside

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/outside"
)

// Secret is what the shop signs its webhooks with.
const Secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // no secret: the shop is a fake

// World is a shop and books.
type World struct {
	ShopURL, BooksURL string

	shop    *outside.Shop
	books   *outside.Books
	servers []*httptest.Server
}

// New starts both. Close stops them.
func New() *World {
	w := &World{shop: outside.NewShop(), books: outside.NewBooks()}
	w.shop.Tick, w.books.Keys = time.Microsecond, true
	w.servers = []*httptest.Server{httptest.NewServer(w.shop.Handler()), httptest.NewServer(w.books.Handler())}
	w.ShopURL, w.BooksURL = w.servers[0].URL, w.servers[1].URL
	return w
}

// Close stops the shop and the books.
func (w *World) Close() {
	for _, s := range w.servers {
		s.Close()
	}
}

// Put changes an order, or adds it, and returns its webhook. The status is pending, paid or cancelled.
func (w *World) Put(id, status string, cents int64) outside.Webhook {
	return w.shop.Put(outside.Order{ID: id, Status: outside.Status(status), TotalCents: cents})
}

// Invoices is what is in the books, in the order in which it was written.
func (w *World) Invoices() string {
	var all []string
	for _, i := range w.books.Invoices() {
		says := fmt.Sprintf("%s of %s: %d", i.ID, i.Reference, i.TotalCents)
		if i.State == outside.Void {
			says += " void"
		}
		all = append(all, says)
	}
	return strings.Join(all, ", ")
}

// Play sells something every two seconds until ctx ends, and sends the webhooks of it to an address: each
// third order is changed, each fifth is cancelled, and the webhook of each seventh is lost. It logs what the
// shop does, and what the books have then.
func (w *World) Play(ctx context.Context, webhooks string, log *slog.Logger) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		id, cents := fmt.Sprint(n), int64(1000+250*(n%9))
		say := func(what, status string, lost bool) {
			invoices := strings.Split(w.Invoices(), ", ")
			log := log.With("order", id, "cents", cents, "books", invoices[len(invoices)-1])
			if hook := w.Put(id, status, cents); lost {
				log.Info(what + ", and its webhook is lost")
			} else if err := outside.Tell(ctx, webhooks, Secret, hook); err != nil && ctx.Err() == nil {
				log.Warn(what+", and its webhook was not taken", "error", err)
			} else {
				log.Info(what)
			}
		}
		say("the shop sold something", "paid", n%7 == 0)
		if n%3 == 0 {
			cents += 500
			say("the order was changed", "paid", false)
		}
		if n%5 == 0 {
			say("the order was cancelled", "cancelled", false)
		}
	}
}
