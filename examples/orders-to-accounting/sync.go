package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

const sagaName = "order-to-invoice"

// Sync is the job: paid orders become invoices. Its saga is what to read first.
type Sync struct {
	shop  *sagahttp.Client
	books *sagahttp.Client
	mail  *sagahttp.Client

	timeout time.Duration // of one attempt
	settle  time.Duration // after which an unanswered request has happened, visibly, or never will

	approveAbove int64 // cents from which on an order waits for approval; 0: none does
}

// Saga says what is done for an order, how each step is safe to repeat, and how it is undone.
func (s *Sync) Saga() (*saga.Definition[outside.Order], error) {
	common := saga.Defaults{
		Timeout: s.timeout, Settle: s.settle, Retry: saga.Retry{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Attempts: 20},
	}
	steps := []saga.Step[outside.Order]{
		saga.Identity(whatWasSold),
		saga.Do("customer", s.ensureCustomer).With(common).To("books").Idempotent().NoUndo("customers outlive their orders"),
		saga.Do("invoice", s.createInvoice).With(common).To("books").Find(s.findInvoice).Update(s.updateInvoice).Undo(s.voidInvoice),
		saga.Do("mark-synced", s.markSynced).With(common).To("shop").Idempotent().NoID().UndoMaybe(s.clearSynced).Pivot(),
		saga.Do("receipt", s.sendReceipt).With(common).To("mail").AtMostOnce().NoUndo("the shop tells the customer that the order is cancelled"),
	}
	if s.approveAbove > 0 { // with -approve
		large := func(c saga.Call[outside.Order]) bool { return c.Input.TotalCents > s.approveAbove }
		steps = slices.Insert(steps, 2, saga.Step[outside.Order](saga.Approve[outside.Order]("approved").By("finance").NotStarter().When(large).Within(time.Hour)))
	}
	return saga.Define(sagaName, 1, steps...)
}

// whatWasSold is what makes two starts of an order the same. Our own mark moves the order's version
// and updatedAt; that is no news.
func whatWasSold(o outside.Order) any {
	return struct {
		Customer outside.Buyer
		Lines    []outside.Line
		Total    int64
	}{o.Customer, o.Lines, o.TotalCents}
}

func (s *Sync) ensureCustomer(ctx context.Context, c saga.Call[outside.Order]) (outside.Customer, error) {
	var made outside.Customer
	_, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("customers", c.Input.Customer.Ref()), Key: c.Key,
		Body: outside.Contact{Name: c.Input.Customer.Name, Email: c.Input.Customer.Email}, Into: &made,
	})
	return made, err
}

// createInvoice makes the order's invoice.
func (s *Sync) createInvoice(ctx context.Context, c saga.Call[outside.Order]) (outside.Invoice, error) {
	var made outside.Invoice
	_, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: sagahttp.Path("invoices"), Key: c.Key, Into: &made,
		Body: outside.Draft{Customer: c.ExternalID("customer"), Reference: c.Work, Content: content(c)},
	})
	return made, err
}

// updateInvoice brings the invoice up to date that an earlier version of the order has. One that people have voided or deleted is made again.
func (s *Sync) updateInvoice(ctx context.Context, c saga.Call[outside.Order], id string) (outside.Invoice, error) {
	var made outside.Invoice
	answer, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("invoices", id), Updates: true, Key: c.Key, Into: &made,
		Body: content(c),
	})
	if answer != nil && answer.Status == http.StatusConflict && bytes.Contains(answer.Body, []byte(outside.CodeInvoiceVoid)) {
		return made, saga.PreviousGone(err)
	}
	return made, err
}

// content is what an order's invoice says. The memo tells which version of the order it shows.
func content(c saga.Call[outside.Order]) outside.Content {
	return outside.Content{Memo: memo(c.Revision, c.Input), Lines: c.Input.Lines}
}

// findInvoice asks the books for live invoices under our reference. A voided one keeps its
// reference and does not count, and neither does one that does not show this version of the order
// yet.
func (s *Sync) findInvoice(ctx context.Context, c saga.Call[outside.Order]) (saga.Finding[outside.Invoice], error) {
	var list outside.List
	_, err := s.books.Do(ctx, sagahttp.Request{
		Method: http.MethodGet, Path: sagahttp.Path("invoices"), Query: map[string][]string{"reference": {c.Work}}, Into: &list,
	})
	if err != nil {
		return saga.CannotTell[outside.Invoice](), err
	}
	var live []outside.Invoice
	for _, inv := range list.Invoices {
		if inv.State == outside.Live && (inv.Memo == memo(c.Revision, c.Input) || inv.ID != c.PreviousID()) {
			live = append(live, inv)
		}
	}
	return saga.Found(live...), nil
}

// voidInvoice undoes createInvoice. Where the answer was lost, or a person named the id only, the
// coordinator has looked before: an invoice that is not there needs no undo, and one that is there
// is known.
func (s *Sync) voidInvoice(ctx context.Context, c saga.Call[outside.Order], inv outside.Invoice) error {
	_, err := s.books.Do(ctx, sagahttp.Request{Method: http.MethodPost, Path: sagahttp.Path("invoices", inv.ID, "void"), Key: c.Key})
	return err
}

// markSynced fails for good when the order was cancelled meanwhile: the shop answers 422, which
// package sagahttp reads as a refusal, and the invoice is voided. A mark of an invoice in whose place this one was made is taken off first.
func (s *Sync) markSynced(ctx context.Context, c saga.Call[outside.Order]) (outside.Order, error) {
	marked, answer, err := s.mark(ctx, c)
	if answer != nil && answer.Status == http.StatusConflict {
		if err = s.clearSynced(ctx, c, nil); err == nil {
			marked, _, err = s.mark(ctx, c)
		}
	}
	return marked, err
}

func (s *Sync) mark(ctx context.Context, c saga.Call[outside.Order]) (marked outside.Order, answer *sagahttp.Response, err error) {
	answer, err = s.shop.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("orders", c.Input.ID, "synced"), Key: c.Key,
		Body: outside.Mark{InvoiceID: c.ExternalID("invoice")}, Into: &marked,
	})
	return marked, answer, err
}

// clearSynced takes the mark off, known or not. An order that was deleted has none.
func (s *Sync) clearSynced(ctx context.Context, c saga.Call[outside.Order], _ *outside.Order) error {
	answer, err := s.shop.Do(ctx, sagahttp.Request{Method: http.MethodDelete, Path: sagahttp.Path("orders", c.Input.ID, "synced"), Key: c.Key})
	if answer != nil && answer.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// sendReceipt sends the confirmation. A mail server knows no idempotency key and offers no lookup, so the
// outcome of this step stays unknown when the answer is lost.
func (s *Sync) sendReceipt(ctx context.Context, c saga.Call[outside.Order]) (outside.Message, error) {
	var sent outside.Message
	_, err := s.mail.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: sagahttp.Path("mails"), Key: c.Key, Into: &sent,
		Body: outside.Letter{
			ID: c.Key + "@orders.example", From: "shop@orders.example", To: c.Input.Customer.Email, Order: c.Work,
			Subject: "Your order " + c.Input.ID, Text: fmt.Sprintf("Thank you, %s. Your invoice is %s.", c.Input.Customer.Name, c.ExternalID("invoice")),
		},
	})
	return sent, err
}
