package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// MarkSynced notes on a paid order which invoice was made for it.
func (s *Store) MarkSynced(ctx context.Context, id, invoice string) (Order, error) {
	return s.change(ctx, id, func(o *Order) (Topic, error) {
		switch {
		case o.Status == Cancelled:
			return "", rest.Refuse(http.StatusUnprocessableEntity, CodeOrderCancelled, "order %s was cancelled", id)
		case o.Status != Paid:
			return "", rest.Refuse(http.StatusUnprocessableEntity, CodeOrderNotPaid, "order %s is not paid", id)
		case o.InvoiceID == invoice:
			return "", nil
		case o.InvoiceID != "":
			return "", rest.Refuse(http.StatusConflict, CodeOrderSynced, "order %s is marked with invoice %s", id, o.InvoiceID)
		}
		o.InvoiceID = invoice
		return TopicMarked, nil
	})
}

// ClearSynced takes the mark off an order.
func (s *Store) ClearSynced(ctx context.Context, id string) (Order, error) {
	return s.change(ctx, id, func(o *Order) (Topic, error) {
		if o.InvoiceID == "" {
			return "", nil
		}
		o.InvoiceID = ""
		return TopicUnmarked, nil
	})
}

// Edit changes the lines of an order, and with them the total. An invoice that
// was made for the order before is out of date then.
func (s *Store) Edit(ctx context.Context, id string, lines []Line) (Order, error) {
	return s.change(ctx, id, func(o *Order) (Topic, error) {
		switch {
		case o.Status == Cancelled:
			return "", rest.Refuse(http.StatusUnprocessableEntity, CodeOrderCancelled, "order %s was cancelled", id)
		case len(lines) == 0:
			return "", rest.Refuse(http.StatusUnprocessableEntity, CodeEmptyOrder, "an order needs at least one line; cancel it instead")
		case slices.Equal(o.Lines, lines):
			return "", nil
		}
		o.Lines, o.TotalCents = lines, Total(lines)
		return TopicEdited, nil
	})
}

// Cancel cancels an order, also a marked one. The mark stays: the client that set
// it has to take it off.
func (s *Store) Cancel(ctx context.Context, id string) (Order, error) {
	return s.change(ctx, id, func(o *Order) (Topic, error) {
		if o.Status == Cancelled {
			return "", nil
		}
		o.Status, o.LateCancel = Cancelled, o.InvoiceID != ""
		return TopicCancelled, nil
	})
}

// Delete takes an order out of the shop: from now on every read or change of it
// is refused with CodeUnknownOrder. Documents made for it elsewhere stay.
func (s *Store) Delete(ctx context.Context, id string) error {
	_, err := s.change(ctx, id, func(o *Order) (Topic, error) {
		o.Deleted = true
		return TopicDeleted, nil
	})
	return err
}

// change reads an order, lets edit change it, and stores it as its next
// version, with its webhook, when edit names what happened.
func (s *Store) change(ctx context.Context, id string, edit func(*Order) (Topic, error)) (Order, error) {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return Order{}, fmt.Errorf("shop: change order %s: %w", id, err)
	}
	defer func() { _ = tx.Rollback() }()
	o, err := find(ctx, tx, id)
	if err != nil {
		return Order{}, err
	}
	topic, err := edit(&o)
	if err != nil || topic == "" {
		return o, err
	}
	o.Version++
	o.UpdatedAt = s.Now().UTC().Truncate(time.Second)
	body, err := json.Marshal(o)
	if err != nil {
		return Order{}, fmt.Errorf("shop: change order %s: %w", id, err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE orders SET status = ?, version = ?, updated_at = ?, deleted = ?, invoice_id = ?, body = ? WHERE id = ?`,
		o.Status, o.Version, o.UpdatedAt.Unix(), o.Deleted, o.InvoiceID, string(body), id)
	if err != nil {
		return Order{}, fmt.Errorf("shop: change order %s: %w", id, err)
	}
	w, err := post(ctx, tx, topic, o)
	if err != nil {
		return Order{}, err
	}
	if err := tx.Commit(); err != nil {
		return Order{}, fmt.Errorf("shop: change order %s: %w", id, err)
	}
	s.tell(w)
	return o, nil
}
