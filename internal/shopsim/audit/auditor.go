package audit

import (
	"fmt"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// auditor is one audit under way. The maps are by the order's reference.
type auditor struct {
	due      func(shop.Order) bool
	mayLack  map[string]bool
	tampered map[string]bool
	live     map[string][]books.Invoice
	void     map[string]int
	messages map[string][]mail.Message
	result   Result
}

func newAuditor(known []Option) *auditor {
	a := &auditor{
		due:      func(shop.Order) bool { return true },
		mayLack:  map[string]bool{},
		tampered: map[string]bool{},
		live:     map[string][]books.Invoice{},
		void:     map[string]int{},
		messages: map[string][]mail.Message{},
	}
	for _, option := range known {
		option(a)
	}
	return a
}

// booksf records a finding in the books, or in a mark that leads there. The
// finding is expected where people changed the books; see Tampered.
func (a *auditor) booksf(kind Kind, order, format string, args ...any) {
	if a.tampered[order] {
		a.result.Expected = append(a.result.Expected, Finding{Order: order, Kind: kind, What: fmt.Sprintf(format, args...)})
		return
	}
	a.findf(kind, order, format, args...)
}

func (a *auditor) findf(kind Kind, order, format string, args ...any) {
	switch kind {
	case Duplicate:
		a.result.Duplicates++
	case Missing:
		a.result.Missing++
	case Orphan:
		a.result.Orphans++
	case Mismatch:
		a.result.Mismatches++
	}
	a.result.Findings = append(a.result.Findings, Finding{Order: order, Kind: kind, What: fmt.Sprintf(format, args...)})
}

// sort puts everything under the order it says it is about.
func (a *auditor) sort(invoices []books.Invoice, messages []mail.Message) {
	a.result.Findings = []Finding{} // an empty list in JSON, not null
	a.result.Receipts = len(messages)
	for _, m := range messages {
		a.messages[m.Order] = append(a.messages[m.Order], m)
	}
	owner := map[string]string{}
	for _, inv := range invoices {
		if first, taken := owner[inv.ID]; taken {
			a.findf(Duplicate, inv.Reference, "the number %s is on another invoice too, for %s", inv.ID, first)
		} else {
			owner[inv.ID] = inv.Reference
		}
		if inv.State == books.Live {
			a.result.Invoices++
			a.live[inv.Reference] = append(a.live[inv.Reference], inv)
		} else {
			a.void[inv.Reference]++
		}
	}
}

// paid checks an order that is to be invoiced. One that is not due yet may
// lack things, but have nothing too much or wrong.
func (a *auditor) paid(o shop.Order) {
	live, marked, due := a.live[o.Ref()], false, a.due(o)
	for i, inv := range live {
		marked = marked || inv.ID == o.InvoiceID
		if i > 0 {
			a.booksf(Duplicate, o.Ref(), "%s is one live invoice too many, after %s", inv.ID, live[0].ID)
		}
		if inv.TotalCents != o.TotalCents {
			a.booksf(Mismatch, o.Ref(), "%s is over %s, the order over %s", inv.ID, money(inv.TotalCents), money(o.TotalCents))
		}
	}
	switch {
	case o.InvoiceID != "" && !marked:
		a.booksf(Mismatch, o.Ref(), "the shop's mark names %s, which is no live invoice of this order", o.InvoiceID)
	case o.InvoiceID == "" && due:
		a.booksf(Missing, o.Ref(), "the order is not marked in the shop")
	}
	if len(live) == 0 && due {
		a.booksf(Missing, o.Ref(), "there is no live invoice")
	}
	a.receipts(o, due)
}

func (a *auditor) receipts(o shop.Order, due bool) {
	a.sent(o)
	switch {
	case len(a.messages[o.Ref()]) > 0 || !due || mail.Bounces(o.Customer.Email):
	case a.mayLack[o.Ref()]:
		a.result.ReceiptsUnconfirmed++
	default:
		a.findf(Missing, o.Ref(), "no receipt was sent")
	}
}

// sent checks the receipts of an order that may have one.
func (a *auditor) sent(o shop.Order) {
	for i, m := range a.messages[o.Ref()] {
		if i > 0 {
			a.findf(Duplicate, o.Ref(), "the receipt went out again: %s", m.File)
		}
		if m.To != o.Customer.Email {
			a.findf(Mismatch, o.Ref(), "a receipt went to %s instead of %s: %s", m.To, o.Customer.Email, m.File)
		}
	}
}

// cancelled checks an order that must have left nothing behind but, when it was
// cancelled late, the receipt that was out by then.
func (a *auditor) cancelled(o shop.Order) {
	a.undone(o, "cancelled", o.LateCancel)
	if o.InvoiceID != "" {
		a.booksf(Mismatch, o.Ref(), "the order was cancelled, but is marked with %s", o.InvoiceID)
	}
}

// deleted checks an order that is not in the shop any more. A mark that is left
// on it is no finding: the shop refuses every request about the order, so the
// program cannot take the mark off.
func (a *auditor) deleted(o shop.Order) {
	a.undone(o, "deleted", o.LateCancel || o.InvoiceID != "")
}

// undone checks that no invoice of an order stands, and that it has a receipt
// only if that may have been out by the time.
func (a *auditor) undone(o shop.Order, how string, receipt bool) {
	live := a.live[o.Ref()]
	for _, inv := range live {
		a.booksf(Orphan, o.Ref(), "the order was %s, but %s is live", how, inv.ID)
	}
	if len(live) == 0 && a.void[o.Ref()] > 0 {
		a.result.Compensated++
	}
	if receipt {
		a.sent(o)
		return
	}
	for _, m := range a.messages[o.Ref()] {
		a.findf(Orphan, o.Ref(), "the order was %s, but a receipt was sent: %s", how, m.File)
	}
}

// leftOver reports what no paid or cancelled order accounts for.
func (a *auditor) leftOver() {
	for ref, live := range a.live {
		for _, inv := range live {
			a.booksf(Orphan, ref, "%s is live, but no paid order has this reference", inv.ID)
		}
	}
	for ref, messages := range a.messages {
		for _, m := range messages {
			a.findf(Orphan, ref, "a receipt was sent, but no paid order has this reference: %s", m.File)
		}
	}
}

func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
