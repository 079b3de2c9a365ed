package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/engine"
	"github.com/amends-dev/amends/store/internal/sqlitedb"
)

// Options tunes a ledger. The zero value is ready to use.
type Options struct {
	// BusyTimeout is how long a write waits for another process that is writing. Default: 5 s.
	BusyTimeout time.Duration

	// Readers is how many reads may run at the same time. Default: 4.
	Readers int
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.BusyTimeout <= 0 {
		out.BusyTimeout = 5 * time.Second
	}
	if out.Readers <= 0 {
		out.Readers = 4
	}
	return out
}

// store is the part of the ledger that Postgres has as well.
type store = engine.Store

// Ledger is a ledger in a SQLite file. It implements [ledger.Ledger], [ledger.Reader] and
// [ledger.TxStarter].
type Ledger struct {
	*store

	path    string
	now     func() time.Time
	writer  *writer
	readers *sqlx.DB

	mu    sync.Mutex // guards owner
	owner *flock.Flock
}

var (
	_ ledger.Ledger    = (*Ledger)(nil)
	_ ledger.Reader    = (*Ledger)(nil)
	_ ledger.TxStarter = (*Ledger)(nil)
)

// Open opens the ledger in the file at path. A file that does not exist is created, for its owner only; an older
// schema is migrated.
func Open(ctx context.Context, path string, o *Options) (*Ledger, error) {
	l, err := open(ctx, path, o.withDefaults(), time.Now)
	if err != nil {
		return nil, fmt.Errorf("open the ledger %s: %w", path, err)
	}
	return l, nil
}

func open(ctx context.Context, path string, o Options, timeOfDay func() time.Time) (*Ledger, error) {
	path, err := sqlitedb.File(path)
	if err != nil {
		return nil, err
	}
	w, err := openWriter(ctx, path, o.BusyTimeout)
	if err != nil {
		return nil, explain(err)
	}
	l := &Ledger{path: path, now: anchored(timeOfDay), writer: w}
	l.readers, err = sqlitedb.Readers(path, o.BusyTimeout, o.Readers)
	if err != nil {
		_ = w.Close()
		return nil, explain(err)
	}
	l.store = engine.New(l.database())
	return l, nil
}

// database is what the engine needs to know about SQLite.
func (l *Ledger) database() *engine.Database {
	return &engine.Database{
		Words:      words,
		Clock:      func() any { return l.clock() },
		Read:       l.read,
		Plain:      l.writer.plain,
		Pulse:      l.writer.plain,
		Identity:   identity,
		Schema:     migrations.Latest(migrations.SQLite),
		Claim:      l.claim,
		GiveBack:   l.giveBack,
		Post:       l.post,
		SetControl: l.setControl,
		Explain:    func(_ context.Context, err error) error { return explain(err) },
	}
}

// anchored reads the time of day once and counts on from there: what happens to the computer's clock while the ledger
// is open neither ends a lease nor makes anything due.
func anchored(timeOfDay func() time.Time) func() time.Time {
	opened := timeOfDay()
	return func() time.Time { return opened.Add(time.Since(opened)) }
}

// clock is now in microseconds since 1970.
func (l *Ledger) clock() int64 { return l.now().UnixMicro() }

// read runs fn on a consistent view of the file.
func (l *Ledger) read(ctx context.Context, fn func(engine.Queries) error) error {
	tx, err := l.readers.BeginTxx(ctx, nil) // deferred: the view begins with the first statement
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return fn(tx)
}

// OpenSession begins a lease. The first session of a ledger takes the file lock and buries every session before
// it, so that their works can be claimed at once. [ledger.ErrLocked] says that another process has the lock.
func (l *Ledger) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner != nil {
		return l.store.OpenSession(ctx, ttl, label, knows)
	}
	lock := flock.New(l.path+".lock", flock.SetPermissions(fs.FileMode(0o600)))
	ok, err := lock.TryLock()
	if err != nil {
		return ledger.Lease{}, fmt.Errorf("open session: take the lock %s: %w", lock.Path(), err)
	}
	if !ok {
		return ledger.Lease{}, fmt.Errorf("open session: %w: %s is locked by a running process. "+
			"Stop that process, or give this one a ledger of its own; several coordinators on one ledger need Postgres",
			ledger.ErrLocked, lock.Path())
	}
	lease, err := l.store.OpenSession(ctx, ttl, label, knows)
	if err == nil {
		err = engine.BuryOthers(ctx, l.store, lease.Token)
	}
	if err != nil {
		_ = lock.Close()
		return ledger.Lease{}, err
	}
	l.owner, lease.Alone, lease.Live = lock, true, []saga.Token{lease.Token}
	return lease, nil
}

// Append stores records and answers each at its own index.
func (l *Ledger) Append(ctx context.Context, t saga.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	answers, err := l.append(ctx, t, entries)
	if err != nil {
		return nil, fmt.Errorf("append %d records: %w", len(entries), explain(err))
	}
	return answers, nil
}

// Close closes the file and gives the lock back. It does not bury sessions.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := errors.Join(l.readers.Close(), l.writer.Close())
	if l.owner != nil {
		err = errors.Join(err, l.owner.Close())
		l.owner = nil
	}
	if err != nil {
		return fmt.Errorf("close the ledger %s: %w", l.path, err)
	}
	return nil
}
