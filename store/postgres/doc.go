// Package postgres is a ledger in a Postgres database (14 or newer), for one coordinator or many.
//
// # Lanes
//
// Work of different urgency has connections of its own, so that none waits for the other's:
//
//   - writers (two by default) append records: what was learned must be stored even when everything else is busy. A
//     work whose row another transaction has locked is answered [ledger.Blocked] and holds up no other;
//   - one connection starts works and waits for no lock: a batch that meets a caller's open StartTx is split until only
//     the contended start is answered [ledger.Blocked], and its repetitions take a connection of their own;
//   - one connection claims;
//   - one connection carries the heartbeat;
//   - a small pool does the rest: loads, signals, listings.
//
// # Silence
//
// A context that ends closes the connection that its call is on: the driver would wait for a server that says nothing.
// So every call comes back in its own time, and a second or two for asking the server to cancel, whatever became of the
// network. What locks rows (claims, posts, batches) is
// one statement each, so that no client can vanish in the middle of it, and every connection asks the server to give up
// peers, locks and transactions that are forgotten.
//
// # One statement per batch
//
// A batch of records is one autocommit statement: unnest the columns, join the predecessors, insert in the order
// of heads (two writers that meet wait for each other, never in a circle), update the heads whose scheduling
// changes, return what was stored. What is not returned is looked up by a second statement, which tells mine
// from stale from missing. A batch of one has a form without arrays. Everything is prepared, with plans that do
// not depend on how large the tables were when they were made.
//
// # Who the database is
//
// Every connection that is opened asks for the system identifier and the timeline. When they are not what they
// were (fail-over, restore) nothing more is stored through this ledger until a new session is opened: the last
// moments may be forgotten. A process that has opened no session follows. A connection to a standby is refused.
//
// # Schema
//
// Tables are looked for in the first schema of the search_path and in no other. Open refuses an older or newer
// schema; Options.Migrate, or the command amends migrate, brings an older one up to date.
package postgres
