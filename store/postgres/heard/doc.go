// Package postgres keeps what was heard in a Postgres database (14 or newer), for any number of receivers and
// hearers: the inbox and the gate's entries, in the ledger's own database or in one of their own.
//
// # Lanes
//
// Two connections accept deliveries, a few serve the gate, a few serve people, so that none waits for another kind.
//
// # One statement per batch
//
// Accept gathers what arrives while a batch is on its way. A batch is one autocommit statement: unnest the columns,
// insert the digests in the order of their keys (two writers that meet wait for each other, never in a circle), see
// from what comes back which are new, which are copies and which are in conflict, insert those that are kept. A
// batch of one has a form without arrays. Values are made fit for the database before; should it refuse one
// nevertheless, the batch is split until only that call fails.
//
// # The gate
//
// Judge locks unjudged deliveries and passes by those that somebody else has locked. Then it locks the entries of
// their objects, in the order of their names, so that two batches that meet wait and do not deadlock. An object
// nobody has heard of has no row to lock: its entry is inserted at the end, and when another batch was first, the
// transaction is rolled back and done again with the other's entry. Whoever inserts waits for nobody who locks.
//
// # Who the database is
//
// A fail-over ends no receiver: deliveries are accepted by whichever primary answers. What the old one had answered
// and not passed on is lost to us and not to the source, which is asked again. A standby is refused.
package postgres
