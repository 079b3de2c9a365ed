package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/webhook"
)

const secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A="

// outside are a shop and books, each behind HTTP.
type outside struct {
	t           *testing.T
	shop, books *httptest.Server

	mu       sync.Mutex
	orders   map[string]Order
	invoices []Invoice
	keys     map[string]string // ids of invoices by idempotency key
	sent     int
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{t: t, orders: map[string]Order{}, keys: map[string]string{}}
	shop, books := http.NewServeMux(), http.NewServeMux()
	shop.HandleFunc("GET /orders", o.listOrders)
	shop.HandleFunc("GET /orders/{id}", o.order)
	books.HandleFunc("GET /invoices", o.listInvoices)
	books.HandleFunc("POST /invoices", o.create)
	books.HandleFunc("PUT /invoices/{id}", o.change)
	books.HandleFunc("POST /invoices/{id}/void", o.change)
	o.shop, o.books = httptest.NewServer(shop), httptest.NewServer(books)
	t.Cleanup(o.shop.Close)
	t.Cleanup(o.books.Close)
	return o
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // a test reads it
}

func (o *outside) listOrders(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, _ := time.Parse(time.RFC3339Nano, r.FormValue("since"))
	orders := []Order{}
	for _, order := range o.orders {
		if !order.Changed.Before(since) {
			orders = append(orders, order)
		}
	}
	slices.SortFunc(orders, func(a, b Order) int {
		if !since.IsZero() {
			return cmp.Or(a.Changed.Compare(b.Changed), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Compare(a.ID, b.ID)
	})
	answer(w, map[string]any{"orders": orders})
}

func (o *outside) order(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	order, ok := o.orders[r.PathValue("id")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer(w, order)
}

func (o *outside) listInvoices(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := []Invoice{}
	for _, i := range o.invoices {
		if which := r.FormValue("reference"); which == "" || which == i.Reference {
			found = append(found, i)
		}
	}
	answer(w, found)
}

func (o *outside) create(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, i := r.Header.Get("Idempotency-Key"), Invoice{}
	if err := json.NewDecoder(r.Body).Decode(&i); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if i.ID = o.keys[key]; i.ID == "" {
		i.ID = fmt.Sprintf("inv_%d", len(o.invoices)+1)
		o.keys[key] = i.ID
		o.invoices = append(o.invoices, i)
	}
	answer(w, i)
}

// change brings an invoice up to date, or voids it.
func (o *outside) change(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := slices.IndexFunc(o.invoices, func(i Invoice) bool { return i.ID == r.PathValue("id") })
	switch {
	case n < 0:
		http.NotFound(w, r)
		return
	case r.Method == http.MethodPost:
		o.invoices[n].Void = true
	default:
		if err := json.NewDecoder(r.Body).Decode(&o.invoices[n]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		o.invoices[n].ID = r.PathValue("id")
	}
	answer(w, o.invoices[n])
}

// put changes an order in the shop, which tells of it or loses the webhook.
func (o *outside) put(order Order) Order {
	o.mu.Lock()
	defer o.mu.Unlock()
	order.Version, order.Changed = o.orders[order.ID].Version+1, time.Now()
	o.orders[order.ID] = order
	return order
}

// tell sends the webhook of an order, signed with a secret, and returns the answer's status.
func (o *outside) tell(url, secret string, order Order) int {
	o.t.Helper()
	o.sent++
	body, err := json.Marshal(map[string]any{"type": "order.updated", "data": order})
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, url+"/webhooks/shop", bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	if err := webhook.SignStandard(r.Header, secret, fmt.Sprint("msg_", o.sent), time.Now(), body); err != nil {
		o.t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer a.Body.Close()
	return a.StatusCode
}

// String is what is in the books.
func (o *outside) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for _, i := range o.invoices {
		says := fmt.Sprintf("%s of %s: %d", i.ID, i.Reference, i.Cents)
		if i.Void {
			says += " void"
		}
		all = append(all, says)
	}
	return strings.Join(all, ", ")
}
