package main

import (
	"context"
	"encoding/json"

	"github.com/amends-dev/amends/examples/reconcile/town"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// source asks the shop.
type source struct{ shop town.Shop }

// fetch asks for one order.
func (s source) fetch(_ context.Context, of inbox.Object) (inbox.Fetched, error) {
	o, err := s.shop.Order(of.ID)
	if err != nil { // there is no such order
		return inbox.Fetched{Gone: true}, nil
	}
	body, err := json.Marshal(o)
	return inbox.Fetched{Version: inbox.Counter(o.Version), Body: body}, err
}

// all lists every order, on one page, because the shop is small.
func (s source) all(_ context.Context, _ reconcile.Query) (page []reconcile.Listed, next string, err error) {
	return listed(s.shop.Orders())
}

// changed lists orders that changed since a time, the oldest change first.
func (s source) changed(_ context.Context, q reconcile.Query) (page []reconcile.Listed, next string, err error) {
	return listed(s.shop.Changed(q.Since))
}

func listed(orders []town.Order) (page []reconcile.Listed, next string, err error) {
	for _, o := range orders {
		body, err := json.Marshal(o)
		if err != nil {
			return nil, "", err
		}
		page = append(page, reconcile.Listed{ID: o.ID, Version: inbox.Counter(o.Version), Changed: o.UpdatedAt, Body: body})
	}
	return page, "", nil
}

// destination asks the books.
type destination struct{ books town.Books }

// write makes the invoice of an order.
func (d destination) write(ctx context.Context, c saga.Call[town.Order]) (town.Invoice, error) {
	return d.update(ctx, c, "")
}

// update brings the invoice up to date that an earlier version of the order has.
func (d destination) update(_ context.Context, c saga.Call[town.Order], id string) (town.Invoice, error) {
	return d.books.Write(id, c.Work, c.Revision, c.Input.TotalCents)
}

// find asks whether the invoice of this version is there. A void one is none.
func (d destination) find(_ context.Context, c saga.Call[town.Order]) (saga.Finding[town.Invoice], error) {
	var live []town.Invoice
	for _, inv := range d.books.Lookup(c.Work) {
		if inv.Memo == c.Revision && inv.State == "live" {
			live = append(live, inv)
		}
	}
	return saga.Found(live...), nil
}

// void undoes write.
func (d destination) void(_ context.Context, _ saga.Call[town.Order], inv town.Invoice) error {
	_, err := d.books.Void(inv.ID)
	return err
}

func (d destination) mail(context.Context, saga.Call[town.Order]) (string, error) {
	d.books.Mail()
	return "", nil
}

// marked lists what carries our mark, on one page, because the books are small.
func (d destination) marked(context.Context, reconcile.Query) (page []reconcile.Document, next string, err error) {
	return documents(d.books.Ours()), "", nil
}

// under asks for everything under one mark.
func (d destination) under(_ context.Context, mark string) ([]reconcile.Document, error) {
	return documents(d.books.Lookup(mark)), nil
}

// documents are invoices as they are compared.
func documents(invoices []town.Invoice) []reconcile.Document {
	docs := make([]reconcile.Document, len(invoices))
	for i, inv := range invoices {
		docs[i] = reconcile.Document{
			ID: inv.ID, Key: inv.Reference, Revision: inv.Memo, Void: inv.State == "void", Fields: map[string]string{"total": outside.Money(inv.TotalCents)},
		}
	}
	return docs
}
