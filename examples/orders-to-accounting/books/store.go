package books

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/examples/orders-to-accounting/internal/disk"
	"github.com/amends-dev/amends/examples/orders-to-accounting/internal/rest"
)

const schema = `
CREATE TABLE IF NOT EXISTS customers (
	seq   INTEGER PRIMARY KEY,
	ref   TEXT NOT NULL UNIQUE,
	name  TEXT NOT NULL,
	email TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS invoices (
	seq         INTEGER PRIMARY KEY AUTOINCREMENT, -- a number is never used twice
	state       TEXT    NOT NULL,
	customer    TEXT    NOT NULL,
	reference   TEXT    NOT NULL,
	memo        TEXT    NOT NULL,
	total_cents INTEGER NOT NULL,
	created_at  INTEGER NOT NULL, -- microseconds
	visible_at  INTEGER NOT NULL, -- lookups do not see this content earlier,
	old_memo    TEXT,             -- but this; and nothing at all where it is null
	old_cents   INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS invoices_by_reference ON invoices (reference);`

// Store is the storage of the books.
type Store struct {
	db *sqlx.DB

	// Now is the books' clock. Tests may replace it before the first call.
	Now func() time.Time
}

// Open opens the books' file, and creates it when it is not there.
func Open(path string) (*Store, error) {
	db, err := disk.Open(path, schema)
	if err != nil {
		return nil, fmt.Errorf("books: %w", err)
	}
	return &Store{db: db, Now: time.Now}, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

func customerID(seq int64) string { return fmt.Sprintf("cus_%04d", seq) }
func invoiceID(seq int64) string  { return fmt.Sprintf("inv_%04d", seq) }

// seqOf is the inverse of the two above; it answers 0, which no row has, for
// anything that is not such an id.
func seqOf(prefix, id string) int64 {
	digits, ok := strings.CutPrefix(id, prefix)
	seq, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return seq
}

// PutCustomer finds the customer with this reference or makes it, and writes
// the contact on it.
func (s *Store) PutCustomer(ctx context.Context, ref string, c Contact) (Customer, error) {
	var r struct {
		Seq   int64  `db:"seq"`
		Ref   string `db:"ref"`
		Name  string `db:"name"`
		Email string `db:"email"`
	}
	err := s.db.GetContext(ctx, &r, `INSERT INTO customers (ref, name, email) VALUES (?, ?, ?)
		ON CONFLICT (ref) DO UPDATE SET name = excluded.name, email = excluded.email RETURNING seq, ref, name, email`,
		ref, c.Name, c.Email)
	if err != nil {
		return Customer{}, fmt.Errorf("books: put customer %s: %w", ref, err)
	}
	return Customer{ID: customerID(r.Seq), Ref: r.Ref, Name: r.Name, Email: r.Email}, nil
}

// errEmpty refuses an invoice without lines.
func errEmpty() error {
	return rest.Refuse(http.StatusUnprocessableEntity, CodeEmptyInvoice, "an invoice needs at least one line")
}

// AddInvoice makes a live invoice, always a new one. Lookups see it once
// hidden has passed.
func (s *Store) AddInvoice(ctx context.Context, d Draft, hidden time.Duration) (Invoice, error) {
	if len(d.Lines) == 0 {
		return Invoice{}, errEmpty()
	}
	now := s.Now().UTC().Truncate(time.Microsecond)
	inv := Invoice{State: Live, Customer: d.Customer, Reference: d.Reference, Memo: d.Memo, TotalCents: Total(d.Lines), CreatedAt: now}
	var seq int64
	err := s.db.GetContext(ctx, &seq, `INSERT INTO invoices (state, customer, reference, memo, total_cents, created_at, visible_at)
		SELECT ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM customers WHERE seq = ?) RETURNING seq`,
		inv.State, inv.Customer, inv.Reference, inv.Memo, inv.TotalCents, now.UnixMicro(), now.Add(hidden).UnixMicro(), seqOf("cus_", d.Customer))
	if errors.Is(err, sql.ErrNoRows) {
		return Invoice{}, rest.Refuse(http.StatusUnprocessableEntity, CodeUnknownCustomer, "there is no customer %q", d.Customer)
	}
	if err != nil {
		return Invoice{}, fmt.Errorf("books: add invoice for %s: %w", d.Reference, err)
	}
	inv.ID = invoiceID(seq)
	return inv, nil
}

// UpdateInvoice writes new content on a live invoice. Lookups show it once
// hidden has passed, and until then what they showed before.
func (s *Store) UpdateInvoice(ctx context.Context, id string, u Update, hidden time.Duration) (Invoice, error) {
	if len(u.Lines) == 0 {
		return Invoice{}, errEmpty()
	}
	now := s.Now().UTC()
	var r row
	err := s.db.GetContext(ctx, &r, `UPDATE invoices SET
		old_memo   = CASE WHEN visible_at <= :now THEN memo ELSE old_memo END,
		old_cents  = CASE WHEN visible_at <= :now THEN total_cents ELSE old_cents END,
		visible_at = max(visible_at, :visible), memo = :memo, total_cents = :cents
		WHERE seq = :seq AND state = :live RETURNING `+invoiceColumns,
		sql.Named("now", now.UnixMicro()), sql.Named("visible", now.Add(hidden).UnixMicro()),
		sql.Named("memo", u.Memo), sql.Named("cents", Total(u.Lines)), sql.Named("seq", seqOf("inv_", id)), sql.Named("live", Live))
	if errors.Is(err, sql.ErrNoRows) {
		if _, err := s.Invoice(ctx, id); err != nil {
			return Invoice{}, err
		}
		return Invoice{}, rest.Refuse(http.StatusConflict, CodeInvoiceVoid, "invoice %s is void", id)
	}
	if err != nil {
		return Invoice{}, fmt.Errorf("books: update invoice %s: %w", id, err)
	}
	return r.invoice(), nil
}

const invoiceColumns = `seq, state, customer, reference, memo, total_cents, created_at`

// row is an invoice as the table holds it.
type row struct {
	Seq        int64  `db:"seq"`
	State      State  `db:"state"`
	Customer   string `db:"customer"`
	Reference  string `db:"reference"`
	Memo       string `db:"memo"`
	TotalCents int64  `db:"total_cents"`
	CreatedAt  int64  `db:"created_at"`
}

func (r row) invoice() Invoice {
	return Invoice{
		ID: invoiceID(r.Seq), State: r.State, Customer: r.Customer, Reference: r.Reference, Memo: r.Memo,
		TotalCents: r.TotalCents, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
	}
}

func (s *Store) list(ctx context.Context, query string, args ...any) ([]Invoice, error) {
	var rows []row
	if err := s.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("books: list invoices: %w", err)
	}
	invoices := make([]Invoice, len(rows))
	for i, r := range rows {
		invoices[i] = r.invoice()
	}
	return invoices, nil
}

// Lookup returns the invoices with this reference that lookups can see by now,
// void ones too, oldest first, with the content that lookups show by now.
func (s *Store) Lookup(ctx context.Context, reference string) ([]Invoice, error) {
	return s.list(ctx, `SELECT seq, state, customer, reference, created_at,
		CASE WHEN visible_at <= :now THEN memo ELSE old_memo END AS memo,
		CASE WHEN visible_at <= :now THEN total_cents ELSE old_cents END AS total_cents
		FROM invoices WHERE reference = :reference AND (visible_at <= :now OR old_memo IS NOT NULL) ORDER BY seq`,
		sql.Named("now", s.Now().UnixMicro()), sql.Named("reference", reference))
}

// Invoices returns every invoice as it is, whatever lookups see of it.
func (s *Store) Invoices(ctx context.Context) ([]Invoice, error) {
	return s.list(ctx, `SELECT `+invoiceColumns+` FROM invoices ORDER BY seq`)
}

// Invoice returns one invoice as it is.
func (s *Store) Invoice(ctx context.Context, id string) (Invoice, error) {
	return s.one(ctx, "read", id, `SELECT `+invoiceColumns+` FROM invoices WHERE seq = ?`, seqOf("inv_", id))
}

// Void takes an invoice out of the count. A void one stays void.
func (s *Store) Void(ctx context.Context, id string) (Invoice, error) {
	return s.one(ctx, "void", id, `UPDATE invoices SET state = ? WHERE seq = ? RETURNING `+invoiceColumns, Void, seqOf("inv_", id))
}

// one runs a query that is about one invoice.
func (s *Store) one(ctx context.Context, verb, id, query string, args ...any) (Invoice, error) {
	var r row
	err := s.db.GetContext(ctx, &r, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return Invoice{}, rest.Refuse(http.StatusNotFound, CodeUnknownInvoice, "there is no invoice %s", id)
	}
	if err != nil {
		return Invoice{}, fmt.Errorf("books: %s invoice %s: %w", verb, id, err)
	}
	return r.invoice(), nil
}
