// Package town plays a shop, its books, and those who use them.
package town

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/outside"
)

// Secret is what the shop signs its webhooks with.
const Secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // of no real shop

// Order is an order as the shop has it.
type Order = outside.Order

// Invoice is an invoice as the books have it. Its memo is the version of the order that it shows.
type Invoice = outside.Invoice

// Shop is the source of truth.
type Shop struct{ *outside.Shop }

// NewShop returns a shop without orders.
func NewShop() Shop {
	s := outside.NewShop()
	s.Tick = time.Microsecond
	return Shop{s}
}

// Orders are all orders, in the order in which they came in.
func (s Shop) Orders() []Order {
	return slices.DeleteFunc(s.Shop.Orders(), func(o Order) bool { return o.Deleted })
}

// Changed are the orders that changed at or since a time, the oldest change first.
func (s Shop) Changed(since time.Time) []Order {
	orders := slices.DeleteFunc(s.Orders(), func(o Order) bool { return o.UpdatedAt.Before(since) })
	slices.SortStableFunc(orders, func(a, b Order) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	return orders
}

// Books are where the invoices are. Their post office cannot be asked what it has sent.
type Books struct {
	*outside.Books
	mails *atomic.Int64
}

// NewBooks returns empty books.
func NewBooks() Books {
	b := outside.NewBooks()
	b.Number = func(reference string, nth int) string { // inv-43, and inv-43-2 once that was deleted
		id := "inv-" + strings.TrimPrefix(reference, outside.RefPrefix)
		if nth > 1 {
			id += fmt.Sprint("-", nth)
		}
		return id
	}
	return Books{b, new(atomic.Int64)}
}

// Settle is how long it takes until everybody who asks the books is told of a new invoice. Real ones say
// so, or are given some seconds.
const Settle = 10 * time.Millisecond

// Write brings the invoice with that id up to date, or makes one if none stands.
func (b Books) Write(id, reference, version string, cents int64) (Invoice, error) {
	says := outside.Content{Memo: version, TotalCents: cents}
	if inv, err := b.Update(id, says, 0); err == nil {
		return inv, nil
	}
	return b.Add(outside.Draft{Reference: reference, Content: says}, 0)
}

// Ours are the invoices that carry our mark.
func (b Books) Ours() []Invoice { return b.Marked(outside.RefPrefix) }

// Mail sends one.
func (b Books) Mail() { b.mails.Add(1) }

// String is what stands, in one line.
func (b Books) String() string {
	var s strings.Builder
	for _, inv := range slices.SortedFunc(slices.Values(b.Invoices()), func(a, b Invoice) int { return cmp.Compare(a.ID, b.ID) }) {
		says := outside.Money(inv.TotalCents)
		if inv.State == outside.Void {
			says = "void"
		}
		fmt.Fprintf(&s, "%s %s, ", inv.ID, says)
	}
	return fmt.Sprintf("%s%d mails sent", s.String(), b.mails.Load())
}
