// Package audit compares what the shop sold with what the books and the mailbox hold. It reads those
// three and nothing else: no ledger, no log, no word of the program that moved the orders. So it can
// be asked about any program.
//
// What it expects:
//
//   - a paid order has exactly one live invoice, over the order's total as it is now, the mark in the
//     shop names that invoice, and exactly one receipt went to the customer's address; an edit changes
//     the invoice and is no reason for another receipt;
//   - a cancelled order has no live invoice, no mark and no receipt; one that was marked before it was
//     cancelled may have its one receipt, because a sent mail cannot be taken back;
//   - a deleted order has no live invoice, and if it was marked it may have its one receipt;
//   - no live invoice and no message is about anything else;
//   - no two invoices carry the same number.
package audit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/outside"
)

// Kind classifies a finding.
type Kind string

// The kinds of findings. Each adds one to the result's field of that name.
const (
	Duplicate Kind = "duplicate" // one invoice, receipt or number too many
	Missing   Kind = "missing"   // no invoice, no receipt, or no mark
	Orphan    Kind = "orphan"    // an invoice or message for a cancelled or unknown order
	Mismatch  Kind = "mismatch"  // there, but wrong: amount, address, mark
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Order string `json:"order"` // the reference, like shop:order:10492
	Kind  Kind   `json:"kind"`
	What  string `json:"what"`
}

// String says the finding in one line.
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Kind, f.Order, f.What) }

// Result is what an audit found.
type Result struct {
	Orders      int `json:"orders"`      // paid or cancelled, deleted ones too
	Invoices    int `json:"invoices"`    // live
	Receipts    int `json:"receipts"`    // messages in the mailbox
	Compensated int `json:"compensated"` // cancelled or deleted orders whose invoice was made and voided
	Duplicates  int `json:"duplicates"`
	Missing     int `json:"missing"`
	Orphans     int `json:"orphans"`
	Mismatches  int `json:"mismatches"`
	// Findings explains the last four, one by one, sorted by order.
	Findings []Finding `json:"findings"`

	// ReceiptsUnconfirmed counts the orders of Known.MayLackReceipt without a receipt.
	ReceiptsUnconfirmed int `json:"receiptsUnconfirmed"`
	// Expected are findings about Known.Tampered. They are no fault of the program, and nothing
	// counts them.
	Expected []Finding `json:"expected,omitempty"`
}

// Clean reports whether nothing was found.
func (r Result) Clean() bool { return len(r.Findings) == 0 }

// Known is what shop, books and mailbox do not say, by the references of orders. Two receipts for one
// order are a finding all the same.
type Known struct {
	// MayLackReceipt are orders for which the program cannot know whether a receipt was sent: one that
	// lost its record of the sending must not send again. A receipt that is missing there is no
	// finding.
	MayLackReceipt []string
	// Tampered are the references under which people laid hands on the books. What is wrong there
	// with invoices and marks is expected.
	Tampered []string
}

// World compares the shop, the books and the mailbox of a world. It expects every order to be done.
func World(w *outside.World, known Known) Result {
	return Check(w.Shop.Orders(), w.Books.Invoices(), w.Mailbox.Messages(), known)
}

// Check compares. It expects every order to be done.
func Check(orders []outside.Order, invoices []outside.Invoice, messages []outside.Message, known Known) Result {
	a := &auditor{Known: known, live: map[string][]outside.Invoice{}, void: map[string]int{}, messages: map[string][]outside.Message{}}
	a.sort(invoices, messages)
	for _, o := range orders {
		if o.Status == outside.Pending {
			continue // whatever is there for it is left over, and an orphan
		}
		a.Orders++
		switch {
		case o.Deleted: // a mark that is left is no finding: the shop refuses to take it off
			a.undone(o, "deleted", o.LateCancel || o.InvoiceID != "")
		case o.Status == outside.Cancelled:
			a.undone(o, "cancelled", o.LateCancel)
			if o.InvoiceID != "" {
				a.books(Mismatch, o.Ref(), "the order was cancelled, but is marked with %s", o.InvoiceID)
			}
		default:
			a.paid(o)
		}
		delete(a.live, o.Ref())
		delete(a.messages, o.Ref())
	}
	a.leftOver()
	for _, findings := range [][]Finding{a.Findings, a.Expected} {
		slices.SortStableFunc(findings, func(x, y Finding) int {
			return cmp.Or(cmp.Compare(x.Order, y.Order), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.What, y.What))
		})
	}
	return a.Result
}

// auditor is one audit under way. The maps are by the order's reference.
type auditor struct {
	Result
	Known

	live     map[string][]outside.Invoice
	void     map[string]int
	messages map[string][]outside.Message
}

// books records a finding in the books, or in a mark that leads there.
func (a *auditor) books(kind Kind, order, format string, args ...any) {
	if slices.Contains(a.Tampered, order) {
		a.Expected = append(a.Expected, Finding{order, kind, fmt.Sprintf(format, args...)})
		return
	}
	a.find(kind, order, format, args...)
}

func (a *auditor) find(kind Kind, order, format string, args ...any) {
	*map[Kind]*int{Duplicate: &a.Duplicates, Missing: &a.Result.Missing, Orphan: &a.Orphans, Mismatch: &a.Mismatches}[kind]++
	a.Findings = append(a.Findings, Finding{order, kind, fmt.Sprintf(format, args...)})
}

// sort puts everything under the order it says it is about.
func (a *auditor) sort(invoices []outside.Invoice, messages []outside.Message) {
	a.Findings = []Finding{} // an empty list in JSON, not null
	a.Receipts = len(messages)
	for _, m := range messages {
		a.messages[m.Order] = append(a.messages[m.Order], m)
	}
	owner := map[string]string{}
	for _, inv := range invoices {
		if first, taken := owner[inv.ID]; taken {
			a.find(Duplicate, inv.Reference, "the number %s is on another invoice too, for %s", inv.ID, first)
		} else {
			owner[inv.ID] = inv.Reference
		}
		if inv.State == outside.Live {
			a.Invoices++
			a.live[inv.Reference] = append(a.live[inv.Reference], inv)
		} else {
			a.void[inv.Reference]++
		}
	}
}

// paid checks an order that is to be invoiced.
func (a *auditor) paid(o outside.Order) {
	live, marked := a.live[o.Ref()], false
	for i, inv := range live {
		marked = marked || inv.ID == o.InvoiceID
		if i > 0 {
			a.books(Duplicate, o.Ref(), "%s is one live invoice too many, after %s", inv.ID, live[0].ID)
		}
		if inv.TotalCents != o.TotalCents {
			a.books(Mismatch, o.Ref(), "%s is over %s, the order over %s", inv.ID, outside.Money(inv.TotalCents), outside.Money(o.TotalCents))
		}
	}
	switch {
	case o.InvoiceID != "" && !marked:
		a.books(Mismatch, o.Ref(), "the shop's mark names %s, which is no live invoice of this order", o.InvoiceID)
	case o.InvoiceID == "":
		a.books(Missing, o.Ref(), "the order is not marked in the shop")
	}
	if len(live) == 0 {
		a.books(Missing, o.Ref(), "there is no live invoice")
	}
	a.sent(o)
	switch {
	case len(a.messages[o.Ref()]) > 0:
	case slices.Contains(a.MayLackReceipt, o.Ref()):
		a.ReceiptsUnconfirmed++
	default:
		a.find(Missing, o.Ref(), "no receipt was sent")
	}
}

// sent checks the receipts of an order that may have one.
func (a *auditor) sent(o outside.Order) {
	for i, m := range a.messages[o.Ref()] {
		if i > 0 {
			a.find(Duplicate, o.Ref(), "the receipt went out again: message %d", m.Number)
		}
		if m.To != o.Customer.Email {
			a.find(Mismatch, o.Ref(), "a receipt went to %s instead of %s: message %d", m.To, o.Customer.Email, m.Number)
		}
	}
}

// undone checks that no invoice of an order stands, and that it has a receipt only if that may have
// been out by the time.
func (a *auditor) undone(o outside.Order, how string, receipt bool) {
	live := a.live[o.Ref()]
	for _, inv := range live {
		a.books(Orphan, o.Ref(), "the order was %s, but %s is live", how, inv.ID)
	}
	if len(live) == 0 && a.void[o.Ref()] > 0 {
		a.Compensated++
	}
	if receipt {
		a.sent(o)
		return
	}
	for _, m := range a.messages[o.Ref()] {
		a.find(Orphan, o.Ref(), "the order was %s, but a receipt was sent: message %d", how, m.Number)
	}
}

// leftOver reports what no paid or cancelled order accounts for.
func (a *auditor) leftOver() {
	for ref, live := range a.live {
		for _, inv := range live {
			a.books(Orphan, ref, "%s is live, but no paid order has this reference", inv.ID)
		}
	}
	for ref, messages := range a.messages {
		for _, m := range messages {
			a.find(Orphan, ref, "a receipt was sent, but no paid order has this reference: message %d", m.Number)
		}
	}
}
