package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// Invoice is an invoice as the books have it.
type Invoice struct {
	ID        string `json:"id,omitempty"`
	Reference string `json:"reference"` // the work id: by it we know our own again
	Version   string `json:"memo"`      // of the order that it shows
	Cents     int64  `json:"totalCents"`
	State     string `json:"state,omitempty"` // live or void
}

// ExternalID is what the books call it.
func (i Invoice) ExternalID() string { return i.ID }

// Books are where the invoices are.
type Books struct{ client *sagahttp.Client }

func newBooks(address string) (*Books, error) {
	client, err := sagahttp.New(address, nil)
	return &Books{client}, err
}

// create makes the invoice of an order.
func (b *Books) create(ctx context.Context, c saga.Call[Order]) (made Invoice, err error) {
	_, err = b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: "/invoices", Key: c.Key, Into: &made,
		Body: Invoice{Reference: c.Work, Version: c.Revision, Cents: c.Input.Cents},
	})
	return made, err
}

// update brings the invoice up to date that an earlier version of the order has.
func (b *Books) update(ctx context.Context, c saga.Call[Order], id string) (made Invoice, err error) {
	_, err = b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("invoices", id), Updates: true, Key: c.Key, Into: &made,
		Body: Invoice{Reference: c.Work, Version: c.Revision, Cents: c.Input.Cents},
	})
	return made, err
}

// find asks whether the invoice of this version is there. A void one is none.
func (b *Books) find(ctx context.Context, c saga.Call[Order]) (saga.Finding[Invoice], error) {
	all, _, err := b.list(ctx, url.Values{"reference": {c.Work}})
	if err != nil {
		return saga.CannotTell[Invoice](), err
	}
	var live []Invoice
	for _, i := range all {
		if i.State == "live" && (i.Version == c.Revision || i.ID != c.PreviousID()) {
			live = append(live, i)
		}
	}
	return saga.Found(live...), nil
}

// void undoes create.
func (b *Books) void(ctx context.Context, c saga.Call[Order], i Invoice) error {
	_, err := b.client.Do(ctx, sagahttp.Request{Method: http.MethodPost, Path: sagahttp.Path("invoices", i.ID, "void"), Key: c.Key})
	return err
}

// marked lists everything that carries our mark, void or not.
func (b *Books) marked(ctx context.Context, q reconcile.Query) (page []reconcile.Document, next string, err error) {
	all, next, err := b.list(ctx, url.Values{"mark": {"shop:order:"}, "after": {q.Cursor}})
	return documents(all), next, err
}

// under lists everything that carries one mark.
func (b *Books) under(ctx context.Context, reference string) ([]reconcile.Document, error) {
	all, _, err := b.list(ctx, url.Values{"reference": {reference}})
	return documents(all), err
}

func (b *Books) list(ctx context.Context, which url.Values) (all []Invoice, next string, err error) {
	var listed struct {
		Invoices []Invoice `json:"invoices"`
		Next     string    `json:"next"`
	}
	_, err = b.client.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: "/invoices", Query: which, Into: &listed})
	if next = listed.Next; len(listed.Invoices) == 0 {
		next = "" // that was all
	}
	return listed.Invoices, next, err
}

func documents(all []Invoice) []reconcile.Document {
	docs := make([]reconcile.Document, len(all))
	for n, i := range all {
		docs[n] = reconcile.Document{
			ID: i.ID, Key: i.Reference, Revision: i.Version, Void: i.State == "void", Fields: map[string]string{"cents": fmt.Sprint(i.Cents)},
		}
	}
	return docs
}
