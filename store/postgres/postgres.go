package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// Options tunes a ledger. The zero value is ready to use.
type Options struct {
	// Migrate brings an older schema up to date when the ledger is opened. Without it an older schema is
	// refused.
	Migrate bool

	// Writers is how many batches of records may be on their way at the same time. Default: 2.
	Writers int

	// Readers is how many loads, signals and listings may run at the same time. Default: 3.
	Readers int

	// ConnectTimeout is for one attempt to connect, where the DSN does not say. Default: 5 s.
	ConnectTimeout time.Duration
}

// How long a record, a start and a start that was blocked before wait for a lock. They are shorter than the server's
// deadlock_timeout (1 s), so that it is we who give way and not the caller whose transaction is open. A start waits as
// good as not at all: the others of its batch wait with it.
const (
	recordPatience  = 250 * time.Millisecond
	startPatience   = 10 * time.Millisecond
	blockedPatience = 250 * time.Millisecond
)

func lockTimeout(d time.Duration) string { return fmt.Sprintf("lock_timeout=%dms", d.Milliseconds()) }

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Writers <= 0 {
		out.Writers = 2
	}
	if out.Readers <= 0 {
		out.Readers = 3
	}
	if out.ConnectTimeout <= 0 {
		out.ConnectTimeout = 5 * time.Second
	}
	return out
}

// store is the part of the ledger that SQLite has as well.
type store = sqlstore.Store

// Ledger is a ledger in a Postgres database. It implements [ledger.Ledger], [ledger.Reader] and
// [ledger.TxStarter].
type Ledger struct {
	*store

	server *pgdb.Server
	schema string // where the tables are
	lanes
	writing
	waits waiting
	now   func() any // nil but in tests: the server's clock
	most  int        // statementBytes but in tests
}

// lanes are the pools, one for each urgency.
type lanes struct {
	records, starts, blocked, claiming, pulse, rest *sqlx.DB
}

var (
	_ ledger.Ledger    = (*Ledger)(nil)
	_ ledger.Reader    = (*Ledger)(nil)
	_ ledger.TxStarter = (*Ledger)(nil)
)

// Open connects to the database that dsn names (a URL or key=value pairs, as lib/pq takes them) and makes sure
// that it can be trusted with a ledger.
func Open(ctx context.Context, dsn string, o *Options) (*Ledger, error) {
	l, err := open(ctx, dsn, o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open the ledger on Postgres: %w", explain(ctx, err))
	}
	return l, nil
}

func open(ctx context.Context, dsn string, o Options) (_ *Ledger, err error) {
	s, err := pgdb.New(dsn, o.ConnectTimeout)
	if err != nil {
		return nil, err
	}
	l := &Ledger{server: s, now: func() any { return nil }, most: statementBytes}
	l.lanes = lanes{
		records:  s.Pool(o.Writers, append(slices.Clone(pgdb.ByIndex), pgdb.Steady, lockTimeout(recordPatience))...),
		starts:   s.Pool(1, pgdb.Steady, "enable_nestloop=off", lockTimeout(startPatience)),
		blocked:  s.Pool(1, pgdb.Steady, lockTimeout(blockedPatience)),
		claiming: s.Pool(1, append(slices.Clone(pgdb.ByIndex), pgdb.Steady)...),
		pulse:    s.Pool(1, pgdb.ByIndex...),
		rest:     s.Pool(o.Readers, pgdb.ByIndex...),
	}
	defer func() {
		if err != nil {
			_ = l.close()
		}
	}()
	if l.schema, err = pgdb.Fit(ctx, l.rest, o.Migrate); err != nil {
		return nil, err
	}
	if l.writing, err = prepare(ctx, &l.lanes); err != nil {
		return nil, err
	}
	l.store = sqlstore.New(l.database())
	return l, nil
}

// database is what the engine needs to know about Postgres.
func (l *Ledger) database() *sqlstore.Dialect {
	return &sqlstore.Dialect{
		Words:      words,
		Clock:      func() any { return l.now() },
		View:       l.read,
		Plain:      plain(l.rest),
		Pulse:      plain(l.pulse),
		Identity:   func(ctx context.Context, q sqlstore.Queries) (string, error) { return pgdb.Identity(ctx, q) },
		Schema:     migrations.Latest(migrations.Postgres),
		Claim:      l.claim,
		GiveBack:   l.giveBack,
		Post:       l.post,
		Explain:    explain,
		SetControl: l.setControl,
	}
}

// Close closes every connection. It does not bury sessions.
func (l *Ledger) Close() error {
	if err := l.close(); err != nil {
		return fmt.Errorf("close the ledger on Postgres: %w", err)
	}
	return nil
}

// close closes all lanes at once: each may have to wait for a server that says nothing.
func (l *lanes) close() error {
	var g errgroup.Group
	for _, lane := range []*sqlx.DB{l.records, l.starts, l.blocked, l.claiming, l.pulse, l.rest} {
		g.Go(lane.Close)
	}
	return g.Wait()
}
