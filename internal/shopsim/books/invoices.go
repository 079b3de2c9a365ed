package books

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// Columns of an invoice: what it is, and its content as it is or as lookups
// show it at :now.
const (
	frame   = `seq, state, posted, customer, (SELECT ref FROM customers c WHERE c.seq = customer) AS customer_ref, reference, note, created_at`
	columns = frame + `, memo, lines`
	seen    = frame + `,
		CASE WHEN visible_at <= :now THEN memo ELSE old_memo END AS memo,
		CASE WHEN visible_at <= :now THEN lines ELSE old_lines END AS lines`
	visible = `(visible_at <= :now OR old_lines IS NOT NULL)`
)

// row is an invoice as the table holds it.
type row struct {
	Seq         int64  `db:"seq"`
	State       State  `db:"state"`
	Posted      bool   `db:"posted"`
	Customer    int64  `db:"customer"`
	CustomerRef string `db:"customer_ref"`
	Reference   string `db:"reference"`
	Memo        string `db:"memo"`
	Lines       string `db:"lines"`
	Note        string `db:"note"`
	CreatedAt   int64  `db:"created_at"`
}

func (r row) invoice() (Invoice, error) {
	inv := Invoice{
		ID: invoiceID(r.Seq), State: r.State, Posted: r.Posted, Customer: customerID(r.Customer), CustomerRef: r.CustomerRef,
		Reference: r.Reference, Memo: r.Memo, Note: r.Note, CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
	}
	if err := json.Unmarshal([]byte(r.Lines), &inv.Lines); err != nil {
		return inv, fmt.Errorf("books: read invoice %s: %w", inv.ID, err)
	}
	inv.TotalCents = Total(inv.Lines)
	return inv, nil
}

// content is how the table holds lines.
func content(lines []Line) (string, error) {
	if len(lines) == 0 {
		return "", rest.Refuse(http.StatusUnprocessableEntity, CodeEmptyInvoice, "an invoice needs at least one line")
	}
	text, err := json.Marshal(lines)
	return string(text), err
}

// AddInvoice makes a live invoice, always a new one. Lookups see it once
// hidden has passed.
func (s *Store) AddInvoice(ctx context.Context, d Draft, hidden time.Duration) (Invoice, error) {
	lines, err := content(d.Lines)
	if err != nil {
		return Invoice{}, err
	}
	now := s.Now().UTC()
	inv, err := s.one(ctx, `INSERT INTO invoices (state, customer, reference, memo, lines, created_at, visible_at)
		SELECT ?, seq, ?, ?, ?, ?, ? FROM customers WHERE seq = ? RETURNING `+columns,
		Live, d.Reference, d.Memo, lines, now.UnixMicro(), now.Add(hidden).UnixMicro(), seqOf("cus_", d.Customer))
	if errors.Is(err, sql.ErrNoRows) {
		return inv, rest.Refuse(http.StatusUnprocessableEntity, CodeUnknownCustomer, "there is no customer %q", d.Customer)
	}
	return inv, wrap(err, "add an invoice for "+d.Reference)
}

// UpdateInvoice writes new content on a live invoice. Lookups show it once
// hidden has passed, and until then what they showed before.
func (s *Store) UpdateInvoice(ctx context.Context, id string, u Update, hidden time.Duration) (Invoice, error) {
	lines, err := content(u.Lines)
	if err != nil {
		return Invoice{}, err
	}
	now := s.Now().UTC()
	return s.change(ctx, id, `UPDATE invoices SET
		old_memo   = CASE WHEN visible_at <= :now THEN memo ELSE old_memo END,
		old_lines  = CASE WHEN visible_at <= :now THEN lines ELSE old_lines END,
		visible_at = max(visible_at, :visible), memo = :memo, lines = :lines
		WHERE seq = :seq AND state = 'live' AND NOT posted RETURNING `+columns,
		sql.Named("now", now.UnixMicro()), sql.Named("visible", now.Add(hidden).UnixMicro()),
		sql.Named("memo", u.Memo), sql.Named("lines", lines))
}

// Void takes an invoice out of the count. A void one stays void.
func (s *Store) Void(ctx context.Context, id string) (Invoice, error) {
	return s.change(ctx, id, `UPDATE invoices SET state = 'void' WHERE seq = :seq AND NOT posted RETURNING `+columns)
}

// change runs a query that changes the invoice :seq, and says why it did not.
func (s *Store) change(ctx context.Context, id, query string, args ...any) (Invoice, error) {
	inv, err := s.one(ctx, query, append(args, sql.Named("seq", seqOf("inv_", id)))...)
	if !errors.Is(err, sql.ErrNoRows) {
		return inv, wrap(err, "change invoice "+id)
	}
	switch inv, err := s.Invoice(ctx, id); {
	case err != nil:
		return inv, err
	case inv.Posted:
		return inv, rest.Refuse(http.StatusConflict, CodeInvoicePosted, "invoice %s is posted; correct it by a credit note", id)
	default:
		return inv, rest.Refuse(http.StatusConflict, CodeInvoiceVoid, "invoice %s is void", id)
	}
}

// Invoice returns one invoice as it is.
func (s *Store) Invoice(ctx context.Context, id string) (Invoice, error) {
	inv, err := s.one(ctx, `SELECT `+columns+` FROM invoices WHERE seq = ?`, seqOf("inv_", id))
	if errors.Is(err, sql.ErrNoRows) {
		return inv, unknown(id)
	}
	return inv, wrap(err, "read invoice "+id)
}

func unknown(id string) error {
	return rest.Refuse(http.StatusNotFound, CodeUnknownInvoice, "there is no invoice %s", id)
}

// Invoices returns every invoice as it is, whatever lookups see of it.
func (s *Store) Invoices(ctx context.Context) ([]Invoice, error) {
	return s.list(ctx, `SELECT `+columns+` FROM invoices ORDER BY seq`)
}

// Lookup returns the invoices with this reference that lookups can see by now,
// void ones too, oldest first, with the content that lookups show by now.
func (s *Store) Lookup(ctx context.Context, reference string) ([]Invoice, error) {
	return s.list(ctx, `SELECT `+seen+` FROM invoices WHERE reference = :reference AND `+visible+` ORDER BY seq`,
		sql.Named("now", s.Now().UnixMicro()), sql.Named("reference", reference))
}

// Marked returns the invoices whose reference begins with mark, as Lookup does:
// at most limit of them, and those behind the invoice after, if one is named.
func (s *Store) Marked(ctx context.Context, mark, after string, limit int) ([]Invoice, error) {
	behind := int64(0)
	if after != "" {
		if behind = seqOf("inv_", after); behind == 0 {
			return nil, rest.Refuse(http.StatusBadRequest, "bad_request", "after=%q is no cursor of these books", after)
		}
	}
	return s.list(ctx, `SELECT `+seen+` FROM invoices
		WHERE seq > :behind AND substr(reference, 1, length(:mark)) = :mark AND `+visible+` ORDER BY seq LIMIT :limit`,
		sql.Named("now", s.Now().UnixMicro()), sql.Named("behind", behind), sql.Named("mark", mark), sql.Named("limit", limit))
}

func (s *Store) list(ctx context.Context, query string, args ...any) ([]Invoice, error) {
	var rows []row
	if err := s.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, wrap(err, "list invoices")
	}
	invoices := make([]Invoice, len(rows))
	for i, r := range rows {
		var err error
		if invoices[i], err = r.invoice(); err != nil {
			return nil, err
		}
	}
	return invoices, nil
}

// one runs a query that answers with one invoice, or [sql.ErrNoRows].
func (s *Store) one(ctx context.Context, query string, args ...any) (Invoice, error) {
	var r row
	if err := sqlx.GetContext(ctx, s.db, &r, query, args...); err != nil {
		return Invoice{}, err
	}
	return r.invoice()
}

// wrap says what the books were about to do.
func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("books: %s: %w", what, err)
}
