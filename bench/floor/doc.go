// Package floor holds the cheapest durable saga ledgers we can write: the lower
// bound that engines are measured against.
//
// A saga is one row that is rewritten as it advances. What every saga has to
// write, its start or the end of a step, is a transition. Transitions wait in
// one queue; a writer takes whatever is waiting, without lingering for more,
// and makes it durable in one commit. Each saga waits for its own transition
// before its next step runs. That is group commit, and nearly all there is.
//
// [Postgres] is "c-row": two writers, one statement per batch for starts and
// ends alike, hash and merge joins and sequential scans switched off on the
// writers' connections so that a plan made while the table was tiny does not
// stay. [SQLite] is "sqlite-c": one writer, one transaction per batch, WAL with
// synchronous=FULL.
//
// The floor is no product. It has no leases, no fencing of other processes, no
// timers, no retries, no payloads, no history and no way back. A ratio to the
// floor says what all of those cost.
package floor
