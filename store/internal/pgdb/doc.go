// Package pgdb reaches the Postgres in which amends keeps its tables, for each part that has tables
// there: the ledger, and what was heard. They trust the same servers, want the same schema, plan in
// the same way, and give the driver's errors the same meaning.
package pgdb
