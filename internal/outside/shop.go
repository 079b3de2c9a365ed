package outside

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

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
	CodeUnknownOrder   = "unknown_order"   // 404
	CodeOrderCancelled = "order_cancelled" // 422: it cannot be marked or edited
	CodeOrderNotPaid   = "order_not_paid"  // 422: it cannot be marked
	CodeOrderSynced    = "order_synced"    // 409: it is marked with another invoice
)

// Buyer is who ordered.
type Buyer struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Ref is the customer's name outside the shop, like shop:customer:0007.
func (b Buyer) Ref() string { return "shop:customer:" + b.ID }

// Line is one position of an order, or of an invoice.
type Line struct {
	SKU         string `json:"sku,omitempty"` // of an order
	Description string `json:"description"`
	Quantity    int64  `json:"quantity"`
	UnitCents   int64  `json:"unitCents"`
}

// Total is what lines add up to, in cents.
func Total(lines []Line) (cents int64) {
	for _, l := range lines {
		cents += l.Quantity * l.UnitCents
	}
	return cents
}

// Order is one order as the shop shows it.
type Order struct {
	ID         string    `json:"id"`
	Status     Status    `json:"status"`
	Customer   Buyer     `json:"customer"`
	Lines      []Line    `json:"lines"`
	TotalCents int64     `json:"totalCents"`
	Currency   string    `json:"currency"`
	CreatedAt  time.Time `json:"createdAt"`
	PaidAt     time.Time `json:"paidAt"`

	// Version grows by one and UpdatedAt moves with every change, the mark below included.
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updatedAt"`
	// InvoiceID is the mark: the invoice that a client made for this order. An edit or a cancel
	// leaves it where it is.
	InvoiceID string `json:"invoiceId,omitempty"`
	// LateCancel says that the order carried a mark when it was cancelled. It stays when the mark is
	// taken off.
	LateCancel bool `json:"lateCancel,omitempty"`
	// Deleted says that the order is not in the shop any more. Only the webhook of the deletion
	// shows it.
	Deleted bool `json:"deleted,omitempty"`
}

// RefPrefix is how the names of orders outside the shop begin.
const RefPrefix = "shop:order:"

// Ref is the order's name outside the shop, like shop:order:10492.
func (o Order) Ref() string { return RefPrefix + o.ID }

// Total is what the order costs, like 20.00.
func (o Order) Total() string { return Money(o.TotalCents) }

// Money is an amount of cents, like 20.00.
func Money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// Mark is the body of PUT /orders/{id}/synced.
type Mark struct {
	InvoiceID string `json:"invoiceId"`
}

// Topic says what happened to an order.
type Topic string

// The topics of the shop's webhooks. A new order is created or, if it is there with its money, paid.
const (
	TopicCreated   Topic = "order.created"
	TopicPaid      Topic = "order.paid"
	TopicEdited    Topic = "order.updated"
	TopicCancelled Topic = "order.cancelled"
	TopicMarked    Topic = "order.marked"
	TopicUnmarked  Topic = "order.unmarked"
	TopicDeleted   Topic = "order.deleted"
)

// Webhook is one change of one order, to be told.
type Webhook struct {
	Order   string
	Version int64 // of the order, after the change
	Topic   Topic
	Body    []byte // an Event as JSON
}

// ID names the webhook. It is the same however often it is sent.
func (w Webhook) ID() string { return fmt.Sprintf("msg_%s_%d", w.Order, w.Version) }

// Event is the body of a webhook.
type Event struct {
	Type      Topic     `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the change
	Data      Order     `json:"data"`      // the whole order, as the change left it
}

// Shop is the source of truth.
type Shop struct {
	// Changed is called after each change and before its caller gets an answer, in the order of the
	// changes. It must not call the shop.
	Changed func(w Webhook)
	// Tick is that of the shop's clock.
	Tick time.Duration

	mu     sync.Mutex
	orders []*Order // as they came in
	places map[string]int
	hooks  []Webhook
}

// NewShop returns a shop without orders.
func NewShop() *Shop { return &Shop{Tick: time.Second, places: map[string]int{}} }

// Add stores new orders in the given sequence, as version 1.
func (s *Shop) Add(orders ...Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range orders {
		topic := TopicCreated
		if o.Status == Paid {
			topic = TopicPaid
		}
		if o.UpdatedAt.IsZero() {
			o.UpdatedAt = time.Now()
		}
		if o.CreatedAt.IsZero() {
			o.CreatedAt = o.UpdatedAt
		}
		o.Version, o.UpdatedAt = 1, o.UpdatedAt.UTC().Truncate(s.Tick)
		s.places[o.ID] = len(s.orders)
		s.orders = append(s.orders, &o)
		s.tell(topic, o)
	}
}

// Put adds an order that customers place, or replaces what it is, and returns the webhook of that.
func (s *Shop) Put(o Order) Webhook {
	if _, err := s.Order(o.ID); err != nil {
		s.Add(o)
	} else {
		_, _ = s.change(o.ID, func(is *Order) (Topic, error) { // it is there
			is.Status, is.Lines, is.TotalCents = o.Status, o.Lines, o.TotalCents
			if o.Status == Cancelled {
				return TopicCancelled, nil
			}
			return TopicEdited, nil
		})
	}
	all := s.Webhooks()
	return all[len(all)-1]
}

// tell makes the webhook of a change.
func (s *Shop) tell(topic Topic, o Order) {
	body, err := json.Marshal(Event{topic, o.UpdatedAt, o})
	if err != nil {
		panic(err) // an order is texts, numbers and times of this century
	}
	w := Webhook{o.ID, o.Version, topic, body}
	s.hooks = append(s.hooks, w)
	if s.Changed != nil {
		s.Changed(w)
	}
}

// Orders returns every order as it is, oldest first, the deleted ones too.
func (s *Shop) Orders() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Order, len(s.orders))
	for i, o := range s.orders {
		all[i] = *o
	}
	return all
}

// Webhooks returns the webhook of every change so far.
func (s *Shop) Webhooks() []Webhook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hooks)
}

// Order returns one order that is not deleted.
func (s *Shop) Order(id string) (Order, error) {
	return s.change(id, func(*Order) (Topic, error) { return "", nil })
}

// Mark notes on a paid order which invoice was made for it.
func (s *Shop) Mark(id, invoice string) (Order, error) {
	return s.change(id, func(o *Order) (Topic, error) {
		switch {
		case o.Status == Cancelled:
			return "", refuse(http.StatusUnprocessableEntity, CodeOrderCancelled, "order %s was cancelled", id)
		case o.Status != Paid:
			return "", refuse(http.StatusUnprocessableEntity, CodeOrderNotPaid, "order %s is not paid", id)
		case o.InvoiceID == invoice:
			return "", nil
		case o.InvoiceID != "":
			return "", refuse(http.StatusConflict, CodeOrderSynced, "order %s is marked with invoice %s", id, o.InvoiceID)
		}
		o.InvoiceID = invoice
		return TopicMarked, nil
	})
}

// Unmark takes the mark off an order.
func (s *Shop) Unmark(id string) (Order, error) {
	return s.change(id, func(o *Order) (Topic, error) {
		if o.InvoiceID == "" {
			return "", nil
		}
		o.InvoiceID = ""
		return TopicUnmarked, nil
	})
}

// Edit changes the lines of an order, and with them the total. An invoice that was made for the order
// before is out of date then.
func (s *Shop) Edit(id string, lines []Line) (Order, error) {
	return s.change(id, func(o *Order) (Topic, error) {
		switch {
		case o.Status == Cancelled:
			return "", refuse(http.StatusUnprocessableEntity, CodeOrderCancelled, "order %s was cancelled", id)
		case slices.Equal(o.Lines, lines):
			return "", nil
		}
		o.Lines, o.TotalCents = slices.Clone(lines), Total(lines)
		return TopicEdited, nil
	})
}

// Cancel cancels an order, also a marked one. The mark stays: the client that set it has to take it
// off.
func (s *Shop) Cancel(id string) (Order, error) {
	return s.change(id, func(o *Order) (Topic, error) {
		if o.Status == Cancelled {
			return "", nil
		}
		o.Status, o.LateCancel = Cancelled, o.InvoiceID != ""
		return TopicCancelled, nil
	})
}

// Delete takes an order out of the shop: from now on every read or change of it is refused with
// CodeUnknownOrder. Documents made for it elsewhere stay.
func (s *Shop) Delete(id string) error {
	_, err := s.change(id, func(o *Order) (Topic, error) {
		o.Deleted = true
		return TopicDeleted, nil
	})
	return err
}

// change lets edit change an order, and stores it as its next version, with its webhook, when edit
// names what happened.
func (s *Shop) change(id string, edit func(*Order) (Topic, error)) (Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, there := s.places[id]
	if !there || s.orders[at].Deleted {
		return Order{}, refuse(http.StatusNotFound, CodeUnknownOrder, "there is no order %s", id)
	}
	o := *s.orders[at]
	topic, err := edit(&o)
	if err != nil || topic == "" {
		return *s.orders[at], err
	}
	o.Version++
	o.UpdatedAt = time.Now().UTC().Truncate(s.Tick)
	*s.orders[at] = o
	s.tell(topic, o)
	return o, nil
}
