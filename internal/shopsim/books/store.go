package books

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/shopsim/disk"
)

const schema = `
CREATE TABLE IF NOT EXISTS customers (
	seq   INTEGER PRIMARY KEY,
	ref   TEXT NOT NULL UNIQUE,
	name  TEXT NOT NULL,
	email TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS invoices (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT, -- a number is never used twice
	state      TEXT    NOT NULL,
	posted     INTEGER NOT NULL DEFAULT 0,
	customer   INTEGER NOT NULL REFERENCES customers,
	reference  TEXT    NOT NULL,
	memo       TEXT    NOT NULL,
	lines      TEXT    NOT NULL, -- JSON
	note       TEXT    NOT NULL DEFAULT '',
	created_at INTEGER NOT NULL, -- microseconds
	visible_at INTEGER NOT NULL, -- lookups do not see this memo and these lines earlier,
	old_memo   TEXT,             -- but these; and nothing at all where they are null
	old_lines  TEXT
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
