package books

import (
	"context"
	"database/sql"
)

// What people do at the screens of the books. The API has no such endpoints, and
// lookups are not behind it.

// Annotate writes the note on an invoice, whatever its state.
func (s *Store) Annotate(ctx context.Context, id, note string) (Invoice, error) {
	return s.change(ctx, id, `UPDATE invoices SET note = :note WHERE seq = :seq RETURNING `+columns, sql.Named("note", note))
}

// Post closes a live invoice: its tax was declared, or its money came. It can be
// neither updated nor voided any more.
func (s *Store) Post(ctx context.Context, id string) (Invoice, error) {
	return s.change(ctx, id, `UPDATE invoices SET posted = 1 WHERE seq = :seq AND state = 'live' RETURNING `+columns)
}

// Delete removes an invoice for good. Its number is not used again.
func (s *Store) Delete(ctx context.Context, id string) (Invoice, error) {
	return s.change(ctx, id, `DELETE FROM invoices WHERE seq = :seq RETURNING `+columns)
}
