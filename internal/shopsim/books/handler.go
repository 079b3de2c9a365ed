package books

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// Options say how the books behave beyond the plain rules. The zero value is
// well-behaved.
type Options struct {
	// Hidden says for how long lookups do not see the invoice that the
	// request with this context makes, or what it changes on one. Nil means
	// not at all.
	Hidden func(ctx context.Context) time.Duration
	// Booked is called after an invoice was stored and before the answer
	// leaves. Nil means nothing is told.
	Booked func(ctx context.Context, inv Invoice)
}

// NewHandler serves the API of the books over s.
func NewHandler(s *Store, o Options) http.Handler {
	if o.Hidden == nil {
		o.Hidden = func(context.Context) time.Duration { return 0 }
	}
	if o.Booked == nil {
		o.Booked = func(context.Context, Invoice) {}
	}
	mux := http.NewServeMux()
	mux.Handle("PUT /customers/{ref}", rest.Endpoint(func(r *http.Request) (int, any, error) {
		var c Contact
		if err := rest.Read(r, &c); err != nil {
			return 0, nil, err
		}
		customer, err := s.PutCustomer(r.Context(), r.PathValue("ref"), c)
		return http.StatusOK, customer, err
	}))
	mux.Handle("POST /invoices", rest.Endpoint(func(r *http.Request) (int, any, error) {
		var d Draft
		if err := rest.Read(r, &d); err != nil {
			return 0, nil, err
		}
		inv, err := s.AddInvoice(r.Context(), d, o.Hidden(r.Context()))
		if err == nil {
			o.Booked(context.WithoutCancel(r.Context()), inv) // what follows has as long as it takes
		}
		return http.StatusCreated, inv, err
	}))
	mux.Handle("GET /invoices", rest.Endpoint(s.lists))
	mux.Handle("GET /invoices/{id}", rest.Endpoint(func(r *http.Request) (int, any, error) {
		inv, err := s.Invoice(r.Context(), r.PathValue("id"))
		return http.StatusOK, inv, err
	}))
	mux.Handle("PUT /invoices/{id}", rest.Endpoint(func(r *http.Request) (int, any, error) {
		var u Update
		if err := rest.Read(r, &u); err != nil {
			return 0, nil, err
		}
		inv, err := s.UpdateInvoice(r.Context(), r.PathValue("id"), u, o.Hidden(r.Context()))
		return http.StatusOK, inv, err
	}))
	mux.Handle("POST /invoices/{id}/void", rest.Endpoint(func(r *http.Request) (int, any, error) {
		inv, err := s.Void(r.Context(), r.PathValue("id"))
		return http.StatusOK, inv, err
	}))
	return mux
}

// A page has defaultLimit invoices unless the request names a limit, and never
// more than maxLimit.
const (
	defaultLimit = 100
	maxLimit     = 200
)

// lists serves the lists by reference and by mark.
func (s *Store) lists(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	reference, mark := q.Get("reference"), q.Get("mark")
	if (reference == "") == (mark == "") {
		return 0, nil, rest.Refuse(http.StatusBadRequest, "bad_request", "say which: /invoices?reference= or /invoices?mark=")
	}
	if reference != "" {
		invoices, err := s.Lookup(r.Context(), reference)
		return http.StatusOK, List{Invoices: invoices}, err
	}
	limit := defaultLimit
	if text := q.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return 0, nil, rest.Refuse(http.StatusBadRequest, "bad_request", "limit=%q is not a positive number", text)
		}
	}
	l := List{Next: q.Get("after")}
	var err error
	if l.Invoices, err = s.Marked(r.Context(), mark, l.Next, min(limit, maxLimit)); len(l.Invoices) > 0 {
		l.Next = l.Invoices[len(l.Invoices)-1].ID
	}
	return http.StatusOK, l, err
}
