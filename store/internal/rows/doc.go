// Package rows is what the SQL stores of package inbox have in common: the translation between
// events, entries and rows, and the filters of those who read.
//
// Each row is written once, as a list of [Field]: columns with pointers into the type that the row is
// of. Statements, values and reading are made of it.
//
// A zero value is NULL in the database: a person who reads it by SQL sees what is there and nothing
// else. Times go into a statement as microseconds since 1970, which Postgres makes timestamps of.
// What comes from outside is made fit for a text column here, so that one bad value never fails the
// batch it is in.
package rows
