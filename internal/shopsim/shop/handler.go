package shop

import (
	"net/http"

	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// NewHandler serves the shop's API over s.
func NewHandler(s *Store) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /orders", rest.Endpoint(s.list))
	mux.Handle("GET /orders/{id}", onOrder(func(r *http.Request, id string) (Order, error) {
		return s.Order(r.Context(), id)
	}))
	mux.Handle("DELETE /orders/{id}", rest.Endpoint(func(r *http.Request) (int, any, error) {
		return http.StatusNoContent, nil, s.Delete(r.Context(), r.PathValue("id"))
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
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return 0, nil, err
	}
	p, err := s.page(r.Context(), f)
	return http.StatusOK, p, err
}
