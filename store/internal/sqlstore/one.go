package sqlstore

import (
	"database/sql"
	"errors"
)

// One is the answer of a query that has one row, for callers that can only ask for many.
type One struct {
	Rows *sql.Rows
	Err  error // of the query
}

// Scan reads the row and closes the answer. [sql.ErrNoRows]: it has none.
func (o One) Scan(dest ...any) error {
	if o.Err != nil {
		return o.Err
	}
	if !o.Rows.Next() {
		return errors.Join(o.Rows.Err(), o.Rows.Close(), sql.ErrNoRows)
	}
	return errors.Join(o.Rows.Scan(dest...), o.Rows.Close(), o.Rows.Err())
}
