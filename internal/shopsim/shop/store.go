package shop

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/shopsim/disk"
	"github.com/amends-dev/amends/internal/shopsim/rest"
)

const schema = `
CREATE TABLE IF NOT EXISTS orders (
	seq        INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL UNIQUE,
	status     TEXT    NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL, -- seconds
	updated_at INTEGER NOT NULL, -- seconds
	deleted    INTEGER NOT NULL DEFAULT 0,
	invoice_id TEXT    NOT NULL,
	body       TEXT    NOT NULL  -- the order as JSON; the columns above win
) STRICT;
CREATE INDEX IF NOT EXISTS orders_by_status ON orders (status, invoice_id, seq);
CREATE INDEX IF NOT EXISTS orders_by_change ON orders (updated_at, id);
CREATE INDEX IF NOT EXISTS orders_by_creation ON orders (created_at);
CREATE TABLE IF NOT EXISTS outbox (
	seq          INTEGER PRIMARY KEY,
	order_id     TEXT    NOT NULL,
	version      INTEGER NOT NULL,
	topic        TEXT    NOT NULL,
	body         TEXT    NOT NULL,
	acknowledged INTEGER NOT NULL DEFAULT 0,
	UNIQUE (order_id, version)
) STRICT;`

const columns = `seq, id, status, version, updated_at, deleted, invoice_id, body`

// Store is the shop's storage.
type Store struct {
	db *sqlx.DB

	// Now is the shop's clock. Tests may replace it before the first call.
	Now func() time.Time
	// Changed, when it is set before the first call, is called after a change
	// was stored and before its caller gets an answer.
	Changed func(w Webhook)
}

// Open opens the shop's file, and creates it when it is not there.
func Open(path string) (*Store, error) {
	db, err := disk.Open(path, schema)
	if err != nil {
		return nil, fmt.Errorf("shop: %w", err)
	}
	return &Store{db: db, Now: time.Now}, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// row is an order as the table holds it.
type row struct {
	Seq       int64  `db:"seq"`
	ID        string `db:"id"`
	Status    Status `db:"status"`
	Version   int64  `db:"version"`
	UpdatedAt int64  `db:"updated_at"`
	Deleted   bool   `db:"deleted"`
	InvoiceID string `db:"invoice_id"`
	Body      string `db:"body"`
}

func (r row) order() (Order, error) {
	var o Order
	if err := json.Unmarshal([]byte(r.Body), &o); err != nil {
		return o, fmt.Errorf("shop: read order %s: %w", r.ID, err)
	}
	o.Status, o.Version, o.InvoiceID, o.Deleted = r.Status, r.Version, r.InvoiceID, r.Deleted
	o.UpdatedAt = time.Unix(r.UpdatedAt, 0).UTC()
	return o, nil
}

func ordersOf(rows []row) ([]Order, error) {
	orders := make([]Order, 0, len(rows))
	for _, r := range rows {
		o, err := r.order()
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, nil
}

// Add stores new orders in the given sequence, as version 1.
func (s *Store) Add(ctx context.Context, orders ...Order) error {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("shop: add orders: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	var added []Webhook
	for _, o := range orders {
		o.UpdatedAt = o.UpdatedAt.UTC().Truncate(time.Second)
		body, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("shop: add order %s: %w", o.ID, err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, status, version, created_at, updated_at, invoice_id, body) VALUES (?, ?, 1, ?, ?, ?, ?)`,
			o.ID, o.Status, o.CreatedAt.Unix(), o.UpdatedAt.Unix(), o.InvoiceID, string(body))
		if err != nil {
			return fmt.Errorf("shop: add order %s: %w", o.ID, err)
		}
		o.Version = 1
		w, err := post(ctx, tx, addedAs(o.Status), o)
		if err != nil {
			return err
		}
		added = append(added, w)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("shop: add orders: %w", err)
	}
	for _, w := range added {
		s.tell(w)
	}
	return nil
}

// tell calls Changed.
func (s *Store) tell(w Webhook) {
	if s.Changed != nil {
		s.Changed(w)
	}
}

// Orders returns every order as it is, oldest first, the deleted ones too.
func (s *Store) Orders(ctx context.Context) ([]Order, error) {
	var rows []row
	if err := s.db.SelectContext(ctx, &rows, `SELECT `+columns+` FROM orders ORDER BY seq`); err != nil {
		return nil, fmt.Errorf("shop: read all orders: %w", err)
	}
	return ordersOf(rows)
}

// Tally is how many orders stand where. Deleted ones do not count.
type Tally struct {
	Paid      int `db:"paid"` // not cancelled, with or without a mark
	Synced    int `db:"synced"`
	Cancelled int `db:"cancelled"`
}

// Tally counts the orders. It is cheap enough to ask for a progress bar.
func (s *Store) Tally(ctx context.Context) (Tally, error) {
	var t Tally
	err := s.db.GetContext(ctx, &t, `SELECT
		count(*) FILTER (WHERE status = 'paid')                       AS paid,
		count(*) FILTER (WHERE status = 'paid' AND invoice_id <> '')  AS synced,
		count(*) FILTER (WHERE status = 'cancelled')                  AS cancelled
		FROM orders WHERE deleted = 0`)
	if err != nil {
		return t, fmt.Errorf("shop: count orders: %w", err)
	}
	return t, nil
}

// Order returns one order that is not deleted.
func (s *Store) Order(ctx context.Context, id string) (Order, error) {
	return find(ctx, s.db, id)
}

func find(ctx context.Context, q sqlx.QueryerContext, id string) (Order, error) {
	var r row
	err := sqlx.GetContext(ctx, q, &r, `SELECT `+columns+` FROM orders WHERE id = ? AND deleted = 0`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return Order{}, rest.Refuse(http.StatusNotFound, CodeUnknownOrder, "there is no order %s", id)
	}
	if err != nil {
		return Order{}, fmt.Errorf("shop: read order %s: %w", id, err)
	}
	return r.order()
}
