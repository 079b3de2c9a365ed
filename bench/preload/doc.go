// Package preload fills a ledger with finished works, as fast as its database
// takes rows.
//
// A few works are run for real by an engine. Their rows are then copied inside
// the database, column by column as they are, until there are enough. What must
// differ does: the number, the work id and the external ids, which all keep
// their shape. So tables and indexes have the size and the order they would
// have after as many real works.
//
// Hashes are copied, too. A preloaded ledger measures well and fails every check;
// it is for benchmarks only.
package preload
