package outside

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
)

// Page is one page of orders. Next is the cursor after its last order; an empty page repeats the
// cursor it was asked with, so that a caller can ask again later for what is new. Total is told of a
// created range only: how many orders it has, on all of its pages.
type Page struct {
	Orders []Order `json:"orders"`
	Next   string  `json:"next"`
	Total  *int    `json:"total,omitempty"`
}

// Handler serves the shop's API.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /orders", asks(s.page))
	mux.Handle("GET /orders/{id}", asks(func(r *http.Request) (any, error) { return s.Order(r.PathValue("id")) }))
	mux.Handle("DELETE /orders/{id}", asks(func(r *http.Request) (any, error) { return nil, s.Delete(r.PathValue("id")) }))
	mux.Handle("PUT /orders/{id}/synced", sends(func(r *http.Request, m Mark) (any, error) {
		if m.InvoiceID == "" {
			return nil, badRequest("invoiceId is missing")
		}
		return s.Mark(r.PathValue("id"), m.InvoiceID)
	}))
	mux.Handle("DELETE /orders/{id}/synced", asks(func(r *http.Request) (any, error) {
		_, err := s.Unmark(r.PathValue("id"))
		return nil, err
	}))
	return mux
}

// page answers a list. A cursor sorts as its list does.
func (s *Shop) page(r *http.Request) (any, error) {
	limit, err := limitOf(r, 500)
	if err != nil {
		return nil, err
	}
	since, err := timeOf(r, "changedSince")
	if err != nil {
		return nil, err
	}
	from, err := timeOf(r, "createdFrom")
	if err != nil {
		return nil, err
	}
	to, err := timeOf(r, "createdTo")
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(r.FormValue("after"))
	if err != nil {
		return nil, badRequest("after=%q is no cursor of this list", r.FormValue("after"))
	}
	type row struct {
		cursor string
		Order
	}
	var rows []row
	for i, o := range s.Orders() {
		out := o.Deleted || r.FormValue("status") != "" && o.Status != Status(r.FormValue("status")) ||
			r.FormValue("synced") == "no" && o.InvoiceID != "" ||
			o.UpdatedAt.Before(since.Truncate(s.Tick)) || o.CreatedAt.Before(from) || !to.IsZero() && !o.CreatedAt.Before(to)
		cursor := fmt.Sprintf("%09d", i)
		if !since.IsZero() {
			cursor = fmt.Sprintf("%s %s", o.UpdatedAt.Format("2006-01-02T15:04:05.000000000"), o.ID)
		}
		if !out {
			rows = append(rows, row{cursor, o})
		}
	}
	p := Page{Orders: []Order{}, Next: r.FormValue("after")}
	if total := len(rows); !from.IsZero() || !to.IsZero() {
		p.Total = &total
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.cursor, b.cursor) })
	for _, row := range rows {
		if row.cursor > string(after) && len(p.Orders) < limit {
			p.Orders, p.Next = append(p.Orders, row.Order), base64.RawURLEncoding.EncodeToString([]byte(row.cursor))
		}
	}
	return p, nil
}
