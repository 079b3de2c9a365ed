package shop

import (
	"net/http"
	"strconv"

	"github.com/amends-dev/amends/examples/orders-to-accounting/internal/rest"
)

// Pages have defaultLimit orders when nobody says otherwise, and never more
// than maxLimit.
const (
	defaultLimit = 100
	maxLimit     = 500
)

// NewHandler serves the shop's API over s.
func NewHandler(s *Store) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /orders", rest.Endpoint(s.list))
	mux.Handle("GET /orders/{id}", onOrder(func(r *http.Request, id string) (Order, error) {
		return s.Order(r.Context(), id)
	}))
	mux.Handle("PUT /orders/{id}/synced", onOrder(s.mark))
	mux.Handle("DELETE /orders/{id}/synced", rest.Endpoint(func(r *http.Request) (int, any, error) {
		_, err := s.ClearSynced(r.Context(), r.PathValue("id"))
		return http.StatusNoContent, nil, err
	}))
	mux.Handle("POST /orders/{id}/edit", onOrder(s.edit))
	mux.Handle("POST /orders/{id}/cancel", onOrder(func(r *http.Request, id string) (Order, error) {
		return s.Cancel(r.Context(), id)
	}))
	return mux
}

// onOrder serves an endpoint that answers with the order it is about.
func onOrder(do func(r *http.Request, id string) (Order, error)) http.Handler {
	return rest.Endpoint(func(r *http.Request) (int, any, error) {
		o, err := do(r, r.PathValue("id"))
		return http.StatusOK, o, err
	})
}

func (s *Store) mark(r *http.Request, id string) (Order, error) {
	var m Mark
	if err := rest.Read(r, &m); err != nil {
		return Order{}, err
	}
	if m.InvoiceID == "" {
		return Order{}, rest.Refuse(http.StatusBadRequest, "bad_request", "invoiceId is missing")
	}
	return s.MarkSynced(r.Context(), id, m.InvoiceID)
}

func (s *Store) edit(r *http.Request, id string) (Order, error) {
	var e Edit
	if err := rest.Read(r, &e); err != nil {
		return Order{}, err
	}
	return s.Edit(r.Context(), id, e.Lines)
}

func (s *Store) list(r *http.Request) (int, any, error) {
	f, err := filterOf(r)
	if err != nil {
		return 0, nil, err
	}
	orders, last, err := s.page(r.Context(), f)
	return http.StatusOK, Page{Orders: orders, Next: strconv.FormatInt(last, 10)}, err
}

func filterOf(r *http.Request) (Filter, error) {
	q := r.URL.Query()
	f := Filter{Status: Status(q.Get("status")), Unsynced: q.Get("synced") == "no", Limit: defaultLimit}
	var err error
	if after := q.Get("after"); after != "" {
		if f.After, err = strconv.ParseInt(after, 10, 64); err != nil {
			return f, rest.Refuse(http.StatusBadRequest, "bad_request", "after=%q is no cursor of this shop", after)
		}
	}
	if limit := q.Get("limit"); limit != "" {
		if f.Limit, err = strconv.Atoi(limit); err != nil || f.Limit < 1 {
			return f, rest.Refuse(http.StatusBadRequest, "bad_request", "limit=%q is not a positive number", limit)
		}
	}
	f.Limit = min(f.Limit, maxLimit)
	return f, nil
}
