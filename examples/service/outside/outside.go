// Package outside is a shop and books, each behind HTTP, for a service that was told of none. They
// keep everything in memory, and honour idempotency keys.
package outside

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile/webhook"
)

// Secret is what the shop signs its webhooks with.
const Secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // no secret: the shop is a fake

// Order is an order of the shop.
type Order struct {
	ID      string    `json:"id"`
	Version int64     `json:"version"` // grows by one with every change
	Status  string    `json:"status"`  // open, paid or cancelled
	Cents   int64     `json:"cents"`
	Changed time.Time `json:"changedAt"`
}

// invoice is an invoice in the books.
type invoice struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	Version   string `json:"version"`
	Cents     int64  `json:"cents"`
	Void      bool   `json:"void"`
}

// World is a shop and books.
type World struct {
	ShopURL, BooksURL string

	servers []*httptest.Server

	mu       sync.Mutex
	orders   map[string]Order
	invoices []invoice
	keys     map[string]string // ids of invoices by idempotency key
	sent     int               // webhooks
}

// New starts both. Close stops them.
func New() *World {
	w := &World{orders: map[string]Order{}, keys: map[string]string{}}
	shop, books := http.NewServeMux(), http.NewServeMux()
	shop.HandleFunc("GET /orders", w.listOrders)
	shop.HandleFunc("GET /orders/{id}", w.order)
	books.HandleFunc("GET /invoices", w.listInvoices)
	books.HandleFunc("POST /invoices", w.create)
	books.HandleFunc("PUT /invoices/{id}", w.change)
	books.HandleFunc("POST /invoices/{id}/void", w.change)
	w.servers = []*httptest.Server{httptest.NewServer(shop), httptest.NewServer(books)}
	w.ShopURL, w.BooksURL = w.servers[0].URL, w.servers[1].URL
	return w
}

// Close stops the shop and the books.
func (w *World) Close() {
	for _, s := range w.servers {
		s.Close()
	}
}

// Put changes an order, or adds it, and returns it at its new version.
func (w *World) Put(o Order) Order {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.Version, o.Changed = w.orders[o.ID].Version+1, time.Now()
	w.orders[o.ID] = o
	return o
}

// Tell sends the webhook of an order to an address, signed with a secret, and returns the status of
// the answer.
func (w *World) Tell(ctx context.Context, url, secret string, o Order) (int, error) {
	w.mu.Lock()
	w.sent++
	id := fmt.Sprint("msg_", w.sent)
	w.mu.Unlock()
	body, err := json.Marshal(map[string]any{"type": "order.updated", "data": o})
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if err := webhook.SignStandard(r.Header, secret, id, time.Now(), body); err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// Invoices is what is in the books, in the order in which it was written.
func (w *World) Invoices() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, i := range w.invoices {
		all = append(all, i.String())
	}
	return strings.Join(all, ", ")
}

func (i invoice) String() string {
	says := fmt.Sprintf("%s of %s: %d", i.ID, i.Reference, i.Cents)
	if i.Void {
		says += " void"
	}
	return says
}

func (w *World) listOrders(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, _ := time.Parse(time.RFC3339Nano, r.FormValue("since"))
	orders := []Order{}
	for _, o := range w.orders {
		if !o.Changed.Before(since) {
			orders = append(orders, o)
		}
	}
	slices.SortFunc(orders, func(a, b Order) int {
		if !since.IsZero() {
			return cmp.Or(a.Changed.Compare(b.Changed), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Compare(a.ID, b.ID)
	})
	answer(rw, map[string]any{"orders": orders})
}

func (w *World) order(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.orders[r.PathValue("id")]
	if !ok {
		http.NotFound(rw, r)
		return
	}
	answer(rw, o)
}

func (w *World) listInvoices(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := []invoice{}
	for _, i := range w.invoices {
		if which := r.FormValue("reference"); which == "" || which == i.Reference {
			found = append(found, i)
		}
	}
	answer(rw, found)
}

func (w *World) create(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, i := r.Header.Get("Idempotency-Key"), invoice{}
	if err := json.NewDecoder(r.Body).Decode(&i); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	if i.ID = w.keys[key]; i.ID == "" {
		i.ID = fmt.Sprintf("inv_%d", len(w.invoices)+1)
		w.keys[key] = i.ID
		w.invoices = append(w.invoices, i)
	}
	answer(rw, i)
}

// change brings an invoice up to date, or voids it.
func (w *World) change(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := slices.IndexFunc(w.invoices, func(i invoice) bool { return i.ID == r.PathValue("id") })
	switch {
	case n < 0:
		http.NotFound(rw, r)
		return
	case r.Method == http.MethodPost:
		w.invoices[n].Void = true
	default:
		if err := json.NewDecoder(r.Body).Decode(&w.invoices[n]); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.invoices[n].ID = r.PathValue("id")
	}
	answer(rw, w.invoices[n])
}

func answer(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v) //nolint:errchkjson // who asked sees what is missing
}
