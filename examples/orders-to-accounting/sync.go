package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

const sagaName = "order-to-invoice"

// Sync is the job: paid orders become invoices. Its saga is what to read first.
type Sync struct {
	shop  *sagahttp.Client
	books *sagahttp.Client
	mail  string // host and port of the mail server

	timeout time.Duration // of one attempt
	settle  time.Duration // after which an unanswered request has happened, visibly, or never will

	approveAbove int64 // cents from which on an order waits for approval; 0: none does
}

// Saga says what is done for an order, how each step is safe to repeat, and how it is undone.
func (s *Sync) Saga() (*saga.Definition[shop.Order], error) {
	common := saga.Defaults{
		Timeout: s.timeout, Settle: s.settle, Retry: saga.Retry{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Attempts: 20},
	}
	steps := []saga.Step[shop.Order]{
		saga.Identity(whatWasSold),
		saga.Do("customer", s.ensureCustomer).With(common).To("books").Idempotent().NoUndo("customers outlive their orders"),
		saga.Do("invoice", s.createInvoice).With(common).To("books").Find(s.findInvoice).Update(s.updateInvoice).Undo(s.voidInvoice),
		saga.Do("mark-synced", s.markSynced).With(common).To("shop").Idempotent().NoID().UndoMaybe(s.clearSynced).Pivot(),
		saga.Do("receipt", s.sendReceipt).With(common).To("mail").AtMostOnce().NoUndo("the shop tells the customer that the order is cancelled"),
	}
	if s.approveAbove > 0 { // with -approve
		large := func(c saga.Call[shop.Order]) bool { return c.Input.TotalCents > s.approveAbove }
		steps = slices.Insert(steps, 2, saga.Step[shop.Order](saga.Approve[shop.Order]("approved").By("finance").NotStarter().When(large).Within(time.Hour)))
	}
	return saga.Define(sagaName, 1, steps...)
}

// whatWasSold is what makes two starts of an order the same. Our own mark moves the order's version
// and updatedAt; that is no news.
func whatWasSold(o shop.Order) any {
	return struct {
		Customer shop.Customer
		Lines    []shop.Line
		Total    int64
	}{o.Customer, o.Lines, o.TotalCents}
}

func (s *Sync) ensureCustomer(ctx context.Context, c saga.Call[shop.Order]) (books.Customer, error) {
	var made books.Customer
	_, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("customers", c.Input.Customer.Ref()), Key: c.Key,
		Body: books.Contact{Name: c.Input.Customer.Name, Email: c.Input.Customer.Email}, Into: &made,
	})
	return made, err
}

// createInvoice makes the order's invoice. The memo tells which version an invoice shows.
func (s *Sync) createInvoice(ctx context.Context, c saga.Call[shop.Order]) (books.Invoice, error) {
	var made books.Invoice
	_, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: sagahttp.Path("invoices"), Key: c.Key, Into: &made,
		Body: books.Draft{Customer: c.ExternalID("customer"), Reference: c.Work, Memo: memo(c.Revision, c.Input), Lines: invoiceLines(c.Input)},
	})
	return made, err
}

// updateInvoice brings the invoice up to date that an earlier version of the order has.
func (s *Sync) updateInvoice(ctx context.Context, c saga.Call[shop.Order], id string) (books.Invoice, error) {
	var made books.Invoice
	_, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("invoices", id), Updates: true, Key: c.Key, Into: &made,
		Body: books.Update{Memo: memo(c.Revision, c.Input), Lines: invoiceLines(c.Input)},
	})
	return made, err
}

// invoiceLines are the positions of an order's invoice.
func invoiceLines(o shop.Order) (lines []books.Line) {
	for _, l := range o.Lines {
		lines = append(lines, books.Line{Description: l.Description, Quantity: l.Quantity, UnitCents: l.UnitCents})
	}
	return lines
}

// findInvoice asks the books for live invoices under our reference. A voided one keeps its
// reference and does not count, and neither does one that does not show this version of the order
// yet.
func (s *Sync) findInvoice(ctx context.Context, c saga.Call[shop.Order]) (saga.Finding[books.Invoice], error) {
	var list books.List
	_, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodGet, Path: sagahttp.Path("invoices"), Query: map[string][]string{"reference": {c.Work}}, Into: &list,
	})
	if err != nil {
		return saga.CannotTell[books.Invoice](), err
	}
	var live []books.Invoice
	for _, inv := range list.Invoices {
		if inv.State == books.Live && (inv.Memo == memo(c.Revision, c.Input) || inv.ID != c.PreviousID()) {
			live = append(live, inv)
		}
	}
	return saga.Found(live...), nil
}

// voidInvoice undoes createInvoice. Where the answer was lost, or a person named the id only, the
// coordinator has looked before: an invoice that is not there needs no undo, and one that is there
// is known.
func (s *Sync) voidInvoice(ctx context.Context, c saga.Call[shop.Order], inv books.Invoice) error {
	_, err := s.books.Do(ctx, sagahttp.Request{Method: http.MethodPost, Path: sagahttp.Path("invoices", inv.ID, "void"), Key: c.Key})
	return err
}

// markSynced fails for good when the order was cancelled meanwhile: the shop answers 422, which
// package sagahttp reads as a refusal, and the invoice is voided.
func (s *Sync) markSynced(ctx context.Context, c saga.Call[shop.Order]) (shop.Order, error) {
	var marked shop.Order
	_, err := s.shop.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("orders", c.Input.ID, "synced"), Key: c.Key,
		Body: shop.Mark{InvoiceID: c.ExternalID("invoice")}, Into: &marked,
	})
	return marked, err
}

// clearSynced takes the mark off, known or not. An order that was deleted has none.
func (s *Sync) clearSynced(ctx context.Context, c saga.Call[shop.Order], _ *shop.Order) error {
	answer, err := s.shop.Do(ctx, sagahttp.Request{Method: http.MethodDelete, Path: sagahttp.Path("orders", c.Input.ID, "synced"), Key: c.Key})
	if answer != nil && answer.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// receipt is what is known of a sent e-mail.
type receipt struct {
	MessageID string `json:"messageId"`
}

// ExternalID is the message's id.
func (r receipt) ExternalID() string { return r.MessageID }

// sendReceipt sends the confirmation. A mail server knows no idempotency key and offers no lookup,
// so the outcome of this step stays unknown when the answer is lost.
func (s *Sync) sendReceipt(ctx context.Context, c saga.Call[shop.Order]) (receipt, error) {
	r := receipt{MessageID: c.Key + "@orders.example"}
	o := c.Input
	sending := false
	err := mail.Send(ctx, s.mail, mail.Letter{
		From: "shop@orders.example", To: o.Customer.Email, Order: c.Work, MessageID: r.MessageID, Subject: "Your order " + o.ID,
		Text: fmt.Sprintf("Thank you, %s. Your invoice is %s.", o.Customer.Name, c.ExternalID("invoice")),
	}, func() error {
		err := c.Sending()
		sending = err == nil
		return err
	})
	if err != nil && !sending {
		err = saga.NotSent(err) // the letter itself never left
	}
	return r, said(err)
}

// said puts what a mail server says into the saga's words: 4xx is "not now" and 5xx is "no", both
// said instead of taking the letter.
func said(err error) error {
	var word *smtp.SMTPError
	switch {
	case !errors.As(err, &word):
		return err
	case word.Temporary():
		return saga.NotSent(err)
	default:
		return saga.Permanent(err)
	}
}
