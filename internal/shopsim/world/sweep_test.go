package world_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/hooks"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/internal/shopsim/world"
)

// The shop's owner deletes the orders that the seed names, after all else that
// their customers want. The shop does not know them any more, and their webhooks
// tell.
func TestDeletes(t *testing.T) {
	t.Parallel()
	c := lively(60)
	c.Deletes = 0.3
	var told atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e shop.Event
		if json.NewDecoder(r.Body).Decode(&e) == nil && e.Type == shop.TopicDeleted && e.Data.Deleted && c.Deleted(e.Data.ID) {
			told.Add(1)
		}
	}))
	t.Cleanup(server.Close)
	c.Webhooks = hooks.Options{Receivers: []string{server.URL}, Secret: secret}
	w := start(t, c)
	markAll(t, w, c)
	await(t, w)
	there := map[string]bool{}
	for _, o := range theirs(t, w) {
		there[o.ID] = true
	}
	deleted, cancelled := 0, 0
	for _, o := range world.Orders(c) {
		if there[o.ID] == c.Deleted(o.ID) {
			t.Errorf("order %s is there: %t", o.ID, there[o.ID])
		}
		status, _ := send(t, http.MethodGet, w.ShopURL+"/orders/"+o.ID, nil)
		if strings.HasPrefix(status, "404") != c.Deleted(o.ID) {
			t.Errorf("order %s answers %s", o.ID, status)
		}
		if c.Deleted(o.ID) {
			deleted++
			if c.CancelledLate(o.ID) {
				cancelled++
			}
		}
	}
	if got := w.Changes(); got.Deletes != deleted || cancelled == 0 || cancelled == deleted || int(told.Load()) != deleted {
		t.Errorf("%+v and %d told, want %d deleted, some of %d cancelled before", got, told.Load(), deleted, cancelled)
	}
	if (world.Config{Seed: 4}).Deleted("10001") || !(world.Config{Seed: 4, Deletes: 1}).Deleted("10001") {
		t.Error("an order is deleted at share 0 or not at share 1")
	}
}

// The lists meet faults as everything else does, and each page arrives in the end.
func TestListsMeetFaults(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 3, Orders: 30, Faults: 0.5}
	w := start(t, c)
	at := world.Orders(c)[0].CreatedAt
	statuses := map[string]int{}
	pages := func(base string, q url.Values) (orders int) {
		for after := ""; ; {
			q.Set("limit", "2")
			q.Set("after", after)
			var p shop.Page
			for range faults.Patience + 1 {
				status, body := send(t, http.MethodGet, base+"?"+q.Encode(), nil)
				statuses[status]++
				if strings.HasPrefix(status, "200") && json.Unmarshal([]byte(body), &p) == nil {
					break
				}
			}
			if len(p.Orders) == 0 {
				return orders
			}
			orders += len(p.Orders)
			after = p.Next
		}
	}
	if n := pages(w.ShopURL+"/orders", url.Values{"changedSince": {at.Format(time.RFC3339)}}); n != 30 {
		t.Errorf("%d orders changed, want 30", n)
	}
	if n := pages(w.ShopURL+"/orders", url.Values{"createdFrom": {at.Format(time.RFC3339)}}); n != 30 {
		t.Errorf("%d orders created, want 30", n)
	}
	if pages(w.BooksURL+"/invoices", url.Values{"mark": {"shop:order:"}}); statuses["429 Too Many Requests"]*statuses["502 Bad Gateway"]*statuses["cut"] == 0 {
		t.Errorf("met %v, want all kinds", statuses)
	}
}

// Webhooks that are all dropped and never sent again reach nobody, and the world
// becomes quiet all the same: after the customers have changed their minds.
func TestNobodyHears(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	t.Cleanup(server.Close)
	c := lively(30)
	c.Webhooks = hooks.Options{Receivers: []string{server.URL}, Secret: secret, Once: true, Plan: hooks.Plan{Drops: 1, Duplicates: 0.5}}
	w := start(t, c)
	markAll(t, w, c)
	await(t, w)
	got, err := w.Webhooks(t.Context())
	if err != nil || got.Made <= 60 || got.Lost != got.Made || got.Acknowledged != 0 || arrived.Load() != 0 {
		t.Errorf("%+v, %v, %d arrived", got, err, arrived.Load())
	}
	changes := w.Changes()
	if got.Made != 60+changes.Edits+changes.LateCancels || changes.Edits == 0 {
		t.Errorf("%d webhooks after %+v", got.Made, changes)
	}
}
