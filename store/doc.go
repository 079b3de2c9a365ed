// Package store opens the database in which amends keeps everything: the ledger, what was heard,
// plans and jobs. Each database is one type with every role, sqlite.DB and postgres.DB, and
// memory.DB for tests. A process opens one handle and gives it to whatever needs a role of it:
//
//	db, err := store.Open(ctx, "postgres://shop@db/shop", nil)
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	works, err := coordinator.New(db, nil)
//	// ...
//	processor, err := inbox.New(db, sources, nil)
//
// Two handles on one database in one process work, and are a mistake: they take twice the
// connections, and on SQLite they wait for each other as two processes do.
//
// # What is kept, and for how long
//
// The inbox has six tables, beside the ledger's:
//
//   - amends_inbox: one row per event that was delivered, and its disposition;
//   - amends_payloads: the bodies of these events;
//   - amends_digests: what recognises a copy of them;
//   - amends_inbox_counts: how many of each source met which disposition;
//   - amends_objects: one row per object that they speak of;
//   - amends_withdrawals: one row per source of which something was withdrawn.
//
// What is blocked because it came before is in amends_blocked_days as well, by day, by what blocked
// it and by whose it was. Its rows stay for ever.
//
// Payloads may hold personal data and go after weeks, deliveries after months, digests after a year
// or more; objects stay. Each kind has a table of its own, so that retention is a plain delete in
// bounded batches: nothing is rewritten to erase a part of it, a digest outlives its delivery in 60
// bytes instead of an emptied row with all its indexes, and a copy that arrives rewrites those 60
// bytes and not the delivery. Headers are never stored.
//
// Nothing is purged that is still owed: an event that is not processed yet, or one of an object
// that is owed a fetch or a delivery.
//
// Plans, what was found for them, who approved them, the drift that lasts and what people decided
// about it have five more: amends_plans, amends_findings, amends_approvals, amends_drifts and
// amends_decisions. Of each job the newest 20 plans stay, and of each key the latest decision; drift
// stays for as long as run after run finds it. A finding names keys, and the fields that differ with
// both values: what is personal in them goes with the plan, or with the next decision on the key.
//
// Jobs and their runs have two: amends_jobs, in which the pause of everything is a row as well, and
// amends_runs. Runs go when the runner says so, long after their end; an instant that was run is
// not run again for that.
//
// Scans have two: amends_scans, how far each has come, and amends_observations, what the newest
// full listings of a source and a destination showed, field by field. An object or document that a
// complete listing did not show goes with the end of that listing.
//
// # When two deliveries are one
//
// The receiver gives every event a dedupe digest. Of two events with the same source and digest,
// the first is kept, and the second counts as its copy if it says the same: the same fingerprint,
// or the same body when there is none. Otherwise it is kept beside the first, with the disposition
// id-conflict, and its own copies are counted there. Uniqueness is the primary key of
// amends_digests, and not a look before an insert.
//
// # Many calls, one commit
//
// A delivery may be answered when it is on disk, and a disk syncs a few hundred to a few thousand
// times a second. So calls of Accept that arrive at the same time are gathered: a writer takes
// whatever is waiting and commits it as one; what arrives meanwhile is the next batch. No call
// waits for a timer. A caller leaves when its context ends; a batch that fails is split until only
// the call that is to blame fails.
//
// # Values
//
// What a text column cannot hold (NUL, invalid UTF-8) is replaced when it comes in, names too long
// for an index are cut and get a digest instead, times no calendar knows are left out. A verified
// delivery with such values is a delivery: refusing it would only make its sender repeat it.
package store
