package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/column"
)

// A Field is a column, and a pointer to what a row has in it: to an int64, int, string, bool,
// [time.Time], [intake.Digest] or [json.RawMessage], to a type of this package that is written
// otherwise, or, where it is only read, what [sql.Rows.Scan] takes. Of a list of them the columns of
// a table are made, their values, and where they are read to.
type Field = struct {
	Name string
	At   any
}

// A writer is a field that is not written as its type is; a reshaped one is read as what is plain.
type (
	writer   interface{ value() any }
	reshaped interface{ plain() any }
)

// sparse is a number that is NULL for zero.
func sparse[N int | int64](at *N) any { return orNull[N]{at} }

type orNull[N int | int64] struct{ at *N }

func (o orNull[N]) plain() any { return o.at }
func (o orNull[N]) value() any { return number(int64(*o.at)) }

// key is a text in an index, uncut one for programs, NULL for none: half a cursor is none. label is a
// disposition as every row has it: it is counted by its name. atLeastOne is what the database refuses zero of.
type (
	key        string
	uncut      string
	label      string
	atLeastOne int64
)

func (k *key) plain() any        { return (*string)(k) }
func (k *key) value() any        { return name(string(*k)) }
func (u *uncut) plain() any      { return (*string)(u) }
func (u *uncut) value() any      { return long(*u) }
func (l *label) plain() any      { return (*string)(l) }
func (l *label) value() any      { return long(name(string(*l))) }
func (n *atLeastOne) plain() any { return (*int64)(n) }
func (n *atLeastOne) value() any { return int64(max(*n, 1)) }

// values are what a statement takes for fields. moment writes a time.
func values(fields []Field, moment func(time.Time) any) []any {
	vs := make([]any, len(fields))
	for i := range fields {
		switch at := fields[i].At.(type) {
		case *int64:
			vs[i] = *at
		case *int:
			vs[i] = int64(*at)
		case *string:
			vs[i] = text(*at)
		case *bool:
			vs[i] = flag(*at)
		case *time.Time:
			vs[i] = moment(*at)
		case *intake.Digest:
			vs[i] = digest(*at)
		case *json.RawMessage:
			vs[i] = long(*at)
		default:
			vs[i] = at.(writer).value() //nolint:forcetypeassert // a mistake in a list of this package
		}
	}
	return vs
}

// columns are those of fields, with the types of their values.
func columns(fields []Field) []Column {
	cs := make([]Column, len(fields))
	for i, f := range fields {
		if r, ok := f.At.(reshaped); ok {
			f.At = r.plain()
		}
		cs[i] = Column{f.Name, Words}
		switch f.At.(type) {
		case *int64, *int:
			cs[i].Kind = Bigint
		case *bool:
			cs[i].Kind = Flag
		case *time.Time:
			cs[i].Kind = Moment
		case *intake.Digest:
			cs[i].Kind = Bytes
		}
	}
	return cs
}

// place is where a field is read to. NULL is the zero value.
func place(at any) any {
	switch at := at.(type) {
	case reshaped:
		return place(at.plain())
	case *int64:
		return (*column.Number)(at)
	case *int:
		return count{at}
	case *string:
		return (*column.Text)(at)
	case *bool:
		return (*column.Flag)(at)
	case *time.Time:
		return (*column.Moment)(at)
	case *intake.Digest:
		return hash{at}
	case *json.RawMessage:
		return document{at}
	}
	return at
}

type (
	count    struct{ at *int }
	hash     struct{ at *intake.Digest }
	document struct{ at *json.RawMessage }
)

// Scan implements [sql.Scanner].
func (c count) Scan(v any) error {
	var n column.Number
	err := n.Scan(v)
	*c.at = int(n)
	return err
}

// Scan implements [sql.Scanner]. What is no digest is none.
func (h hash) Scan(v any) error {
	var t column.Text
	err := t.Scan(v)
	if *h.at = (intake.Digest{}); len(t) == len(h.at) {
		copy(h.at[:], t)
	}
	return err
}

// Scan implements [sql.Scanner].
func (d document) Scan(v any) error {
	var t column.Text
	err := t.Scan(v)
	*d.at = body(string(t))
	return err
}

// A Reader reads all rows that a query has answered with.
type Reader func(*sql.Rows, error) error

// Into returns what reads rows into a list, by the names of their columns: all of them, and nothing
// that was there before, or none. finish is done to each row behind its fields.
func Into[T any](list *[]T, fields func(*T) []Field, finish ...func(*T)) Reader {
	return func(found *sql.Rows, err error) error {
		if *list = nil; err != nil {
			return err
		}
		defer func() { _ = found.Close() }() // its error is that of Err
		var row, none T
		into, err := places(found, fields(&row))
		if err != nil {
			return err
		}
		all := []T{}
		for found.Next() {
			row = none
			if err := found.Scan(into...); err != nil {
				return err
			}
			for _, f := range finish {
				f(&row)
			}
			all = append(all, row)
		}
		if err := found.Err(); err != nil {
			return err
		}
		*list = all
		return nil
	}
}

// places are where each column of an answer is read to.
func places(found *sql.Rows, fields []Field) ([]any, error) {
	names, err := found.Columns()
	into := make([]any, len(names))
	for i, name := range names {
		f := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if f < 0 { // a mistake in a statement of this module
			return nil, fmt.Errorf("the row has no place for column %s", name)
		}
		into[i] = place(fields[f].At)
	}
	return into, err
}

// Select reads all rows of a query into dest, which is a [Reader] or a list as [sqlx.SelectContext] takes it.
func Select(ctx context.Context, q sqlx.QueryerContext, dest any, query string, args ...any) error {
	if read, ok := dest.(Reader); ok {
		return read(q.QueryContext(ctx, query, args...)) //nolint:rowserrcheck // a reader does
	}
	return sqlx.SelectContext(ctx, q, dest, query, args...)
}
