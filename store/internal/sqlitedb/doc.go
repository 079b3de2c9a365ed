// Package sqlitedb opens the file in which amends keeps its tables on SQLite, for each part that has tables there:
// the ledger, and what was heard. They trust the same files, wait for each other in one place, and give the
// driver's errors the same meaning.
//
// A process writes by one connection for each part. Between processes SQLite's own lock decides who is next, and
// who waits sleeps and asks again. Within a process the writers of one file queue on a mutex instead: a receiver
// beside a busy coordinator then waits for one transaction and not for a lucky moment.
package sqlitedb
