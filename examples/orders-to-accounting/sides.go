package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/sagahttp"
)

// mapping names how an order is turned into what its invoice should say. Who changes digest or
// fields changes it, too.
const mapping = "1"

// changedOrders lists what changed since a time.
func (s *Sync) changedOrders(ctx context.Context, q reconcile.Query) (page []reconcile.Listed, next string, err error) {
	return s.listOrders(ctx, q, map[string][]string{"changedSince": {q.Since.UTC().Format(time.RFC3339)}}, nil)
}

// ranges are the parts in which the shop is listed whole: each begins where the one before ends, by
// when an order was created, and is named after its beginning.
var ranges = []string{"1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z", "9999-01-01T00:00:00Z"}

// orderRanges names the parts, and what each of them holds by the shop's word.
func (s *Sync) orderRanges(ctx context.Context) ([]reconcile.Partition, error) {
	var parts []reconcile.Partition
	for _, from := range ranges[:len(ranges)-1] {
		var total *int
		if _, _, err := s.listOrders(ctx, reconcile.Query{Limit: 1}, createdIn(from), &total); err != nil {
			return nil, err
		}
		if total == nil {
			return nil, fmt.Errorf("the shop did not say how many orders it has from %s on", from)
		}
		parts = append(parts, reconcile.Partition{Name: from, Count: int64(*total)})
	}
	return parts, nil
}

func createdIn(part string) map[string][]string {
	return map[string][]string{"createdFrom": {part}, "createdTo": {ranges[slices.Index(ranges, part)+1]}}
}

// allOrders lists one part, in the order in which its orders came in.
func (s *Sync) allOrders(ctx context.Context, q reconcile.Query) (page []reconcile.Listed, next string, err error) {
	return s.listOrders(ctx, q, createdIn(q.Partition), nil)
}

// mostOrders is how many orders the shop puts on a page at most.
const mostOrders = 500

// listOrders asks for one page. total gets what the shop says of a created range, if it is not nil.
func (s *Sync) listOrders(ctx context.Context, q reconcile.Query, which map[string][]string, total **int) (page []reconcile.Listed, next string, err error) {
	limit := mostOrders
	if q.Limit > 0 {
		limit = min(q.Limit, mostOrders)
	}
	which["limit"] = []string{strconv.Itoa(limit)}
	if q.Cursor != "" {
		which["after"] = []string{q.Cursor}
	}
	var answer struct {
		Orders []json.RawMessage
		Next   string
		Total  *int
	}
	if err := s.ask(ctx, s.shop, sagahttp.Path("orders"), which, &answer); err != nil {
		return nil, "", err
	}
	if total != nil {
		*total = answer.Total
	}
	for _, body := range answer.Orders {
		o, err := objectOf(body)
		if err != nil {
			return nil, "", err
		}
		page = append(page, o)
	}
	if len(answer.Orders) == limit { // an empty page repeats its cursor; a short one is the last
		next = answer.Next
	}
	return page, next, nil
}

// fetchOrder asks for one order.
func (s *Sync) fetchOrder(ctx context.Context, of inbox.Object) (inbox.Fetched, error) {
	var body json.RawMessage
	answer, err := s.shop.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: sagahttp.Path("orders", of.ID), Into: &body})
	if answer != nil && answer.Status == http.StatusNotFound {
		return inbox.Fetched{Gone: true}, nil
	}
	if err != nil {
		return inbox.Fetched{}, err
	}
	o, err := objectOf(body)
	return inbox.Fetched{Version: o.Version, Body: body}, err
}

// objectOf reads what the gate and a sweep need of an order, as the shop gave it.
func objectOf(body json.RawMessage) (reconcile.Listed, error) {
	var o outside.Order
	if err := json.Unmarshal(body, &o); err != nil {
		return reconcile.Listed{}, fmt.Errorf("the shop sent an order that cannot be read: %w", err)
	}
	return reconcile.Listed{ID: o.ID, Version: inbox.Counter(o.Version), Created: o.CreatedAt, Changed: o.UpdatedAt, Body: body}, nil
}

// fieldsOf is what the invoice of an order should say. That a newer version of an order is no news
// when only our mark has moved, is seen by it.
func fieldsOf(o outside.Order) reconcile.Fields { return fields(o.Customer.Ref(), o.Lines) }

// fields are what is ours on an invoice.
func fields(customer string, lines []outside.Line) reconcile.Fields {
	var sold strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&sold, "%d × %s at %d; ", l.Quantity, strings.TrimSpace(l.Description), l.UnitCents)
	}
	return reconcile.Fields{"customer": customer, "total": strconv.FormatInt(outside.Total(lines), 10), "lines": strings.TrimSuffix(sold.String(), "; ")}
}

// invoices is the books as a sweep reads them.
func (s *Sync) invoices() reconcile.Destination {
	return reconcile.Destination{Marked: s.ourInvoices, Find: s.invoicesOf, Void: s.voidDocument, Settle: s.settle, Limits: inbox.Limits{PerSecond: 200}}
}

// ourInvoices lists what carries our mark, void and posted ones too.
func (s *Sync) ourInvoices(ctx context.Context, q reconcile.Query) (page []reconcile.Document, next string, err error) {
	const most = 200
	list, err := s.listInvoices(ctx, map[string][]string{"mark": {outside.RefPrefix}, "after": {q.Cursor}, "limit": {strconv.Itoa(most)}})
	if err != nil {
		return nil, "", err
	}
	if len(list.Invoices) == most {
		next = list.Next
	}
	return documents(list.Invoices), next, nil
}

// invoicesOf asks for everything under one order's reference.
func (s *Sync) invoicesOf(ctx context.Context, key string) ([]reconcile.Document, error) {
	list, err := s.listInvoices(ctx, map[string][]string{"reference": {key}})
	return documents(list.Invoices), err
}

// voidDocument voids an invoice because a person has decided so. The books take it twice.
func (s *Sync) voidDocument(ctx context.Context, d reconcile.Document) error {
	_, err := s.books.Do(ctx, sagahttp.Request{Method: http.MethodPost, Path: sagahttp.Path("invoices", d.ID, "void"), Key: "decided:" + d.ID})
	return err
}

func (s *Sync) listInvoices(ctx context.Context, which map[string][]string) (list outside.List, err error) {
	return list, s.ask(ctx, s.books, sagahttp.Path("invoices"), which, &list)
}

func documents(invoices []outside.Invoice) []reconcile.Document {
	docs := make([]reconcile.Document, len(invoices))
	for i := range invoices {
		docs[i] = document(&invoices[i])
	}
	return docs
}

// document returns an invoice in the form in which it is compared. The memo holds the version of
// the order that the invoice shows, and a digest of the fields that the sync wrote. While the
// digest matches the fields, the document is Intact: no other writer has changed them since.
func document(inv *outside.Invoice) reconcile.Document {
	f := fields(inv.CustomerRef, inv.Lines)
	d := reconcile.Document{
		ID: inv.ID, Key: inv.Reference, Fields: f, Void: inv.State == outside.Void, Foreign: inv.Note != "", Created: inv.CreatedAt,
	}
	d.Revision, d.Intact = readMemo(inv.Memo, f)
	d.Body, _ = json.Marshal(inv) //nolint:errchkjson // what was read from JSON can be written
	return d
}

// ask asks for a list.
func (s *Sync) ask(ctx context.Context, of *sagahttp.Client, path string, which map[string][]string, into any) error {
	_, err := of.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: path, Query: which, Into: into})
	return err
}
