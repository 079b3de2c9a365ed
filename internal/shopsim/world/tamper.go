package world

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// Deed is a change that people make in the books by hand. The books send no
// webhooks, so no sync is told of it.
type Deed string

// The deeds. All but the last are done to the one live invoice of a paid and
// marked order.
const (
	Edited   Deed = "edited"   // other lines and another total, under the old memo
	Noted    Deed = "noted"    // a note; only people write notes
	Voided   Deed = "voided"   // voided
	Deleted  Deed = "deleted"  // deleted for good
	Copied   Deed = "copied"   // a second one like it, under the same reference
	Posted   Deed = "posted"   // posted; and then the customer edits the order
	Handmade Deed = "handmade" // an invoice of their own, under a reference of their own
)

// Tampering is how often each deed is done.
type Tampering struct {
	Edited, Noted, Voided, Deleted, Copied, Posted, Handmade int
}

// inTurn is every deed as often as it is done, the deeds taking turns.
func (t Tampering) inTurn() []Deed {
	var all []Deed
	for n := 0; ; n++ {
		before := len(all)
		for _, d := range []struct {
			deed  Deed
			times int
		}{{Edited, t.Edited}, {Noted, t.Noted}, {Voided, t.Voided}, {Deleted, t.Deleted}, {Copied, t.Copied}, {Posted, t.Posted}, {Handmade, t.Handmade}} {
			if n < d.times {
				all = append(all, d.deed)
			}
		}
		if len(all) == before {
			return all
		}
	}
}

// Done is one deed that was done.
type Done struct {
	Deed      Deed   `json:"deed"`
	Reference string `json:"reference"` // under which the invoice is found, like shop:order:10492
	Invoice   string `json:"invoice"`   // to which it was done; of Copied and Handmade, the new one
}

// Tampered is all that was done, in the sequence of doing.
type Tampered []Done

// References returns the references of what was done.
func (t Tampered) References() []string {
	all := make([]string, len(t))
	for i, d := range t {
		all[i] = d.Reference
	}
	return all
}

// desk is where people work in the books.
type desk struct {
	mu      sync.Mutex
	touched map[string]bool // orders
}

// Tamper lets people work in the books once, as Config.Tampering says, and
// returns what they did. Each deed is done to an invoice of its own; which ones
// depends on the seed and the orders that are there. Where there are fewer
// invoices than deeds, the last deeds are not done.
//
// Call it when the world is quiet and the books are up to date. A second call
// chooses among the invoices that no earlier call has changed.
func (w *World) Tamper(ctx context.Context) (Tampered, error) {
	w.desk.mu.Lock()
	defer w.desk.mu.Unlock()
	orders, invoices, err := w.untouched(ctx)
	if err != nil {
		return nil, fmt.Errorf("world: tamper: %w", err)
	}
	var done Tampered
	for i, deed := range w.config.Tampering.inTurn() {
		if i == len(orders) {
			break
		}
		o := orders[i]
		inv, err := w.tamper(ctx, deed, o, invoices[o.Ref()])
		if err != nil {
			return done, fmt.Errorf("world: tamper with the invoice of order %s: %w", o.ID, err)
		}
		w.desk.touched[o.ID] = true
		done = append(done, Done{Deed: deed, Reference: inv.Reference, Invoice: inv.ID})
	}
	return done, nil
}

// untouched returns the paid and marked orders whose one live invoice is neither
// posted nor changed by an earlier deed, in the sequence of the seed. It also
// returns the live invoices by reference.
func (w *World) untouched(ctx context.Context) ([]shop.Order, map[string]books.Invoice, error) {
	all, err := w.shop.Orders(ctx)
	if err != nil {
		return nil, nil, err
	}
	invoices, err := w.books.Invoices(ctx)
	if err != nil {
		return nil, nil, err
	}
	live, marked := map[string]int{}, map[string]books.Invoice{}
	for _, inv := range invoices {
		if inv.State == books.Live {
			live[inv.Reference]++
			marked[inv.Reference] = inv
		}
	}
	if w.desk.touched == nil {
		w.desk.touched = map[string]bool{}
	}
	orders := slices.DeleteFunc(all, func(o shop.Order) bool {
		inv := marked[o.Ref()]
		return o.Deleted || o.Status != shop.Paid || live[o.Ref()] != 1 || inv.ID != o.InvoiceID || inv.Posted || w.desk.touched[o.ID]
	})
	slices.SortStableFunc(orders, func(a, b shop.Order) int {
		return cmp.Compare(w.config.tamperDraw("turn", a.ID), w.config.tamperDraw("turn", b.ID))
	})
	return orders, marked, nil
}

// tamper does a deed to the invoice of an order.
func (w *World) tamper(ctx context.Context, deed Deed, o shop.Order, inv books.Invoice) (books.Invoice, error) {
	switch deed {
	case Edited:
		return w.books.UpdateInvoice(ctx, inv.ID, books.Update{Memo: inv.Memo, Lines: w.config.cook(o.ID, inv.Lines)}, 0)
	case Noted:
		return w.books.Annotate(ctx, inv.ID, "the customer called about this one")
	case Voided:
		return w.books.Void(ctx, inv.ID)
	case Deleted:
		return w.books.Delete(ctx, inv.ID)
	case Copied:
		return w.books.AddInvoice(ctx, books.Draft{Customer: inv.Customer, Reference: inv.Reference, Memo: inv.Memo, Lines: inv.Lines}, 0)
	case Posted:
		posted, err := w.books.Post(ctx, inv.ID)
		if err == nil {
			_, err = w.shop.Edit(ctx, o.ID, w.config.edit(o.ID, -2, nil, o.Lines))
		}
		return posted, err
	case Handmade:
		return w.books.AddInvoice(ctx, books.Draft{Customer: inv.Customer, Reference: "by telephone, after " + o.ID, Lines: inv.Lines[:1]}, 0)
	default:
		return inv, fmt.Errorf("unknown deed %q", deed)
	}
}

// cook returns an invoice's lines as an edit by hand leaves them. Their total is
// another one.
func (c Config) cook(order string, lines []books.Line) []books.Line {
	lines = slices.Clone(lines)
	at := int(c.tamperDraw("line", order) * float64(len(lines)))
	switch draw := c.tamperDraw("lines", order); {
	case draw < 0.3 && len(lines) > 1:
		return slices.Delete(lines, at, at+1)
	case draw < 0.6:
		lines[at].UnitCents += 100
	default:
		lines[at].Quantity++
	}
	return lines
}

func (c Config) tamperDraw(what, order string) float64 {
	return faults.Draw(c.Seed, "tamper/"+what+"/"+order)
}
