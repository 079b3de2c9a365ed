package engine

import "github.com/amends-dev/amends/internal/column"

// The types of columns: NULL is the zero value.
type (
	Text   = column.Text   // a text column
	Number = column.Number // an integer column
	Flag   = column.Flag   // a boolean column, on SQLite an integer
	Moment = column.Moment // a time column, on SQLite microseconds since 1970
)
