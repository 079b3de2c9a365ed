// Package books is the accounting system of the example: an HTTP server on a
// loopback port with a storage of its own, as unhelpful as real books are.
//
//	PUT  /customers/{ref}      Contact   a Customer; found by our reference or made
//	POST /invoices             Draft     201 and an Invoice
//	GET  /invoices?reference=            a List, oldest first
//	GET  /invoices?mark=&after=&limit=   a List, oldest first: whose reference begins so
//	GET  /invoices/{id}                  an Invoice
//	PUT  /invoices/{id}        Update    an Invoice; repeating it changes nothing
//	POST /invoices/{id}/void             an Invoice; repeating it changes nothing
//
// A refusal carries a JSON body {"code", "message"}; the codes are the Code
// constants.
//
// Customers have a natural identity, the reference. Invoices have none: the
// reference is a text on them, a second POST with the same one makes a second
// invoice, and an Idempotency-Key is not looked at. A voided invoice keeps its
// number and its reference, so a lookup still finds it, but it cannot be
// updated. And a list, by reference or by mark, may be behind: an invoice can
// stay out of it for a while after it was made, and show its old content for a
// while after it was updated. Asking for an invoice by its id is never behind.
//
// A list by mark has 100 invoices unless limit is set, and 200 at most.
//
// The memo is a free text that the books keep and never read. People work in the
// books, too: they write a note on an invoice, which the API only shows, change
// what the API made, post an invoice, which closes it, or delete one for good.
package books

import "time"

// State says whether an invoice counts.
type State string

// The states of an invoice.
const (
	Live State = "live"
	Void State = "void"
)

// Codes by which the books refuse.
const (
	// CodeUnknownCustomer (422): the draft names a customer that is not in the books.
	CodeUnknownCustomer = "unknown_customer"
	// CodeEmptyInvoice (422): the draft has no lines.
	CodeEmptyInvoice = "empty_invoice"
	// CodeUnknownInvoice (404): there is no such invoice.
	CodeUnknownInvoice = "unknown_invoice"
	// CodeInvoiceVoid (409): a void invoice cannot be updated or posted.
	CodeInvoiceVoid = "invoice_void"
	// CodeInvoicePosted (409): a posted invoice cannot be updated or voided.
	CodeInvoicePosted = "invoice_posted"
)

// Contact is the body of PUT /customers/{ref}.
type Contact struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Customer is a customer in the books. ID is the books' own name for it.
type Customer struct {
	ID    string `json:"id"`
	Ref   string `json:"ref"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Line is one position of an invoice.
type Line struct {
	Description string `json:"description"`
	Quantity    int64  `json:"quantity"`
	UnitCents   int64  `json:"unitCents"`
}

// Draft is the body of POST /invoices. Customer is the id in the books.
type Draft struct {
	Customer  string `json:"customer"`
	Reference string `json:"reference"`
	Memo      string `json:"memo,omitempty"`
	Lines     []Line `json:"lines"`
}

// Update is the body of PUT /invoices/{id}. Customer and reference stay as they
// are.
type Update struct {
	Memo  string `json:"memo,omitempty"`
	Lines []Line `json:"lines"`
}

// Total is what lines add up to.
func Total(lines []Line) int64 {
	var cents int64
	for _, l := range lines {
		cents += l.Quantity * l.UnitCents
	}
	return cents
}

// Invoice is an invoice in the books.
type Invoice struct {
	ID          string `json:"id"` // also its number: inv_0042
	State       State  `json:"state"`
	Posted      bool   `json:"posted,omitempty"` // it can be neither updated nor voided
	Customer    string `json:"customer"`
	CustomerRef string `json:"customerRef"`
	Reference   string `json:"reference"`
	Memo        string `json:"memo,omitempty"`
	// Lines are what is sold, and TotalCents what they add up to.
	Lines      []Line `json:"lines"`
	TotalCents int64  `json:"totalCents"`
	// Note is what people wrote on it at the screens of the books.
	Note      string    `json:"note,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// ExternalID is the name others keep to find the invoice again.
func (i Invoice) ExternalID() string { return i.ID }

// ExternalID is the name others keep to find the customer again.
func (c Customer) ExternalID() string { return c.ID }

// List is the answer to GET /invoices. A list by mark goes on behind Next; an
// empty page repeats the cursor it was asked with.
type List struct {
	Invoices []Invoice `json:"invoices"`
	Next     string    `json:"next,omitempty"`
}
