// Package postgres is a database on Postgres (14 or newer), with every role, for one process or
// many.
//
//	db, err := postgres.Open(ctx, "postgres://shop@db/shop", nil) // after amends migrate up; or store.Open
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	c, err := coordinator.New(db, nil)
//
// # Mistakes people make
//
//   - A pooler in transaction mode stands between: it mixes statements, and is refused. Connect to the primary, or in session mode.
//   - synchronous_commit is off, or a fail-over loses commits: what was recorded is forgotten. amends notices
//     and asks, but an undo that was recorded cannot be known again.
//   - The password is in the address on a command line, where other users read it: use PGPASSWORD.
//
// # Pools and lanes
//
// A handle has four pools, for four ways of planning: one for the work that looks up its rows by
// an index, one for what comes in by batches, one for the chains that a coordinator loads, one for lists. By default they open eleven
// connections at most, as they are needed; what was not used for a minute is given back.
//
// Calls of different urgency share a pool and not their connections: each kind has a lane, which is
// so many connections that no other kind can take. So none waits for the other's:
//
//   - records (two by default): what was learned must be stored even when everything else is busy.
//     A work whose row another transaction has locked is answered [ledger.Blocked] and holds up no
//     other;
//   - claims and the heartbeat, one each;
//   - all other writes (two): signals, works that are given back, the gate, plans, jobs. Starts
//     that were blocked before are among them, and leave them one;
//   - starts, one, which wait for no lock: a batch that meets a caller's open StartTx is split
//     until only the contended start is answered [ledger.Blocked];
//   - deliveries and the pages of sweeps, one;
//   - reading (two): lists leave one to the chains that a coordinator loads.
//
// # Silence
//
// A context that ends closes the connection that its call is on: the driver would wait for a server
// that says nothing. So every call comes back in its own time, and a second or two for asking the
// server to cancel, whatever became of the network. Where its context has no end, as when a program
// starts, it ends when the server has said nothing for ten seconds, or for the connect_timeout of the
// DSN, and does not say by another connection that it works on the call: a migration may take however
// long. What locks rows of the ledger (claims, posts,
// batches) is one statement each, so that no client can vanish in the middle of it, and every
// connection asks the server to give up peers, locks and transactions that are forgotten.
//
// # One statement per batch
//
// A batch of records is one autocommit statement: unnest the columns, join the predecessors, insert
// in the order of heads (two writers that meet wait for each other, never in a circle), update the
// heads whose scheduling changes, return what was stored. What is not returned is looked up by a
// second statement, which tells mine from stale from missing. A batch of one has a form without
// arrays. Everything is prepared, with plans that do not depend on how large the tables were when
// they were made.
//
// Signals that are posted at the same time are one statement, too, which passes by the works that another transaction has locked; to each
// of those its signal is posted alone, and waits.
//
// Deliveries that arrive while a batch is on its way are the next one: insert the digests in the
// order of their keys, see from what comes back which are new, which are copies and which are in
// conflict, insert those that are kept. Values are made fit for the database before; should it
// refuse one nevertheless, the batch is split until only that call fails.
//
// # The gate
//
// Judge locks unjudged deliveries and passes by those that another process has locked. Then it
// locks the entries of their objects, in the order of their names, so that two batches that meet
// wait and do not deadlock. An object of which nothing is known has no row to lock: its entry is
// inserted at the end, and when another batch was first, the transaction is rolled back and done
// again with the other's entry. No insert waits for a lock of the gate.
//
// # What errors mean
//
// The pools ask for READ COMMITTED whatever the database's default is; every statement is right at
// REPEATABLE READ and SERIALIZABLE, too. 40001 and 40P01 prove that nothing was stored: the call
// runs again from its beginning, with jitter, up to fifty times and for a few seconds. After 40003,
// or when the connection is gone, nothing is known: what only reads, and what leaves and answers
// the same when it is done twice, runs again up to six times. Claims, counters, deliveries, purges
// and what has a callback do not: their caller gets the error. Only a start in the caller's
// transaction keeps the caller's level; an error there that says so asks for the transaction to be
// repeated.
//
// # Who the database is
//
// Every connection that is opened asks for the system identifier and the timeline. When they are
// not what they were when a session was opened (fail-over, restore) nothing more is stored or read
// for the ledger through this handle until a new session is opened: the last moments may be
// forgotten. A process that has opened no session follows. A connection to a standby is refused.
//
// A fail-over ends no receiver: deliveries are accepted, judged and listed on whichever primary
// answers. What the old one had answered and not passed on is lost to us and not to the source,
// which is asked again.
//
// # Settings
//
// A connection sets what changes how values are read and written (array_nulls, bytea_output,
// standard_conforming_strings, DateStyle, IntervalStyle, TimeZone, client_encoding,
// extra_float_digits, quote_all_identifiers, transform_null_equals; lc_messages for a superuser),
// whatever the role, the database or the DSN says, and search_path to what the DSN says. Where the
// DSN does not say one, the role's or the database's counts: administrators say there where tables
// belong. It leads to no second ledger: where it names a schema without one, and this user has one in
// another schema, Open asks for a search_path in the DSN. default_transaction_read_only is reported
// and never overridden: providers fence a full disk with it.
//
// Before its first session on a database a handle writes records with every kind of value, reads them
// back and rolls them back. A database that changes them is refused.
//
// # Schema
//
// The database's encoding is UTF8: another one, or SQL_ASCII, is refused before anything is created.
// Tables are looked for in the first schema of the search_path and in no other. Open refuses an
// older or newer schema; Options.Migrate, or the command amends migrate, brings an older one up to
// date.
package postgres
