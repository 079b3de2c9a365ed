// Package shop is the source of truth of the example: a web shop with an HTTP
// API on a loopback port and a storage of its own.
//
//	GET    /orders?status=paid&synced=no&after=CURSOR&limit=N   a Page, oldest first
//	GET    /orders/{id}                                         an Order
//	PUT    /orders/{id}/synced   Mark                           an Order; repeating it changes nothing
//	DELETE /orders/{id}/synced                                  204, also when there is no mark
//	POST   /orders/{id}/cancel                                  an Order; repeating it changes nothing
//
// A refusal carries a JSON body {"code", "message"}; the codes are the Code
// constants. The shop knows nothing of whoever reads it. Two of its habits are
// there to be met: an order can be cancelled while someone is working on it,
// and the mark that somebody sets moves the order's version and updatedAt as
// any other change does.
package shop

import "time"

// Status says where an order stands.
type Status string

// The states of an order.
const (
	Pending   Status = "pending"
	Paid      Status = "paid"
	Cancelled Status = "cancelled"
)

// Codes by which the shop refuses.
const (
	// CodeUnknownOrder (404): there is no such order.
	CodeUnknownOrder = "unknown_order"
	// CodeOrderCancelled (422): a cancelled order cannot be marked.
	CodeOrderCancelled = "order_cancelled"
	// CodeOrderNotPaid (422): an order that nobody paid cannot be marked.
	CodeOrderNotPaid = "order_not_paid"
	// CodeOrderSynced (409): an order marked with an invoice cannot be
	// cancelled, nor marked with another invoice.
	CodeOrderSynced = "order_synced"
)

// Customer is who ordered.
type Customer struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Ref is the customer's name outside the shop, like shop:customer:0007.
func (c Customer) Ref() string { return "shop:customer:" + c.ID }

// Line is one position of an order.
type Line struct {
	SKU         string `json:"sku"`
	Description string `json:"description"`
	Quantity    int64  `json:"quantity"`
	UnitCents   int64  `json:"unitCents"`
}

// Order is one order as the shop shows it.
type Order struct {
	ID         string    `json:"id"`
	Status     Status    `json:"status"`
	Customer   Customer  `json:"customer"`
	Lines      []Line    `json:"lines"`
	TotalCents int64     `json:"totalCents"`
	Currency   string    `json:"currency"`
	PaidAt     time.Time `json:"paidAt"`

	// Version grows by one and UpdatedAt moves with every change, the mark
	// below included.
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updatedAt"`
	// InvoiceID is the mark: the invoice somebody made for this order.
	InvoiceID string `json:"invoiceId,omitempty"`
}

// Ref is the order's name outside the shop, like shop:order:10492.
func (o Order) Ref() string { return "shop:order:" + o.ID }

// Page is one page of orders. Next is the cursor after its last order; an
// empty page repeats the cursor it was asked with, so that a caller can ask
// again later for what is new.
type Page struct {
	Orders []Order `json:"orders"`
	Next   string  `json:"next"`
}

// Mark is the body of PUT /orders/{id}/synced.
type Mark struct {
	InvoiceID string `json:"invoiceId"`
}
