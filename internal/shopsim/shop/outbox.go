package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Topic says what happened to an order.
type Topic string

// The topics of the shop's webhooks.
const (
	TopicCreated   Topic = "order.created" // added, and not paid yet
	TopicPaid      Topic = "order.paid"    // added as paid
	TopicEdited    Topic = "order.edited"
	TopicCancelled Topic = "order.cancelled"
	TopicMarked    Topic = "order.marked"
	TopicUnmarked  Topic = "order.unmarked"
	TopicDeleted   Topic = "order.deleted"
)

func addedAs(s Status) Topic {
	if s == Paid {
		return TopicPaid
	}
	return TopicCreated
}

// Webhook is one change of one order, to be sent to the receivers of webhooks.
type Webhook struct {
	Seq     int64  `db:"seq"` // its place in the outbox
	Order   string `db:"order_id"`
	Version int64  `db:"version"` // of the order, after the change
	Topic   Topic  `db:"topic"`
	Body    []byte `db:"body"` // an Event as JSON
}

// ID names the webhook. It is the same however often it is sent.
func (w Webhook) ID() string { return fmt.Sprintf("msg_%s_%d", w.Order, w.Version) }

// Event is the body of a webhook.
type Event struct {
	Type      Topic     `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the change
	Data      Order     `json:"data"`      // the whole order, as the change left it
}

// post puts a change into the outbox.
func post(ctx context.Context, tx *sqlx.Tx, topic Topic, o Order) (Webhook, error) {
	body, err := json.Marshal(Event{Type: topic, Timestamp: o.UpdatedAt, Data: o})
	if err != nil {
		return Webhook{}, fmt.Errorf("shop: tell of order %s: %w", o.ID, err)
	}
	w := Webhook{Order: o.ID, Version: o.Version, Topic: topic, Body: body}
	err = tx.GetContext(ctx, &w.Seq, `INSERT INTO outbox (order_id, version, topic, body) VALUES (?, ?, ?, ?) RETURNING seq`,
		w.Order, w.Version, w.Topic, string(w.Body))
	if err != nil {
		return Webhook{}, fmt.Errorf("shop: tell of order %s: %w", o.ID, err)
	}
	return w, nil
}

// Outbox returns the unacknowledged webhooks behind a place in the outbox, oldest
// first.
func (s *Store) Outbox(ctx context.Context, after int64, limit int) ([]Webhook, error) {
	var all []Webhook
	err := s.db.SelectContext(ctx, &all, `SELECT seq, order_id, version, topic, body FROM outbox
		WHERE seq > ? AND acknowledged = 0 ORDER BY seq LIMIT ?`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("shop: read the outbox: %w", err)
	}
	return all, nil
}

// Acknowledge notes that a receiver has accepted a webhook. The webhook is not to
// be sent again.
func (s *Store) Acknowledge(ctx context.Context, seq int64) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE outbox SET acknowledged = 1 WHERE seq = ?`, seq); err != nil {
		return fmt.Errorf("shop: acknowledge a webhook: %w", err)
	}
	return nil
}

// Told is how many webhooks there are, and how many were acknowledged.
type Told struct {
	Made         int `db:"made"`
	Acknowledged int `db:"acknowledged"`
}

// Told counts the webhooks.
func (s *Store) Told(ctx context.Context) (Told, error) {
	var t Told
	err := s.db.GetContext(ctx, &t, `SELECT count(*) AS made, coalesce(sum(acknowledged), 0) AS acknowledged FROM outbox`)
	if err != nil {
		return t, fmt.Errorf("shop: count webhooks: %w", err)
	}
	return t, nil
}
