// Package sqlstore is what the SQL databases have in common, for every role: sessions, chains, what
// was heard, plans, sweeps and jobs.
//
// # What is shared and what is not
//
// A statement that differs only in wording is written once, in statements.go, with the words that
// differ in braces: {now}, {ms}, {numbers:1}, {works:1}. Both databases take parameters as $1, $2.
// The statements of a reconciler are built where they are used and take question marks. A statement
// that differs in thought (append, claim, accept) is written twice, whole, in the file of SQL of
// its database. What else differs are the fields of [Dialect], chosen when a database is opened. A
// store never asks which database it is on.
//
// # Three structs, three jobs
//
// [machine.Record] and [ledger.Instance] are what the program works with; the row types in
// headrows.go, and in package rows, are what the database holds; what goes over the wire is the
// driver's. There is one conversion each way. A zero value is NULL in the database: a person who
// reads it by SQL sees what is there and nothing else.
//
// # Time
//
// The database's clock is the ledger's clock. Every statement that needs it takes it as $1: NULL
// means the server's own, a number of microseconds overrides it. Postgres is always asked with
// NULL, but for tests. SQLite has no clock of its own worth the name, so its ledger passes the
// process's.
package sqlstore
