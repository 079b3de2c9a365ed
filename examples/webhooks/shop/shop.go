// Package shop plays the source of truth, as small as can be.
package shop

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/saga"
)

// Secret is what the shop signs its webhooks with.
const Secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // of no real shop

// Order is an order as the shop has it.
type Order = outside.Order

// Shop has orders, and tells of them.
type Shop struct{ shop *outside.Shop }

// New returns a shop without orders.
func New() *Shop { return &Shop{outside.NewShop()} }

// Order is an order as it is now.
func (s *Shop) Order(id string) (Order, bool) {
	o, err := s.shop.Order(id)
	return o, err == nil
}

// Tell sends the webhooks of an order, late, twice and out of order, and waits for what each leads to.
func (s *Shop) Tell(ctx context.Context, out io.Writer, url string, wait func(ctx context.Context, saga, work string) (saga.Summary, error)) error {
	costs := func(cents int64) func() {
		return func() { s.shop.Put(Order{ID: "42", Status: outside.Pending, TotalCents: cents}) }
	}
	for _, is := range []struct {
		happens []func() // in the shop
		version int      // that is told then
		comment string
		settled saga.Status
	}{
		{[]func(){costs(2000)}, 1, "", saga.Completed},
		{[]func(){costs(2200), costs(2500)}, 3, " (version 2 is late)", saga.Completed},
		{nil, 2, " (here it is: nothing follows)", saga.Completed},
		{nil, 3, " (again: nothing follows)", saga.Completed},
		{[]func(){func() { _ = s.shop.Delete("42") }}, 4, "", saga.Compensated},
		{nil, 3, " (an old one, months later: nothing follows)", saga.Compensated},
	} {
		for _, happens := range is.happens {
			happens()
		}
		w := s.shop.Webhooks()[is.version-1]
		fmt.Fprintf(out, "webhook: %s, version %d%s\n", w.Topic, w.Version, is.comment)
		if err := outside.Tell(ctx, url, Secret, w); err != nil {
			return err
		}
		for begun := time.Now(); ; {
			work, err := wait(ctx, "invoice-order", outside.RefPrefix+w.Order)
			if err == nil && work.Status == is.settled && saga.CompareRevisions(cmp.Or(work.NewestRevision, work.Revision), fmt.Sprint(w.Version)) >= 0 {
				break
			}
			if time.Since(begun) > 30*time.Second {
				return fmt.Errorf("order %s did not come to rest: %w", w.Order, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}
