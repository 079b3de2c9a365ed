// Package audit compares what the shop sold with what the books and the
// mailbox hold. It reads those three and nothing else: no ledger, no log, no
// word of the program that moved the orders. So it can be asked about any
// program.
//
// What it expects:
//
//   - a paid order has exactly one live invoice, over the order's total as it
//     is now, the mark in the shop names that invoice, and exactly one receipt
//     went to the customer's address (none when that address bounces); an edit
//     changes the invoice and is no reason for another receipt;
//   - a cancelled order has no live invoice, no mark and no receipt; one that
//     was marked before it was cancelled may have its one receipt, because a
//     sent mail cannot be taken back;
//   - a deleted order has no live invoice, and if it was marked it may have its
//     one receipt;
//   - no live invoice and no message is about anything else;
//   - no two invoices carry the same number.
//
// An [Option] adds knowledge that these three do not hold: the orders for which
// it is unknown whether a receipt was sent, and the references under which people
// changed the books. Two receipts for one order are a finding with any option.
package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/internal/shopsim/world"
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

	// ReceiptsUnconfirmed counts the orders without a receipt for which it is
	// unknown to the program whether one was sent; see MayLackReceipt.
	ReceiptsUnconfirmed int `json:"receiptsUnconfirmed"`
	// Expected are findings in books that people laid hands on; see Tampered.
	// They are no fault of the program, and nothing counts them.
	Expected []Finding `json:"expected,omitempty"`
}

// Clean reports whether nothing was found.
func (r Result) Clean() bool { return len(r.Findings) == 0 }

// Orders is the shop as an audit reads it.
type Orders interface {
	Orders(ctx context.Context) ([]shop.Order, error)
}

// Invoices is the books as an audit reads them.
type Invoices interface {
	Invoices(ctx context.Context) ([]books.Invoice, error)
}

// Messages is the mailbox as an audit reads it.
type Messages interface {
	Messages() []mail.Message
}

// World compares the shop, the books and the mailbox of a world, expecting every order to be done.
func World(ctx context.Context, w *world.World, known ...Option) (Result, error) {
	return Run(ctx, w.Shop(), w.Books(), w.Mailbox(), known...)
}

// Run reads all three and compares them as Check does.
func Run(ctx context.Context, s Orders, b Invoices, m Messages, known ...Option) (Result, error) {
	orders, err := s.Orders(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("audit: %w", err)
	}
	invoices, err := b.Invoices(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("audit: %w", err)
	}
	return Check(orders, invoices, m.Messages(), known...), nil
}

// Check compares. It expects every order to be done.
func Check(orders []shop.Order, invoices []books.Invoice, messages []mail.Message, known ...Option) Result {
	a := newAuditor(known)
	a.sort(invoices, messages)
	for _, o := range orders {
		if o.Status == shop.Pending {
			continue // whatever is there for it is left over, and an orphan
		}
		a.result.Orders++
		switch {
		case o.Deleted:
			a.deleted(o)
		case o.Status == shop.Cancelled:
			a.cancelled(o)
		default:
			a.paid(o)
		}
		delete(a.live, o.Ref())
		delete(a.messages, o.Ref())
	}
	a.leftOver()
	for _, findings := range [][]Finding{a.result.Findings, a.result.Expected} {
		slices.SortStableFunc(findings, func(x, y Finding) int {
			return cmp.Or(cmp.Compare(x.Order, y.Order), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.What, y.What))
		})
	}
	return a.result
}
