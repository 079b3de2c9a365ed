package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/amends-dev/amends/internal/address/file"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// writer is the one connection by which a process writes.
type writer struct {
	db   *sqlx.DB
	busy time.Duration // how long it waits for another process, or handle, that is writing

	mu          sync.Mutex // one statement, or transaction, at a time, and what follows
	conn        *sqlx.Conn
	stmts       []*sql.Stmt
	began, last time.Time // since when, and until when, others had no chance to write

	queue struct {
		sync.Mutex
		jobs []*job
	}
}

// job is what one caller writes, in a transaction that it may share with others.
type job struct {
	ctx  context.Context //nolint:containedctx // the caller's
	fn   func(context.Context, sqlstore.Queries) error
	err  error
	done bool // guarded by the writer's lock
}

// openWriter opens the file, makes sure that it can be trusted with a ledger, and migrates it.
func openWriter(ctx context.Context, path string, mode file.Mode, busy time.Duration) (_ *writer, err error) {
	how := "&_txlock=immediate"
	if mode == file.ReadOnly {
		how = "&mode=ro"
	}
	db, err := connect(path, busy, how, 1)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	if err := trustworthy(ctx, db); err != nil {
		return nil, err
	}
	if err := migrate(ctx, db.DB, mode); err != nil {
		return nil, err
	}
	conn, err := db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	for _, pragma := range pragmas {
		if _, err := conn.ExecContext(ctx, pragma); err != nil {
			return nil, err
		}
	}
	return &writer{db: db, busy: busy, conn: conn}, nil
}

// pragmas are the writer's. It does not wait in SQLite for another one that writes, see
// [writer.await]. With FULL a commit is on the disk when it is answered. The log is copied into the
// file every 4,000 pages (16 MB) instead of 1,000: at one commit for each record that is a quarter
// of the copying, and what a crash leaves is read back in a moment. A log that grew beyond 64 MB,
// because a reader stood still, is cut back to that. What a part of a transaction has changed is kept
// in memory, to be undone, and not in a file.
var pragmas = []string{
	`PRAGMA synchronous = FULL`, `PRAGMA cache_size = -65536`, `PRAGMA wal_autocheckpoint = 4000`, `PRAGMA journal_size_limit = 67108864`,
	`PRAGMA busy_timeout = 0`, `PRAGMA temp_store = MEMORY`,
}

// migrate brings an older file up to this program's schema and refuses a newer one.
func migrate(ctx context.Context, db *sql.DB, mode file.Mode) error {
	latest := migrations.Latest(migrations.SQLite)
	version, err := migrations.Version(ctx, db, migrations.SQLite)
	switch {
	case err != nil:
		return err
	case version > latest:
		return fmt.Errorf("%w: the file has version %d, this program knows %d. Use a newer program; this one cannot read the file safely",
			ledger.ErrSchema, version, latest)
	case version < latest && mode == file.ReadOnly:
		return fmt.Errorf("%w: the file has version %d, this program needs %d, and mode=ro keeps it from being migrated",
			ledger.ErrSchema, version, latest)
	case version < latest:
		_, err = migrations.Up(ctx, db, migrations.SQLite)
	}
	return err
}

// prepare prepares statements by their text. They live as long as the writer, and are run within a
// function given to plain or transaction.
func (w *writer) prepare(ctx context.Context, statements map[string]**sql.Stmt) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for text, stmt := range statements {
		err := w.await(ctx, func() (err error) {
			*stmt, err = w.conn.PrepareContext(ctx, text) //nolint:sqlclosecheck // close closes them
			return err
		})
		if err != nil {
			return fmt.Errorf("prepare %s: %w", text, err)
		}
		w.stmts = append(w.stmts, *stmt)
	}
	return nil
}

// mostJobs is how many callers share one transaction.
const mostJobs = 64

// share runs fn in a transaction, with whatever other callers wait to write: who gets the connection writes for all. What fn wrote is on
// the disk when share returns without an error, and not there when fn returned one. Once begun fn is not cancelled: SQLite would undo
// what others wrote.
func (w *writer) share(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	j := &job{ctx: ctx, fn: fn}
	w.queue.Lock()
	w.queue.jobs = append(w.queue.jobs, j)
	w.queue.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !j.done {
		w.write(w.next())
	}
	return j.err
}

// next takes the jobs that are queued and whose callers still wait.
func (w *writer) next() (jobs []*job) {
	w.queue.Lock()
	defer w.queue.Unlock()
	n := min(len(w.queue.jobs), mostJobs)
	for _, j := range w.queue.jobs[:n] {
		if j.err = w.ready(j.ctx); j.err != nil {
			j.done = true
			continue
		}
		jobs = append(jobs, j)
	}
	w.queue.jobs = slices.Delete(w.queue.jobs, 0, n)
	return jobs
}

// write does jobs in one transaction, of which each is there or not.
func (w *writer) write(jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	ctx := context.WithoutCancel(jobs[0].ctx)
	for _, j := range jobs {
		j.done, j.err = true, errBeside
	}
	err := w.within(ctx, func(q sqlstore.Queries) error {
		if len(jobs) == 1 {
			jobs[0].err = jobs[0].fn(ctx, q)
			return jobs[0].err
		}
		for _, j := range jobs {
			if err := w.part(j); err != nil {
				return err
			}
		}
		return nil
	})
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
	}
}

// errBeside is why nothing is stored of what others wrote beside one that panicked.
var errBeside = errors.New("what was written in the same transaction panicked")

// part does one job of a transaction. An error is the transaction's: SQLite has undone all of it.
func (w *writer) part(j *job) error {
	ctx := context.WithoutCancel(j.ctx)
	if _, err := w.conn.ExecContext(ctx, `SAVEPOINT part`); err != nil {
		return err
	}
	if j.err = j.fn(ctx, w.conn); j.err != nil {
		if _, err := w.conn.ExecContext(ctx, `ROLLBACK TO part`); err != nil {
			return errors.Join(j.err, err)
		}
	}
	_, err := w.conn.ExecContext(ctx, `RELEASE part`)
	return err
}

// plain runs fn outside of a transaction.
func (w *writer) plain(ctx context.Context, fn func(sqlstore.Queries) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(ctx); err != nil {
		return err
	}
	defer w.wrote()
	return w.await(ctx, func() error { return fn(w.conn) })
}

// What a writer leaves to others. SQLite keeps no line, and wakes none: one that waits looks again
// and again, and a handle that commits one transaction behind the other is between two of them for
// some microseconds. Looking every 100 ms, as SQLite does, the others would wait for seconds. So
// they look more often than a gap is long, and who was writing for a while leaves one.
const (
	gap    = 2 * time.Millisecond
	turn   = 200 * time.Millisecond // a gap costs one percent of it
	glance = time.Millisecond
)

// await does what may begin to write, and does it again while another one is writing. It gives
// others their chance before.
func (w *writer) await(ctx context.Context, do func() error) error {
	if now := time.Now(); now.Sub(w.last) >= gap {
		w.began = now
	} else if now.Sub(w.began) >= turn {
		_ = nap.For(ctx, gap)
		w.began = time.Now()
	}
	for from := time.Now(); ; {
		err := do()
		if code(err) != sqlite3.SQLITE_BUSY || time.Since(from) >= w.busy {
			return err
		}
		_ = nap.For(ctx, rand.N(glance)) // by chance, so that none keeps step with the one who writes
	}
}

// wrote notes that others had no chance until now.
func (w *writer) wrote() { w.last = time.Now() }

// transaction runs fn in a transaction that begins as a writer, so that it never fails half-way
// because another process wrote in between.
func (w *writer) transaction(ctx context.Context, fn func(sqlstore.Queries) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(ctx); err != nil {
		return err
	}
	return w.within(ctx, fn)
}

// within is transaction for who has the connection.
func (w *writer) within(ctx context.Context, fn func(sqlstore.Queries) error) (err error) {
	defer w.wrote()
	ending, committed := context.WithoutCancel(ctx), false
	begin := func() error { _, err := w.conn.ExecContext(ctx, `BEGIN IMMEDIATE`); return err }
	if err := w.await(ctx, begin); err != nil {
		// A context that ends meanwhile is an error although the transaction has begun. It fails
		// when there is none.
		_, _ = w.conn.ExecContext(ending, `ROLLBACK`)
		return err
	}
	defer func() {
		if !committed { // fn may have panicked, and the next transaction begins on this connection
			_, rerr := w.conn.ExecContext(ending, `ROLLBACK`)
			err = errors.Join(err, rerr)
		}
	}()
	if err := fn(w.conn); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(ending, `COMMIT`); err != nil {
		return err
	}
	committed = true
	return nil
}

func (w *writer) ready(ctx context.Context) error {
	if w.conn == nil {
		return errors.New("the file is closed")
	}
	return ctx.Err()
}

// close closes the file. It waits for what is being written, and may be called again.
func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return nil
	}
	// An open statement keeps SQLite's connection alive behind close. Then SQLite makes no
	// checkpoint, the log stays beside the file, and a copy of the file alone is an empty ledger.
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	errs = append(errs, w.conn.Close(), w.db.Close())
	w.conn, w.stmts = nil, nil
	return errors.Join(errs...)
}
