package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Order is an order as the shop has it.
type Order struct {
	ID        string    `json:"id"`
	Version   int64     `json:"version"` // grows by one with every change
	Total     string    `json:"total"`
	Cancelled bool      `json:"cancelled"`
	changed   time.Time // by the shop's clock
}

// Shop is the source of truth, as small as can be: its lists have one page.
type Shop struct {
	mu     sync.Mutex
	orders map[string]Order
}

// NewShop returns a shop without orders.
func NewShop() *Shop { return &Shop{orders: map[string]Order{}} }

// Put stores an order that a customer places, changes or cancels, as its next version.
func (s *Shop) Put(o Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Version, o.changed = s.orders[o.ID].Version+1, time.Now()
	s.orders[o.ID] = o
}

// Lose is a shop that has no such order any more, and does not say why.
func (s *Shop) Lose(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.orders, id)
}

// Changed lists orders that changed since a time, the oldest change first.
func (s *Shop) Changed(_ context.Context, q reconcile.Query) (reconcile.Page, error) {
	return s.list(func(o Order) bool { return !o.changed.Before(q.Since) }, func(a, b Order) int {
		return cmp.Or(a.changed.Compare(b.changed), cmp.Compare(a.ID, b.ID))
	})
}

// All lists every order.
func (s *Shop) All(_ context.Context, _ reconcile.Query) (reconcile.Page, error) {
	return s.list(func(Order) bool { return true }, func(a, b Order) int { return cmp.Compare(a.ID, b.ID) })
}

func (s *Shop) list(which func(Order) bool, order func(a, b Order) int) (p reconcile.Page, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var orders []Order
	for _, o := range s.orders {
		if which(o) {
			orders = append(orders, o)
		}
	}
	slices.SortFunc(orders, order)
	for _, o := range orders {
		object, err := objectOf(o)
		if err != nil {
			return p, err
		}
		p.Objects = append(p.Objects, *object)
	}
	return p, nil
}

// Fetch asks for one order.
func (s *Shop) Fetch(_ context.Context, of inbox.Object) (inbox.Fetched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[of.ID]
	if !ok {
		return inbox.Fetched{Gone: true}, nil
	}
	body, err := json.Marshal(o)
	return inbox.Fetched{Version: inbox.Counter(o.Version), Body: body}, err
}

func objectOf(o Order) (*reconcile.Object, error) {
	body, err := json.Marshal(o)
	return &reconcile.Object{ID: o.ID, Version: inbox.Counter(o.Version), Changed: o.changed, Body: body}, err
}
