// Package sqlite keeps what was heard in a SQLite file: the inbox and the gate's entries, in the ledger's own file
// or in one of their own.
//
// # Who may open it
//
// Any number of processes, beside a coordinator that has the ledger in the same file open: a receiver, a hearer,
// the command amends. Writers of other processes are waited for by the busy timeout, those of this process in
// order; see package internal/sqlitedb.
//
// # Durability and concurrency
//
// WAL with synchronous=FULL: what Accept answered survives a power cut. Accept and Update gather what arrives while
// a commit is on its way and write it as one transaction. When something in it fails, each call gets a transaction
// of its own, so that none fails for another. Judge and Lease are transactions of their own; for as long as one of
// them runs nobody else writes, so a batch of a few hundred is better than one of thousands.
//
// Accept returns when its context ends, whatever the database does: what was on its way then may have been stored,
// and the sender's next try is counted as a copy.
//
// # Time
//
// SQLite has no clock of its own, so the store's clock is the computer's, in microseconds.
package sqlite
