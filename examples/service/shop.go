package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/sagahttp"
)

// Order is an order as the shop has it.
type Order struct {
	ID      string    `json:"id"`
	Version int64     `json:"version"` // grows by one with every change
	Status  string    `json:"status"`  // pending, paid or cancelled
	Cents   int64     `json:"totalCents"`
	Changed time.Time `json:"updatedAt"`
}

// Shop is the source of truth.
type Shop struct{ client *sagahttp.Client }

func newShop(address string) (*Shop, error) {
	client, err := sagahttp.New(address, nil)
	return &Shop{client}, err
}

// fetch asks for one order. Only a plain 404 says that there is none.
func (s *Shop) fetch(ctx context.Context, of inbox.Object) (inbox.Fetched, error) {
	var o Order
	answer, err := s.client.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: sagahttp.Path("orders", of.ID), Into: &o})
	if answer != nil && answer.Status == http.StatusNotFound {
		return inbox.Fetched{Gone: true}, nil
	}
	if err != nil {
		return inbox.Fetched{}, err
	}
	body, err := json.Marshal(o)
	return inbox.Fetched{Version: inbox.Counter(o.Version), Body: body}, err
}

// all lists every order, in the order in which they came in.
func (s *Shop) all(ctx context.Context, q reconcile.Query) (page []reconcile.Listed, next string, err error) {
	return s.list(ctx, q, url.Values{})
}

// changed lists what changed at or since a time, the oldest change first.
func (s *Shop) changed(ctx context.Context, q reconcile.Query) (page []reconcile.Listed, next string, err error) {
	return s.list(ctx, q, url.Values{"changedSince": {q.Since.UTC().Format(time.RFC3339Nano)}})
}

func (s *Shop) list(ctx context.Context, q reconcile.Query, which url.Values) (page []reconcile.Listed, next string, err error) {
	which.Set("after", q.Cursor)
	var listed struct {
		Orders []Order `json:"orders"`
		Next   string  `json:"next"`
	}
	_, err = s.client.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: "/orders", Query: which, Into: &listed})
	for _, o := range listed.Orders {
		body, wrong := json.Marshal(o)
		if wrong != nil {
			return nil, "", wrong
		}
		page = append(page, reconcile.Listed{ID: o.ID, Version: inbox.Counter(o.Version), Changed: o.Changed, Body: body})
	}
	if next = listed.Next; len(page) == 0 {
		next = "" // that was all
	}
	return page, next, err
}
