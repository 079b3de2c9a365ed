// Package column holds the types by which columns of either database are read into plain values:
// NULL is the zero value, and a time is a time, whether the database has such a type or counts
// microseconds.
package column

import (
	"fmt"
	"time"
)

// Text is a text column.
type Text string

// Scan implements sql.Scanner.
func (t *Text) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*t = ""
	case string:
		*t = Text(v)
	case []byte:
		*t = Text(v)
	default:
		return fmt.Errorf("a text column holds a %T", v)
	}
	return nil
}

// Number is an integer column.
type Number int64

// Scan implements sql.Scanner.
func (n *Number) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*n = 0
	case int64:
		*n = Number(v)
	default:
		return fmt.Errorf("an integer column holds a %T", v)
	}
	return nil
}

// Flag is a boolean column, on SQLite an integer.
type Flag bool

// Scan implements sql.Scanner.
func (f *Flag) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*f = false
	case bool:
		*f = Flag(v)
	case int64:
		*f = v != 0
	default:
		return fmt.Errorf("a boolean column holds a %T", v)
	}
	return nil
}

// Moment is a time column, on SQLite microseconds since 1970.
type Moment time.Time

// Scan implements sql.Scanner.
func (m *Moment) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m = Moment{}
	case time.Time:
		*m = Moment(v.UTC())
	case int64:
		*m = Moment(time.UnixMicro(v).UTC())
	default:
		return fmt.Errorf("a time column holds a %T", v)
	}
	return nil
}

// Time returns m in UTC.
func (m Moment) Time() time.Time { return time.Time(m) }
