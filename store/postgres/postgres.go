package postgres

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/internal/batch"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/sqlstore"
	"github.com/amends-dev/amends/store/internal/witness"
)

// Options tunes a database. The zero value is ready to use.
//
// A database takes Writers + Workers + 2 × Readers + 3 connections at most, 11 by default, one more with a single Reader, and one more
// for the moment in which a session is opened. It opens them as it needs them, and gives back what
// it has not used for a minute.
type Options struct {
	// Migrate brings an older schema up to date when the database is opened. Without it an older
	// schema is refused.
	Migrate bool

	// Writers is how many batches of records may be on their way at the same time. Default: 2.
	Writers int

	// Workers is how many other writes may be on their way: signals, works given back, the gate,
	// plans, jobs. Default: 2.
	Workers int

	// Readers is how many loads and lists may run at the same time. Lists leave one to the loads.
	// Default: 2.
	Readers int

	// ConnectTimeout is for one attempt to connect, and how long a server may say nothing while it
	// works on nothing. A connect_timeout in the DSN wins over it. Default: 5 s, and 10 s of silence.
	ConnectTimeout time.Duration

	// LockDir is where each process with a session keeps a file locked while it lives. One that is
	// opened on the same host later finds by it which processes have ended, so that what a killed one
	// had in hand, or of the inbox, goes on at once and not when its lease is over. It must be the same directory after a
	// restart: one of the host or the pod, not of a container, nor the /tmp of a unit with PrivateTmp. Where
	// it cannot be used, or is not known to be the host's own (a network file system), only the lease
	// counts; the coordinator's log says why. Default: amends-UID in [os.TempDir].
	LockDir string

	// Witness keeps outside the database how far the ledger was seen to have come; see package store, which says the
	// default.
	Witness ledger.Witness

	// Keys seal bodies; see package store.
	Keys ledger.Keys

	level   string                                  // at which transactions are isolated: in tests any, whatever the database's default
	between func(driver.Connector) driver.Connector // in tests: what stands between the driver and us
}

func (o *Options) withDefaults() Options {
	out := *cmp.Or(o, new(Options))
	for _, n := range []*int{&out.Writers, &out.Workers, &out.Readers} {
		*n = cmp.Or(max(*n, 0), 2)
	}
	if out.LockDir == "" {
		out.LockDir = filepath.Join(os.TempDir(), fmt.Sprintf("amends-%d", os.Getuid()))
	}
	out.level = cmp.Or(out.level, "read committed")
	return out
}

// store is the part of the database that SQLite has as well.
type store = sqlstore.Store

// DB is a Postgres database, with every role: the ledger, and what a reconciler keeps.
type DB struct {
	*store

	server *pgdb.Server
	schema string // where the tables are
	lanes
	writing
	waits    waiting
	refs     refs
	meta     sqlstore.Meta
	incoming *batch.Group[deliveries]
	posts    *batch.Group[*posting]
	now      func() any             // nil but in tests: the server's clock
	most     int                    // statementBytes but in tests
	shard    int64                  // of the inbox's counts
	tried    atomic.Pointer[string] // the identity of the database on which the trial went well
	quiet    atomic.Bool            // a hint, the last claim found nothing: restText is asked first
	hearing  *hearing
	alive    alive
	witness  *witness.Keeper
}

var (
	_ ledger.Ledger    = (*DB)(nil)
	_ ledger.TxStarter = (*DB)(nil)
	_ ledger.Stirrer   = (*DB)(nil)
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

// Open connects to the database that dsn names (a URL or key=value pairs, as lib/pq takes them) and
// makes sure that it can be trusted with a ledger.
func Open(ctx context.Context, dsn string, o *Options) (*DB, error) {
	db, err := open(ctx, dsn, o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open the database on Postgres: %w", explain(ctx, err))
	}
	return db, nil
}

func open(ctx context.Context, dsn string, o Options) (_ *DB, err error) {
	s, err := pgdb.New(dsn, o.ConnectTimeout)
	if err != nil {
		return nil, err
	}
	if o.between != nil {
		s.Between(o.between)
	}
	db := &DB{alive: alive{dir: o.LockDir}, witness: witness.Over(o.Witness, ""), server: s, now: func() any { return nil }, most: statementBytes}
	db.lanes = newLanes(s, o, &db.writing)
	defer func() {
		if err != nil {
			_ = db.close()
		}
	}()
	err = pgdb.Repeat(ctx, true, func(ctx context.Context) (err error) {
		if db.schema, err = pgdb.Fit(ctx, s, db.read, o.Migrate); err == nil {
			if db.meta, err = sqlstore.ReadMeta(ctx, db.read); err == nil {
				err = sqlstore.SealFrom(ctx, db.read, &db.meta, o.Keys)
			}
			err = pgdb.During("say how the ledger is kept", err)
		}
		if err == nil {
			err = s.Direct(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	db.shard = rand.Int64N(sqlstore.Shards)
	db.hearing = newHearing(dsn, db.schema, rand.Int64())
	db.store = sqlstore.New(db.dialect(o.Keys), db.meta.Sealed)
	db.incoming = batch.New(1, mostEvents, func(d deliveries) int { return len(d) }, db.write)
	db.posts = batch.New(postWriters, mostPosted, (*posting).size, db.postTogether)
	return db, nil
}

// Version returns the version of the schema in the database that dsn names, 0 when there is none. It
// only reads.
func Version(ctx context.Context, dsn string) (int64, error) {
	s, err := pgdb.New(dsn, 0)
	if err != nil {
		return 0, err
	}
	db := s.Pool(1)
	defer func() { _ = db.Close() }() // only read
	version, err := migrations.Version(ctx, db.DB, migrations.Postgres)
	return version, explain(ctx, pgdb.During("name the version of its schema", err))
}

// mostEvents is how many events share one commit.
const mostEvents = 512

// OpenSession begins a lease on the database as it is now, whatever it was before. The first one on
// it writes records, reads them back and rolls them back: a database that changes values is refused.
func (db *DB) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	if err := db.server.Recognise(ctx); err != nil {
		return ledger.Lease{}, fmt.Errorf("open session: %w", explain(ctx, err))
	}
	if err := db.try(ctx); err != nil {
		return ledger.Lease{}, fmt.Errorf("open session: %w", explain(ctx, err))
	}
	db.alive.hold()
	lease, err := db.store.OpenSession(ctx, ttl, label, knows)
	if err != nil {
		return lease, err
	}
	lease.Lock, lease.Unlocked = db.alive.path()
	return lease, db.buryGone(ctx, &lease)
}

// sameDatabase refuses to write for a session that was opened on another database than the one we
// are connected to.
func (db *DB) sameDatabase(t machine.Token) error {
	now, opened := db.server.Identity(), sqlstore.OpenedOn(db.store, t)
	if opened != "" && now != "" && opened != now {
		return fmt.Errorf("%w: session %s was opened on %s, now it is %s", ledger.ErrDatabaseChanged, t, opened, now)
	}
	return nil
}

// Recover stores what a person says of a database that may be another one.
func (db *DB) Recover(ctx context.Context, r ledger.Recovery) (ledger.Recovered, error) {
	return sqlstore.Recover(ctx, db.store, r, false)
}

// Limits says what the database can bear: one server has one clock.
func (db *DB) Limits() ledger.Limits {
	return ledger.Limits{Bytes: db.most, Record: db.most, Forgets: db.server.Forgets()}
}

// Close waits for what is being written and closes every connection. It does not bury sessions.
func (db *DB) Close() error {
	db.incoming.Close()
	db.posts.Close()
	sqlstore.Settle(db.store)
	db.witness.Close()
	if err := errors.Join(db.close(), db.alive.release()); err != nil {
		return fmt.Errorf("close the database on Postgres: %w", err)
	}
	return nil
}
