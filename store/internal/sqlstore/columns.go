package sqlstore

import "github.com/amends-dev/amends/store/internal/column"

// Text is a text column. Here as below, NULL is the zero value.
type Text = column.Text

// Number is an integer column.
type Number = column.Number

// Flag is a boolean column, on SQLite an integer.
type Flag = column.Flag

// Moment is a time column, on SQLite microseconds since 1970.
type Moment = column.Moment
