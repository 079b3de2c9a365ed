package outside

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// Config describes a world. Two with the same seed are equal: the same customers and orders, the same
// faults for the same requests, the same orders edited and cancelled, the same webhooks lost on their
// way. So two programs can be set to the same task.
type Config struct {
	Seed uint64
	// Orders is how many paid orders the shop has.
	Orders int
	// Faults is the share of requests that meet a fault, from 0 to 1.
	Faults float64
	Timing Timing
	People
	// Hooks are the receivers of the webhooks; the seed and the spread are the world's. Without
	// receivers no webhook is sent.
	Hooks Hooks
	// Letters gets each letter that arrives, as a text.
	Letters io.Writer
}

// World is a shop with its books, its mailbox and its customers, each behind HTTP on a port of its
// own.
type World struct {
	ShopURL, BooksURL, MailURL string

	Shop    *Shop
	Books   *Books
	Mailbox *Mailbox
	Faults  *Faults
	Outage  Outage // of the books

	config  Config
	crowd   *crowd
	sender  *Sender // nil: no webhook is sent
	servers []*httptest.Server
}

// Start makes a world. It must be closed.
func Start(c Config) *World {
	c.Hooks.Seed, c.Hooks.Spread = c.Seed, c.Pace
	w := &World{
		Shop: NewShop(), Books: NewBooks(), Mailbox: &Mailbox{Copy: c.Letters, Takes: mailTakes}, Faults: NewFaults(c.Seed, c.Faults, c.Timing), config: c,
	}
	w.crowd = newCrowd(c, w.Shop)
	w.Books.Booked, w.Shop.Changed = w.crowd.booked, w.crowd.hear
	if len(c.Hooks.Receivers) > 0 {
		w.sender = NewSender(c.Hooks)
		w.Shop.Changed = func(hook Webhook) {
			w.crowd.hear(hook)
			w.sender.Send(hook)
		}
	}
	w.Shop.Add(Orders(c)...)
	w.ShopURL = w.serve(w.Faults.Before(Ordinary, ByURL, w.Shop.Handler()))
	w.BooksURL = w.serve(w.Outage.Before(w.Faults.Before(Ordinary, w.atBooks, w.Books.Handler())))
	w.MailURL = w.serve(w.Faults.Before(Gentle, aboutOrder, w.Mailbox.Handler()))
	return w
}

func (w *World) serve(h http.Handler) (url string) {
	s := httptest.NewServer(h)
	w.servers = append(w.servers, s)
	return s.URL
}

// Close stops everything.
func (w *World) Close() {
	w.Faults.Close()
	for _, s := range w.servers {
		s.Close()
	}
	w.crowd.end()
	w.crowd.tasks.Wait()
	if w.sender != nil {
		w.sender.Close()
	}
}

// Quiet reports whether nothing more is to come by itself: every customer whose order was marked has
// changed what they wanted to change, and nothing more becomes of any webhook. A new mark may end the
// quiet.
func (w *World) Quiet() (bool, error) {
	w.crowd.mu.Lock()
	quiet, err := w.crowd.busy == 0, w.crowd.failed
	w.crowd.mu.Unlock()
	return quiet && err == nil && (w.sender == nil || w.sender.Quiet()), err
}

// Changes counts what people changed after orders were invoiced.
func (w *World) Changes() Changes {
	w.crowd.mu.Lock()
	defer w.crowd.mu.Unlock()
	return w.crowd.done
}

// Webhooks counts what became of the webhooks.
func (w *World) Webhooks() Tally {
	if w.sender == nil {
		return Tally{}
	}
	return w.sender.Tally()
}

// opening is when the first order was paid. It is fixed, so that equal seeds give equal orders on any
// day.
var opening = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

// mailTakes is what a conversation with a mail server takes: a sync that dies then has marked an order
// and sent no letter.
const mailTakes = 10 * time.Millisecond

// checkout is how long a customer takes to pay.
const checkout = 2 * time.Minute

var (
	firstNames = []string{"Ada", "Björn", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hana", "Ines", "Jonas", "Kofi", "Léa"}
	lastNames  = []string{"Adler", "Baptiste", "Costa", "Dvořák", "Eriksen", "Fontaine", "García", "Horváth", "Ito", "Jansen", "Kaya", "Lindqvist"}
	goods      = []Line{
		{SKU: "tea-100", Description: "Green tea, 100 g", UnitCents: 890},
		{SKU: "pot-1", Description: "Teapot, cast iron", UnitCents: 5400},
		{SKU: "cup-2", Description: "Two cups, porcelain", UnitCents: 2450},
		{SKU: "tin-3", Description: "Tea tin, hand painted", UnitCents: 1799},
		{SKU: "hon-250", Description: "Heather honey, 250 g", UnitCents: 725},
		{SKU: "whisk", Description: "Bamboo whisk", UnitCents: 1333},
	}
)

// Orders makes the paid orders of a world. They depend on Seed and Orders only.
func Orders(c Config) []Order {
	r := rand.New(rand.NewPCG(c.Seed, 0)) //nolint:gosec // a story, told again by its seed
	buyers := make([]Buyer, max(1, c.Orders*2/3))
	for i := range buyers {
		_ = r.Float64() // so that a seed means what it always meant
		buyers[i] = Buyer{
			ID:    fmt.Sprintf("%04d", i+1),
			Name:  firstNames[r.IntN(len(firstNames))] + " " + lastNames[r.IntN(len(lastNames))],
			Email: fmt.Sprintf("customer%04d@post.example", i+1),
		}
	}
	orders := make([]Order, c.Orders)
	for i := range orders {
		paid := opening.Add(time.Duration(i) * 97 * time.Second)
		o := Order{
			ID: strconv.Itoa(10001 + i), Status: Paid, Version: 1, Currency: "EUR",
			Customer: buyers[r.IntN(len(buyers))], CreatedAt: paid.Add(-checkout), PaidAt: paid, UpdatedAt: paid,
		}
		for range 1 + r.IntN(4) {
			line := goods[r.IntN(len(goods))]
			line.Quantity = int64(1 + r.IntN(3))
			o.Lines = append(o.Lines, line)
		}
		o.TotalCents = Total(o.Lines)
		orders[i] = o
	}
	return orders
}

// atBooks names a request to the books by the order's reference and, for an update, by the memo, so
// that each gets faults of its own; and any other request by its address. The books number invoices
// as they come, so their numbers are not the same in two equal worlds.
func (w *World) atBooks(r *http.Request, body []byte) string {
	path, ok := strings.CutPrefix(r.URL.Path, "/invoices")
	if !ok || path == "" && r.Method == http.MethodGet {
		return ByURL(r, body)
	}
	var d Draft
	_ = json.Unmarshal(body, &d) // the books will refuse what is no draft
	id, verb, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if id != "" {
		inv, err := w.Books.Invoice(id)
		if err != nil {
			return ByURL(r, body) // the books will say so, too
		}
		d.Reference = inv.Reference
	}
	name := []string{r.Method, "/invoices", d.Reference}
	if r.Method == http.MethodPut {
		name = append(name, d.Memo)
	}
	if verb != "" {
		name = append(name, verb)
	}
	return strings.Join(name, " ")
}

// aboutOrder names a letter by the order it is about.
func aboutOrder(_ *http.Request, body []byte) string {
	var l Letter
	_ = json.Unmarshal(body, &l) // the mailbox will refuse what is no letter
	return "mail " + l.Order
}
