// Package ledger is the contract between the coordinator and the database: what is stored of a
// work, and what an append, a claim and a signal mean. It is for those who implement a ledger, and
// for tools that read one; applications use package coordinator. This comment is the design
// document; the contract itself is the comments on [Ledger] and its four parts, and package
// internal/storetest holds every sentence of it.
//
// A ledger is dumb. The machine decides; the ledger stores what was decided, on the
// condition that nothing came between. It never derives a status from an event.
//
// # The chain
//
// A work has a chain of records, numbered from 1. A record's hash covers its content and the hash
// of its predecessor, so a record names everything before it. The rule of appending is the only
// rule of concurrency:
//
//	A record with number n is stored if the record n-1 it was decided on is there, with that hash, and the
//	place n is free.
//
// From this one rule follows all that a coordinator needs:
//
//   - Two writers that decided on the same tail: one is stored, the other is [Stale] and decides
//     again.
//   - A process that slept through its lease: its tail has moved on, it is Stale.
//   - A commit whose answer was lost: the same record again is [Mine].
//   - A database that was restored to an earlier moment: the predecessor is [Missing].
//   - The history of a work, and the proof that it is whole: [Check].
//
// A start has no predecessor. It is stored with a new head if (saga, work) is not known.
//
// # The answers
//
// Append takes many works at once and answers each entry by itself. They are judged in this order;
// the first line that fits is the answer:
//
//	what the ledger sees                                        answer     what the writer does
//	a value that the database cannot hold, or that breaks       Invalid    the record is at fault: repair it, or park the work;
//	  a rule of the schema                                                 the other entries are stored
//	this hash, at this place                                    Mine       goes on, with the time and number in the answer
//	start: the work is known                                    Exists     loads it: the caller gets the prior result
//	an open transaction starts this work, or has locked it      Blocked    appends the same later: it may be rolled back
//	another record, at this place                               Stale      loads the chain and decides again
//	no record n-1 with this hash                                Missing    stops arming: the database went back
//	it arms something and session t is not live                 NoLease    appends the result without its arm
//	none of these                                               Appended   goes on
//
// Mine comes before everything that may have changed since: a record that was stored once is
// answered so for ever, also when its session has died and the chain has grown. NoLease comes last
// and means that nothing but the lease is missing: what was learned can be stored on the same tail.
// An answer other than Appended changed nothing.
//
// An error of Append means that nothing is known of any entry. The caller appends the very same
// entries until there is an answer, and decides nothing else meanwhile. So a ledger must not answer
// a batch with an error because of one bad value: it would be asked for ever. Split the batch, and
// answer the bad one [Invalid].
//
// A ledger requires a live session where something is set in motion, and only there. A result is
// stored on its tail whichever session brings it, also a dead one: what was learned is never
// dropped.
//
// # The head
//
// A [Instance] is one row per work by which it is found, scheduled and listed: a projection of the
// chain. It is rewritten only when that is needed: when the entry has a [Schedule], consumes a
// signal, carries a snapshot, or begins a revision. Then, evaluated against the row as it is at
// that moment:
//
//	status, reason   as in the record
//	updated          the record's time
//	consumed         plus the number of signals the record names
//	base             the record's number, when it carries a snapshot
//	revision         the record's, and version too, when it begins a revision
//
// and with a Schedule also:
//
//	the record's status    session    due                                  waits for    finished
//	live, Hold             writer     -                                    -            -
//	live                   -          the record's time plus its wait      -            -
//	parked                 -          -                                    -            -
//	terminal               -          -                                    -            the record's time, if it had not ended before
//
// with one exception that keeps signals from being lost: a work that no session holds after the
// record, ended or not, and that has signals which no record consumed, is due at once. That is why
// the count of posted signals is in the head: a post and a release meet in one row, and whichever
// comes second sees the other.
//
// So a live work is always held or due. If a head says otherwise, no coordinator will look at its
// work again.
//
// A released work may also wait for a destination: it is claimed only by a process that has room
// there. That no record says; a return does ([Return]), and whatever else releases the work, holds
// it, or brings it a signal takes it back. A head that was rebuilt from its chain waits for
// nothing: the process that claims it finds no room and gives it back.
//
// # Sessions
//
// A session is one running process, with a random [machine.Token] and a lease that ends by the
// database's clock. It is live while it is not marked dead and its lease ends in the future. Dead
// is for ever: a process that missed its renewal opens a new session. Claim marks expired sessions
// dead before anything else, and a dead session's works can be claimed from then on. Nothing is
// deleted by that: the late process still stores its results, if its tail is still the tail.
//
// A claim gives a work to one session. Two that claim at once must not wait for each other's works:
// a work that is being claimed is passed over. A process also learns through Claim of signals to
// the works it holds, until a record of its own consumes them. A claim whose answer was lost has
// given works to a process that does not know; it asks for everything it holds.
//
// # Signals
//
// Everyone but the holder posts. A signal is inserted once per (work, key) and never changes. It
// has a number that ascends, and records name it by that. Posting is not fenced: it needs no
// session and fails only when the work is not known. A work that has ended is woken like any other:
// news of its source may begin it again.
//
// # Controls
//
// What holds for every process at once is kept beside the instances: the state of a destination,
// who has which share of its limit, what is paused. The ledger understands none of it. Each control
// is one row, changed by comparing its version, and the versions of all are drawn from one counter
// whose lock is held until the change is stored: they become visible in their order. Every claim
// and renewal answers the newest, so a process learns within its poll that something changed, and
// reads all. A set by a session and the end of that session have an order: a process that has
// buried the session sees what it set, and it sets nothing more. What a person sets is an act, and
// is kept.
//
// # A database that went back
//
// A session remembers the identity of the database it was opened on. After a fail-over or a restore
// the identity is another one, and a chain whose latest record was written before may have lost
// what came behind it: Load marks it with [Chain].Changed. What follows from that the machine
// decides.
//
// # Time
//
// Every time in a ledger is the database's, in whole microseconds, and a caller's clock is never
// compared with it. Wait and budget are whole milliseconds; a finer one is Invalid, because it
// could not be read back with the hash it was stored under. Within one chain the times never go
// back, whatever the clock does.
//
// So a record's time and the clock are two things. The times of records put a chain in order and
// say until when an attempt may be sent; they may run ahead of a clock that was set back. Leases
// and what is due are judged by the clock alone, which [Lease] and [Chain] tell as At.
//
// A ledger of several nodes has as many clocks. How far apart they may be is [Limits].Skew, and the
// ledger is not to be trusted when they are further. What one node granted another judges: so a
// session is buried that much later than its lease ends by the clock of the node that looks, a
// process trusts its lease that much shorter, and asks that much more before it calls an attempt
// settled. A process whose margin is less than twice the skew cannot keep to that, and the
// coordinator refuses to open. One server has one clock, and pays nothing.
//
// # Writing a ledger
//
// Implement [Ledger]. Where the caller's own tables live in the same database, implement
// [TxStarter]. Read package memory first: it is the whole contract on a few maps. Then:
//
//   - Make the append rule one statement, or one transaction that locks the heads in the order of
//     their numbers. A check and a later write is not the rule.
//   - Give every text and body back byte by byte. A ledger that trims, folds or reformats breaks
//     the hashes.
//   - Map errors to the sentinels of this package, and keep the cause in the chain. An error that
//     matches none of them is one to try again.
//   - Compare the database's identity where it can change, and answer [ErrDatabaseChanged].
//
// A database that keeps a ledger is tested by package internal/storetest, which also proves that the
// test can fail:
//
//	func TestConformance(t *testing.T) {
//		t.Parallel()
//		storetest.Run(t, harness)
//	}
//
//	func TestConformanceCatches(t *testing.T) {
//		storetest.Prove(t, harness, "TestConformance")
//	}
package ledger
