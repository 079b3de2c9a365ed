// Package town plays a shop, its books, and those who use them.
package town

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Secret is what the shop signs its webhooks with.
const Secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // of no real shop

// Order is an order as the shop has it.
type Order struct {
	ID        string    `json:"id"`
	Version   int64     `json:"version"` // grows by one with every change
	Total     string    `json:"total"`
	Cancelled bool      `json:"cancelled"`
	Changed   time.Time `json:"-"` // by the shop's clock
}

// Shop is the source of truth.
type Shop struct {
	mu     sync.Mutex
	orders map[string]Order
	sent   int
}

// NewShop returns a shop without orders.
func NewShop() *Shop { return &Shop{orders: map[string]Order{}} }

// put stores an order that a customer places, changes or cancels, as its next version.
func (s *Shop) put(o Order) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Version, o.Changed = s.orders[o.ID].Version+1, time.Now()
	s.orders[o.ID] = o
	return o
}

// lose is a shop that has no such order any more, and does not say why.
func (s *Shop) lose(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.orders, id)
}

// Order is an order as it is now.
func (s *Shop) Order(id string) (Order, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[id]
	return o, ok
}

// Orders are all orders, by their ids.
func (s *Shop) Orders() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.orders), func(a, b Order) int { return cmp.Compare(a.ID, b.ID) })
}

// Changed are the orders that changed at or since a time, the oldest change first.
func (s *Shop) Changed(since time.Time) []Order {
	orders := slices.DeleteFunc(s.Orders(), func(o Order) bool { return o.Changed.Before(since) })
	slices.SortStableFunc(orders, func(a, b Order) int { return a.Changed.Compare(b.Changed) })
	return orders
}
