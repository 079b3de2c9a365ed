// Package cost measures what a durable engine spends: commits, bytes of log,
// processor time and memory. It reads the kernel and the database and needs no
// help from the engine, so every engine is measured the same way.
//
// # Postgres
//
// Commits are transaction ids handed out: every transaction that writes takes
// one, and a read takes none. Log bytes are the advance of the insert position
// of the write-ahead log. Both belong to the whole cluster, so it must serve
// nothing else. Processor time is that of the postmaster, its living children
// and those it has reaped.
//
// # SQLite
//
// Commits come from the change counter in the header of the shared-memory file
// beside the database, which every write transaction advances by one. Log bytes are
// all bytes this process handed to write calls: the frames of the write-ahead
// log and the pages a checkpoint copies back into the database. SQLite runs
// inside the engine's process and so has no processor time of its own.
//
// # The process
//
// Processor time comes from getrusage and peak memory from /proc. Each
// measurement runs in a process of its own, so that neither the memory nor the
// garbage of one engine is counted for the next.
package cost
