package outside

import (
	"cmp"
	"fmt"
	"slices"
)

// Deed is a change that people make in the books by hand. The books send no webhooks, so no sync is
// told of it.
type Deed string

// The deeds. All but the last are done to the one live invoice of a paid and marked order.
const (
	Edited   Deed = "edited"   // other lines and another total, under the old memo
	Noted    Deed = "noted"    // a note; only people write notes
	Voided   Deed = "voided"   // voided
	Deleted  Deed = "deleted"  // deleted for good
	Copied   Deed = "copied"   // a second one like it, under the same reference
	Handmade Deed = "handmade" // an invoice of their own, under a reference of their own
)

var deeds = []Deed{Edited, Noted, Voided, Deleted, Copied, Handmade}

// Done is one deed that was done.
type Done struct {
	Deed      Deed   `json:"deed"`
	Reference string `json:"reference"` // under which the invoice is found, like shop:order:10492
	Invoice   string `json:"invoice"`   // to which it was done; of Copied and Handmade, the new one
}

// Tamper has people do each deed so many times, each to an invoice of its own; which ones depends on
// the seed and the orders that are there. Where there are fewer invoices than deeds, the last deeds
// are not done. Call it once, when the world is quiet.
func (w *World) Tamper(times int) (done []Done, err error) {
	orders, invoices := w.untouched()
	for n := range times * len(deeds) {
		if n == len(orders) {
			break
		}
		deed, o := deeds[n%len(deeds)], orders[n]
		inv, err := w.tamper(deed, o, invoices[o.Ref()])
		if err != nil {
			return done, fmt.Errorf("tamper with the invoice of order %s: %w", o.ID, err)
		}
		done = append(done, Done{deed, inv.Reference, inv.ID})
	}
	return done, nil
}

// untouched returns the paid and marked orders that have one live invoice, in the sequence of the
// seed, and the live invoices by reference.
func (w *World) untouched() ([]Order, map[string]Invoice) {
	live, marked := map[string]int{}, map[string]Invoice{}
	for _, inv := range w.Books.Invoices() {
		if inv.State == Live {
			live[inv.Reference]++
			marked[inv.Reference] = inv
		}
	}
	orders := slices.DeleteFunc(w.Shop.Orders(), func(o Order) bool {
		return o.Deleted || o.Status != Paid || live[o.Ref()] != 1 || marked[o.Ref()].ID != o.InvoiceID
	})
	slices.SortStableFunc(orders, func(a, b Order) int { return cmp.Compare(w.chance("turn", a.ID), w.chance("turn", b.ID)) })
	return orders, marked
}

func (w *World) chance(what, order string) float64 {
	return Draw(w.config.Seed, "tamper/"+what+"/"+order)
}

// tamper does a deed to the invoice of an order.
func (w *World) tamper(deed Deed, o Order, inv Invoice) (Invoice, error) {
	switch deed {
	case Edited:
		return w.Books.Update(inv.ID, Content{Memo: inv.Memo, Lines: w.cook(o.ID, inv.Lines)}, 0)
	case Noted:
		return w.Books.Annotate(inv.ID, "the customer called about this one")
	case Voided:
		return w.Books.Void(inv.ID)
	case Deleted:
		return w.Books.Delete(inv.ID)
	case Copied:
		return w.Books.Add(inv.Draft, 0)
	default:
		return w.Books.Add(Draft{Customer: inv.Customer, Reference: "by telephone, after " + o.ID, Content: Content{Lines: inv.Lines[:1]}}, 0)
	}
}

// cook returns an invoice's lines as an edit by hand leaves them. Their total is another one.
func (w *World) cook(order string, lines []Line) []Line {
	lines = slices.Clone(lines)
	at := int(w.chance("line", order) * float64(len(lines)))
	switch draw := w.chance("lines", order); {
	case draw < 0.3 && len(lines) > 1:
		return slices.Delete(lines, at, at+1)
	case draw < 0.6:
		lines[at].UnitCents += 100
	default:
		lines[at].Quantity++
	}
	return lines
}
