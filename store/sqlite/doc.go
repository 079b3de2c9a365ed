// Package sqlite is a database in one file, with every role: the embedded default. It needs no
// server and no C compiler (modernc.org/sqlite).
//
//	db, err := sqlite.Open(ctx, "ledger.db", nil) // or store.Open, which takes any address
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	c, err := coordinator.New(db, nil)
//
// # Mistakes people make
//
//   - The file lies on a network file system: its locks do not hold there.
//   - The file is copied or replaced while a process runs: stop every process first, or use SQLite's backup.
//   - Two programs are to run sagas on one file: the second is told that it is locked. Use Postgres.
//
// # One coordinator, many readers
//
// A coordinator takes the lock of the file beside the database, "<path>.lock", with its first
// session and keeps it until Close or the end of the process, whatever ends it. Holding the lock
// proves that every earlier session is dead, so their works are claimed at once, without waiting
// for a lease. A second coordinator is told [ledger.ErrLocked]. Reading, posting signals, receiving
// and hearing need no lock: the command amends works beside a running coordinator, and so does a
// receiver.
//
// # One handle, one writer
//
// WAL with synchronous=FULL: what was answered survives a power cut. The log beside the file is
// copied into it every 4,000 pages (16 MB), and does not stay larger than 64 MB. All writes of a
// handle go through one connection, one after the other; reads have a few of their own. Each
// transaction begins IMMEDIATE and waits for other processes, and for other handles of the same
// one: SQLite's own lock decides who is next, and who waits asks again within a millisecond. Who
// was writing for 200 ms without a pause makes one of 2 ms, so that others have their turn; still,
// a process opens a file once.
//
// A batch of records is one transaction, row by row through prepared statements: one insert per
// record, which checks the predecessor, and one update of the instance's row where scheduling
// changes, with bound values; none of them opens a temporary table. A record that is refused is
// answered for itself; the others are stored.
//
// Accept, Update and the pages of a sweep gather what arrives while a commit is on its way and
// write it as one transaction. When something in it fails, each call gets a transaction of its own,
// so that none fails for another. Judge and Lease are transactions of their own; for as long as one
// of them runs nothing else is written, so a batch of a few hundred is better than one of
// thousands.
//
// Accept returns when its context ends, whatever the database does: what was on its way then may
// have been stored, and the sender's next try is counted as a copy.
//
// # Time
//
// SQLite has no clock of its own. The ledger's is read once from the computer's, when the file is
// opened, and counted on from there in microseconds: a step of the computer's clock is noticed by
// the next process only. Within a chain times never go back. A process beside the coordinator may
// have another idea of the time; what it posts is due by the coordinator's. While the machine is
// suspended that clock stands still on most systems: until the coordinator is started again, its
// records show times that are too early by so much, and the command amends takes its session for
// one whose lease is over.
//
// What was heard, plans and jobs live by the computer's clock as it is: jobs run at times of day.
package sqlite
