// Package shop is the source of truth of the example: a web shop with an HTTP
// API on a loopback port and a storage of its own.
//
//	GET    /orders?status=paid&synced=no&after=CURSOR&limit=N   a Page, oldest first
//	GET    /orders?changedSince=TIME&after=CURSOR&limit=N       a Page, by (updatedAt, id)
//	GET    /orders?createdFrom=TIME&createdTo=TIME&...          a Page, oldest first, with the total
//	GET    /orders/{id}                                         an Order
//	DELETE /orders/{id}                                         204; repeating it is a 404
//	PUT    /orders/{id}/synced   Mark                           an Order; repeating it changes nothing
//	DELETE /orders/{id}/synced                                  204, also when there is no mark
//	POST   /orders/{id}/edit     Edit                           an Order; repeating it changes nothing
//	POST   /orders/{id}/cancel                                  an Order; repeating it changes nothing
//
// The parameters that choose orders can be combined. Times are as in RFC 3339. A
// page has 100 orders unless limit is set, and 500 at most. CreatedFrom is inclusive
// and createdTo is not, so that ranges can be put side by side.
//
// The shop's times are whole seconds, so several orders share an updatedAt.
// ChangedSince is inclusive and read as the second it lies in: a client that asks
// again from the newest updatedAt seen misses nothing and sees some orders twice.
// An order that changes while a client pages moves to the end of that list.
//
// A deleted order is as if it had never been: asking for it is a 404, and no
// list or total has it. Only its webhook tells.
//
// A refusal carries a JSON body {"code", "message"}; the codes are the Code
// constants. The shop knows nothing of its clients. A client has to cope with
// some of its habits: an order can be edited, cancelled or deleted while a client
// is working on it and after a client marked it, and the mark moves the order's
// version and updatedAt as any other change does.
//
// Every change leaves a [Webhook] in the shop's outbox, in the transaction of
// the change. Sending it is not the shop's business.
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
	// CodeOrderCancelled (422): a cancelled order cannot be marked or edited.
	CodeOrderCancelled = "order_cancelled"
	// CodeOrderNotPaid (422): an order that is not paid cannot be marked.
	CodeOrderNotPaid = "order_not_paid"
	// CodeOrderSynced (409): an order marked with an invoice cannot be marked
	// with another one.
	CodeOrderSynced = "order_synced"
	// CodeEmptyOrder (422): an order has at least one line.
	CodeEmptyOrder = "empty_order"
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
	CreatedAt  time.Time `json:"createdAt"`
	PaidAt     time.Time `json:"paidAt"`

	// Version grows by one and UpdatedAt moves with every change, the mark
	// below included.
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updatedAt"`
	// InvoiceID is the mark: the invoice that a client made for this order. An
	// edit or a cancel leaves it where it is.
	InvoiceID string `json:"invoiceId,omitempty"`
	// LateCancel says that the order carried a mark when it was cancelled. It
	// stays when the mark is taken off.
	LateCancel bool `json:"lateCancel,omitempty"`
	// Deleted says that the order is not in the shop any more. Only the webhook
	// of the deletion shows it.
	Deleted bool `json:"deleted,omitempty"`
}

// RefPrefix is how the names of orders outside the shop begin.
const RefPrefix = "shop:order:"

// Ref is the order's name outside the shop, like shop:order:10492.
func (o Order) Ref() string { return RefPrefix + o.ID }

// Total is what lines add up to.
func Total(lines []Line) int64 {
	var cents int64
	for _, l := range lines {
		cents += l.Quantity * l.UnitCents
	}
	return cents
}

// Page is one page of orders. Next is the cursor after its last order; an
// empty page repeats the cursor it was asked with, so that a caller can ask
// again later for what is new. Total is told of a created range only: how many
// orders it has, on all of its pages.
type Page struct {
	Orders []Order `json:"orders"`
	Next   string  `json:"next"`
	Total  *int    `json:"total,omitempty"`
}

// Mark is the body of PUT /orders/{id}/synced.
type Mark struct {
	InvoiceID string `json:"invoiceId"`
}

// Edit is the body of POST /orders/{id}/edit: what is ordered from now on.
type Edit struct {
	Lines []Line `json:"lines"`
}
