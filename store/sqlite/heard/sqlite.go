package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/internal/group"
	"github.com/amends-dev/amends/store/internal/people"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/shelf"
	"github.com/amends-dev/amends/store/internal/sqlitedb"
	"github.com/amends-dev/amends/store/internal/travels"
	"github.com/amends-dev/amends/store/internal/turns"
)

// Options tunes a store. The zero value is ready to use.
type Options struct {
	// BusyTimeout is how long a write waits for another process that is writing. Default: 5 s.
	BusyTimeout time.Duration

	// Readers is how many reads may run at the same time. Default: 4.
	Readers int

	// Batch is how many events share one commit at most. Default: 512.
	Batch int
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
	if out.Batch <= 0 {
		out.Batch = 512
	}
	return out
}

// Store keeps what was heard in a SQLite file. It implements [reconcile.Inbox], [reconcile.Gate] and
// [reconcile.Reader].
type Store struct {
	*desk
	*plans
	*sweeps
	*jobs
	statements

	path    string
	now     func() time.Time
	writer  *sqlitedb.Writer
	readers *sqlx.DB
	group   *group.Group[job]
}

// desk, plans, sweeps and jobs are the parts of the store that Postgres has as well.
type (
	desk   = people.Desk
	plans  = shelf.Shelf
	sweeps = travels.Travels
	jobs   = turns.Turns
)

var (
	_ reconcile.Inbox  = (*Store)(nil)
	_ reconcile.Gate   = (*Store)(nil)
	_ reconcile.Reader = (*Store)(nil)
)

// Open opens the file at path, which may be a ledger's. A file that does not exist is created, for its owner only;
// an older schema is migrated.
func Open(ctx context.Context, path string, o *Options) (*Store, error) {
	s, err := open(ctx, path, o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open the inbox in %s: %w", path, sqlitedb.Explain(err))
	}
	return s, nil
}

func open(ctx context.Context, path string, o Options) (_ *Store, err error) {
	if path, err = sqlitedb.File(path); err != nil {
		return nil, err
	}
	s := &Store{path: path, now: time.Now}
	if s.writer, err = sqlitedb.OpenWriter(ctx, path, o.BusyTimeout); err != nil {
		return nil, err
	}
	if err = s.writer.Prepare(ctx, s.all()); err == nil {
		s.readers, err = sqlitedb.Readers(path, o.BusyTimeout, o.Readers)
	}
	if err != nil {
		_ = s.writer.Close()
		return nil, err
	}
	s.desk = people.New(s.database())
	s.plans = shelf.New(s.shelf())
	s.sweeps = travels.New(s.travels())
	s.jobs = turns.New(s.turns())
	s.group = group.New(1, o.Batch, func(j job) int { return j.size }, s.commit)
	return s, nil
}

// database is what the desk needs to know about SQLite.
func (s *Store) database() people.Database {
	return people.Database{
		Read: s.readers,
		Write: func(ctx context.Context, fn func(context.Context, people.Queries) error) error {
			return s.transaction(ctx, func(ctx context.Context, c *sqlx.Conn) error { return fn(ctx, c) })
		},
		Numbers: `(SELECT value FROM json_each(?))`,
		Bind:    func(query string) string { return query },
		Now:     func(context.Context) (time.Time, error) { return s.now(), nil },
		Moment:  rows.Micros,
		Explain: func(_ context.Context, err error) error { return sqlitedb.Explain(err) },
	}
}

// Close waits for what is being written and closes the file.
func (s *Store) Close() error {
	s.group.Close()
	if err := errors.Join(s.readers.Close(), s.writer.Close()); err != nil {
		return fmt.Errorf("close the inbox in %s: %w", s.path, err)
	}
	return nil
}

// clock is now in microseconds since 1970, and as callbacks are told: what a database would give back.
func (s *Store) clock() (micros int64, now time.Time) {
	micros = s.now().UnixMicro()
	return micros, time.UnixMicro(micros).UTC()
}

// job is something to be written beside others in one transaction.
//
// Its statements cannot be cancelled one by one: the driver watches a context with a goroutine per statement, which
// costs more than the statement. The transaction as a whole is short.
type job struct {
	run  func(context.Context, *batch) error
	size int
}

// batch is one transaction of jobs.
type batch struct {
	conn   *sqlx.Conn
	number int64 // the last that was given to a delivery, 0 before the first of the batch
}

// commit runs jobs in one transaction. When one of them fails, each gets a transaction of its own, so that none
// fails for another.
func (s *Store) commit(calls []*group.Call[job]) {
	err := s.together(calls)
	for _, c := range calls {
		if err != nil && len(calls) > 1 {
			c.Answer(s.together([]*group.Call[job]{c}))
		} else {
			c.Answer(err)
		}
	}
}

func (s *Store) together(calls []*group.Call[job]) error {
	ctx := context.Background() // nobody's: several callers wait, each for as long as it likes
	return s.transaction(ctx, func(ctx context.Context, c *sqlx.Conn) error {
		b := batch{conn: c}
		for _, c := range calls {
			if err := c.Work.run(ctx, &b); err != nil {
				return err
			}
		}
		return nil
	})
}

// transaction runs fn in a transaction that begins as a writer. Once begun it is not cancelled.
func (s *Store) transaction(ctx context.Context, fn func(context.Context, *sqlx.Conn) error) error {
	begun := context.WithoutCancel(ctx)
	return sqlitedb.Explain(s.writer.Transaction(ctx, func(c *sqlx.Conn) error { return fn(begun, c) }))
}

// statements are prepared for the write path.
type statements struct {
	lastNumber, addDigest, countCopy, addDelivery, addBody *sql.Stmt
	unjudged, judge                                        *sql.Stmt
	entry, entries, addEntry, setEntry, due                *sql.Stmt
}

// all returns the statements by their text.
func (s *statements) all() map[string]**sql.Stmt {
	return map[string]**sql.Stmt{
		lastNumber: &s.lastNumber, addDigest: &s.addDigest, countCopy: &s.countCopy,
		addDelivery: &s.addDelivery, addBody: &s.addBody,
		unjudged: &s.unjudged, judge: &s.judge,
		entryOf: &s.entry, entriesOf: &s.entries, addEntry: &s.addEntry, setEntry: &s.setEntry, dueEntries: &s.due,
	}
}
