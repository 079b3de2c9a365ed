package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/jmoiron/sqlx"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/amends-dev/amends/internal/address/file"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/internal/batch"
	"github.com/amends-dev/amends/store/internal/sqlstore"
	"github.com/amends-dev/amends/store/internal/witness"
)

// Options tunes a database. The zero value is ready to use.
type Options struct {
	// BusyTimeout is how long a write waits for another process that is writing. Default: 5 s.
	BusyTimeout time.Duration

	// Readers is how many reads may run at the same time. Default: 4.
	Readers int

	// Witness keeps outside the file how far the ledger was seen to have come; see package store, which says the
	// default. A file in [os.TempDir] has none then.
	Witness ledger.Witness

	// Keys seal bodies; see package store.
	Keys ledger.Keys
}

func (o *Options) withDefaults() Options {
	out := *cmp.Or(o, new(Options))
	out.BusyTimeout = cmp.Or(max(out.BusyTimeout, 0), 5*time.Second)
	out.Readers = cmp.Or(max(out.Readers, 0), 4)
	return out
}

// DB is a database in a SQLite file, with every role: the ledger, and what a reconciler keeps.
type DB struct {
	*store

	path    string
	mode    file.Mode
	now     func() time.Time // the ledger's clock, see [anchored]
	today   func() time.Time // the clock by which a reconciler lives
	writer  *writer
	readers *sqlx.DB
	changes *batch.Group[change]
	witness *witness.Keeper
	statements
	heard heard

	mu    sync.Mutex // guards owner
	owner *flock.Flock
}

// store is the part of the database that Postgres has as well.
type store = sqlstore.Store

var (
	_ ledger.Ledger    = (*DB)(nil)
	_ ledger.TxStarter = (*DB)(nil)
	_ ledger.Recoverer = (*DB)(nil)
	_ intake.Inbox     = (*DB)(nil)
	_ intake.Gate      = (*DB)(nil)
	_ intake.Reader    = (*DB)(nil)
	_ plan.Plans       = (*DB)(nil)
	_ plan.Drifts      = (*DB)(nil)
	_ scan.Store       = (*DB)(nil)
	_ schedule.Store   = (*DB)(nil)
	_ schedule.Reader  = (*DB)(nil)
)

// Open opens the database in the file at path. A file that does not exist is created, for its owner
// only; an older schema is migrated.
//
// An absolute path is taken as it is. Another one may be an address: file:PATH or sqlite:PATH, with
// a % and two hexadecimal digits for a byte and, behind a ?, mode=rw for a file that must exist, or
// mode=ro for one to which nothing is written: what would write fails with [ledger.ErrReadOnly], and
// only SQLite's own files may be left beside it.
// Other parameters are refused, and so is a name that may be another kind of address.
func Open(ctx context.Context, path string, o *Options) (*DB, error) {
	a, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	db, err := open(ctx, a, o.withDefaults(), time.Now)
	if err != nil {
		return nil, fmt.Errorf("open the database in %s: %w", a, explain(err))
	}
	return db, nil
}

func open(ctx context.Context, a file.Address, o Options, timeOfDay func() time.Time) (_ *DB, err error) {
	path, err := locate(a.File, a.Mode)
	if err != nil {
		return nil, err
	}
	db := &DB{path: path, mode: a.Mode, now: anchored(timeOfDay), today: time.Now, witness: witness.Over(o.Witness, path)}
	if db.writer, err = openWriter(ctx, path, a.Mode, o.BusyTimeout); err != nil {
		return nil, err
	}
	var m sqlstore.Meta
	err = db.writer.plain(ctx, func(q sqlstore.Queries) (err error) {
		m, err = sqlstore.ReadMeta(ctx, q)
		if err == nil && m.Buckets != 1 {
			err = fmt.Errorf("%w: it spreads works over %d buckets, a file over one", ledger.ErrSchema, m.Buckets)
		}
		if err == nil && a.Mode != file.ReadOnly {
			err = sqlstore.SealFrom(ctx, q, &m, o.Keys)
		}
		return err
	})
	if err == nil {
		err = db.writer.prepare(ctx, db.all())
	}
	if err == nil {
		err = db.writer.prepare(ctx, db.heard.all())
	}
	if err == nil {
		db.readers, err = openReaders(path, a.Mode, o.BusyTimeout, o.Readers)
	}
	if err != nil {
		_ = db.writer.close()
		return nil, err
	}
	db.store = sqlstore.New(db.dialect(&m, o.Keys), m.Sealed)
	db.changes = batch.New(1, most, func(c change) int { return c.size }, db.commit)
	return db, nil
}

// log is how many bytes the log beside the file has.
func (db *DB) log() int64 {
	i, err := os.Stat(db.path + "-wal")
	if err != nil {
		return 0 // it is there while a process writes
	}
	return i.Size()
}

// most is how many events share one commit.
const most = 512

// anchored reads the time of day once and counts on from there: what happens to the computer's
// clock while the database is open neither ends a lease nor makes a work due.
func anchored(timeOfDay func() time.Time) func() time.Time {
	opened := timeOfDay()
	return func() time.Time { return opened.Add(time.Since(opened)) }
}

// clock is the ledger's now, in microseconds since 1970.
func (db *DB) clock() int64 { return db.now().UnixMicro() }

// calendar is the time of day, by which a reconciler lives: in microseconds, and as callbacks are
// told, what a database would give back.
func (db *DB) calendar() (micros int64, now time.Time) {
	micros = db.today().UnixMicro()
	return micros, time.UnixMicro(micros).UTC()
}

// view runs fn on a consistent view of the file.
func (db *DB) view(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	tx, err := db.readers.BeginTxx(ctx, nil) // deferred: the view begins with the first statement
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return fn(ctx, tx)
}

// transaction runs fn in a transaction that begins as a writer. Once begun it is not cancelled.
func (db *DB) transaction(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	begun := context.WithoutCancel(ctx)
	return db.writer.transaction(ctx, func(q sqlstore.Queries) error { return fn(begun, db.gated(q)) })
}

// OpenSession begins a lease. The first session of a ledger takes the file lock and buries every
// session before it, so that their works can be claimed at once. [ledger.ErrLocked] says that
// another process has the lock.
func (db *DB) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mode == file.ReadOnly { // before there is a file for the lock
		return ledger.Lease{}, fmt.Errorf("open session: %w: the file was opened with mode=ro", ledger.ErrReadOnly)
	}
	if db.owner != nil {
		return db.store.OpenSession(ctx, ttl, label, knows)
	}
	lock, err := db.lock()
	if err != nil {
		return ledger.Lease{}, fmt.Errorf("open session: %w", err)
	}
	lease, err := db.store.OpenSession(ctx, ttl, label, knows)
	if err == nil {
		err = errors.Join(sqlstore.BuryOthers(ctx, db.store, lease.Token), sqlstore.Free(ctx, db.store, lease.Token, true))
	}
	if err != nil {
		_ = lock.Close()
		return ledger.Lease{}, err
	}
	db.owner, lease.Alone, lease.Lock, lease.Live = lock, true, lock.Path(), []machine.Token{lease.Token}
	return lease, nil
}

// lock takes the lock of the one process that runs sagas.
func (db *DB) lock() (*flock.Flock, error) {
	lock := flock.New(db.path+".lock", flock.SetPermissions(fs.FileMode(0o600)))
	ok, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("take the lock %s: %w", lock.Path(), err)
	case !ok:
		return nil, fmt.Errorf("%w: %s is locked by a running process. "+
			"Stop that process, or give this one a ledger of its own; several coordinators on one ledger need Postgres",
			ledger.ErrLocked, lock.Path())
	}
	return lock, nil
}

// Recover stores what a person says of a file that may have been put back.
func (db *DB) Recover(ctx context.Context, r ledger.Recovery) (ledger.Recovered, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mode == file.ReadOnly {
		return ledger.Recovered{}, fmt.Errorf("recover the ledger: %w: the file was opened with mode=ro", ledger.ErrReadOnly)
	}
	if db.owner != nil {
		return ledger.Recovered{}, fmt.Errorf("recover the ledger: %w: this process runs it", ledger.ErrLocked)
	}
	lock, err := db.lock()
	if err != nil {
		return ledger.Recovered{}, fmt.Errorf("recover the ledger: %w", err)
	}
	defer func() { _ = lock.Close() }() // it is given back at the end of the process, too
	return sqlstore.Recover(ctx, db.store, r, true)
}

// Limits says what the file can bear. It has one clock, and no fail-over.
func (db *DB) Limits() ledger.Limits { return ledger.Limits{Record: sqlite3.SQLITE_MAX_LENGTH} }

// Close waits for what is being written, closes the file and gives the lock back. It does not bury
// sessions.
func (db *DB) Close() error {
	db.changes.Close()
	sqlstore.Settle(db.store)
	db.witness.Close()
	db.mu.Lock()
	defer db.mu.Unlock()
	err := errors.Join(db.readers.Close(), db.writer.close())
	if db.owner != nil {
		err = errors.Join(err, db.owner.Close())
		db.owner = nil
	}
	if err != nil {
		return fmt.Errorf("close the database in %s: %w", db.path, err)
	}
	return nil
}
