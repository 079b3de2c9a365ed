// Package pgtest gives tests and development programs a PostgreSQL.
//
// # Where it comes from
//
//  1. A server named by the environment: AMENDS_TEST_POSTGRES=postgres://user@host/db.
//     The user must be allowed to create databases.
//  2. Binaries installed on this machine: pg_ctl on the PATH, else the newest
//     version in the usual places (/usr/lib/postgresql/*/bin and the like). They
//     run a private cluster in a temporary folder that listens on a socket in
//     that folder and nowhere else. When we are root, it runs as the user
//     postgres, or else as the system's unprivileged user, because PostgreSQL
//     refuses root.
//  3. Otherwise there is none. A test that asks for one is skipped and says so;
//     where CI is set it fails instead, because there nothing may be skipped.
//
// # What a test gets
//
// [URL] returns a new, empty database and drops it when the test ends. A database
// and not a schema: advisory locks, notifications and statistics belong to a
// database, so that tests which share a server share nothing else. There is no way
// to get at a database that another test uses. It costs 150 to 200 ms of processor
// time, which is more than most tests do with it: a [Template] gives a copy that was
// emptied again to the next test, after a look at everything that a test can leave,
// and drops one in which anything but rows was changed.
//
// [Own] returns a whole server, for tests that take it down. [Start] is the same
// for programs.
//
// # Nothing is left behind
//
// A private cluster is started by a guard, a small shell process in a session of
// its own. It waits on a pipe whose other end only we hold. When the pipe closes,
// the guard stops the server and removes the folder. [Cluster.Stop] closes the
// pipe; so does the kernel when our process ends, kill -9 included. There is one
// way to stop, so that the way a crash takes is the way every run takes.
//
// The first test of a process starts its cluster and the end of the process
// stops it; no TestMain is needed. `make test` starts one for all packages through
// the command withpostgres, which sets AMENDS_TEST_POSTGRES for them.
//
// fsync is off: nothing here ends the machine, and a server that is taken down finds
// what it had committed in the kernel's memory. synchronous_commit is on.
package pgtest
