// Package sqlite is a ledger in one file: the embedded default. It needs no server and no C compiler
// (modernc.org/sqlite).
//
// # One coordinator, many readers
//
// A coordinator takes the lock of the file beside the ledger, "<path>.lock", with its first session and keeps it
// until Close or the end of the process, whatever ends it. Holding the lock proves that every earlier session is
// dead, so their works are claimed at once, without waiting for a lease. A second coordinator is told
// [ledger.ErrLocked]. Whoever reads or posts signals needs no lock; the command amends works beside a running
// coordinator.
//
// # Durability and concurrency
//
// WAL with synchronous=FULL: what was answered survives a power cut. All writes of a process go through one
// connection, each transaction begins IMMEDIATE and waits for other processes by busy_timeout. A batch of
// records is one transaction, row by row through prepared statements: one insert per record, which checks the
// predecessor, and one update of the head where scheduling changes. A row that a constraint refuses is answered
// for itself; the others are stored.
//
// # Time
//
// SQLite has no clock of its own. The ledger's is read once from the computer's, when it is opened, and counted on from
// there in microseconds: a step of the computer's clock is noticed by the next process only. Within a chain times never go
// back. A process beside the coordinator may have another idea of the time; what it posts is due by the coordinator's.
// While the machine is suspended that clock stands still on most systems: until the coordinator is started again, its
// records show times that are too early by so much, and the command amends takes its session for one whose lease is over.
package sqlite
