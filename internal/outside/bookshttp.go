package outside

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// List is the answer to GET /invoices. A list by mark goes on behind Next; an empty page repeats the
// cursor it was asked with.
type List struct {
	Invoices []Invoice `json:"invoices"`
	Next     string    `json:"next,omitempty"`
}

// Handler serves the API of the books.
func (b *Books) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("PUT /customers/{ref}", sends(func(r *http.Request, c Contact) (any, error) { return b.PutCustomer(r.PathValue("ref"), c), nil }))
	mux.Handle("POST /invoices", sends(b.make))
	mux.Handle("GET /invoices", asks(b.list))
	mux.Handle("GET /invoices/{id}", asks(func(r *http.Request) (any, error) { return b.Invoice(r.PathValue("id")) }))
	mux.Handle("PUT /invoices/{id}", sends(func(r *http.Request, c Content) (any, error) {
		return b.Update(r.PathValue("id"), c, hidden(r))
	}))
	mux.Handle("POST /invoices/{id}/void", asks(func(r *http.Request) (any, error) { return b.Void(r.PathValue("id")) }))
	return mux
}

// make makes an invoice, or answers with the one that was made under the request's key.
func (b *Books) make(r *http.Request, d Draft) (any, error) {
	b.mu.Lock()
	key := r.Header.Get("Idempotency-Key")
	if id, known := b.keys[key]; b.Keys && known {
		b.mu.Unlock()
		return b.Invoice(id)
	}
	inv, err := b.add(d, hidden(r))
	b.keys[key] = inv.ID
	b.mu.Unlock()
	if err == nil && b.Booked != nil {
		b.Booked(inv)
	}
	return inv, err
}

// list answers the lists by reference, by mark, and of everything.
func (b *Books) list(r *http.Request) (any, error) {
	if reference := r.FormValue("reference"); reference != "" {
		return List{Invoices: b.Lookup(reference)}, nil
	}
	limit, err := limitOf(r, 200)
	if err != nil {
		return nil, err
	}
	l := List{Invoices: b.Marked(r.FormValue("mark")), Next: r.FormValue("after")}
	l.Invoices = slices.DeleteFunc(l.Invoices, func(inv Invoice) bool { return number(inv.ID) <= number(l.Next) })
	if l.Invoices = l.Invoices[:min(limit, len(l.Invoices))]; len(l.Invoices) > 0 {
		l.Next = l.Invoices[len(l.Invoices)-1].ID
	}
	return l, nil
}

// number is the number of an invoice, and 0 of no invoice.
func number(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "inv_"))
	return n
}
