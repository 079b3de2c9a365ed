package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/internal/batch"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// Options tunes a store. The zero value is ready to use.
type Options struct {
	// Migrate brings an older schema up to date when the store is opened. Without it an older schema is refused.
	Migrate bool

	// Writers is how many batches of deliveries may be on their way at the same time. Default: 2.
	Writers int

	// Workers is how many calls of the gate, replays and purges may run at the same time. Default: 4.
	Workers int

	// Readers is how many reads may run at the same time. Default: 4.
	Readers int

	// Batch is how many events share one commit at most. Default: 512.
	Batch int

	// ConnectTimeout is for one attempt to connect, where the DSN does not say. Default: 5 s.
	ConnectTimeout time.Duration
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	for n, byDefault := range map[*int]int{&out.Writers: 2, &out.Workers: 4, &out.Readers: 4, &out.Batch: 512} {
		if *n <= 0 {
			*n = byDefault
		}
	}
	if out.ConnectTimeout <= 0 {
		out.ConnectTimeout = 5 * time.Second
	}
	return out
}

// Store keeps what was heard in a Postgres database. It implements [reconcile.Inbox], [reconcile.Gate] and
// [reconcile.Reader].
type Store struct {
	*store
	statements

	inbox, gate, people *sqlx.DB // one pool for each urgency
	group               *batch.Group[deliveries]
}

// store is the part of the store that SQLite has as well.
type store = sqlstore.Store

var (
	_ reconcile.Inbox  = (*Store)(nil)
	_ reconcile.Gate   = (*Store)(nil)
	_ reconcile.Reader = (*Store)(nil)
)

// Open connects to the database that dsn names (a URL or key=value pairs, as lib/pq takes them), which may be a
// ledger's.
func Open(ctx context.Context, dsn string, o *Options) (*Store, error) {
	s, err := open(ctx, dsn, o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open the inbox on Postgres: %w", pgdb.Explain(ctx, err))
	}
	return s, nil
}

func open(ctx context.Context, dsn string, o Options) (_ *Store, err error) {
	server, err := pgdb.New(dsn, o.ConnectTimeout)
	if err != nil {
		return nil, err
	}
	s := &Store{
		inbox:  server.Pool(o.Writers, pgdb.Steady, "enable_nestloop=off"), // a batch is joined with itself
		gate:   server.Pool(o.Workers, append(slices.Clone(pgdb.ByIndex), pgdb.Steady)...),
		people: server.Pool(o.Readers),
	}
	defer func() {
		if err != nil {
			_ = s.disconnect()
		}
	}()
	if _, err := pgdb.Fit(ctx, s.people, o.Migrate); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, s.inbox, s.gate); err != nil {
		return nil, err
	}
	s.store = sqlstore.New(s.dialect())
	s.group = batch.New(o.Writers, o.Batch, func(d deliveries) int { return len(d) }, s.write)
	return s, nil
}

// dialect is what the store needs to know about Postgres.
func (s *Store) dialect() *sqlstore.Dialect {
	return &sqlstore.Dialect{
		Words: map[string]string{"now": "", "ms": "", "numbers": "", "works": "", "counts": ""}, // of the ledger
		Read:  func(_ context.Context, fn func(sqlstore.Queries) error) error { return fn(s.people) },
		Write: func(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
			return s.transaction(ctx, s.gate, func(tx *sqlx.Tx) error { return fn(ctx, tx) }) // planned by index
		},
		Page: s.page,
		Bind: func(query string) string { return sqlx.Rebind(sqlx.DOLLAR, query) },
		Now: func(ctx context.Context, q sqlstore.Queries) (now time.Time, err error) {
			err = q.QueryRowxContext(ctx, `SELECT clock_timestamp()`).Scan(&now)
			return now.UTC(), err
		},
		Today:    `clock_timestamp()`,
		Moment:   func(t time.Time) any { return t },
		MomentOf: func(micros string) string { return `'epoch'::timestamptz + ` + micros + ` * interval '1 microsecond'` },
		BytesOf:  func(hex string) string { return `decode(` + hex + `, 'hex')` },
		Numbers:  `(SELECT value::bigint FROM json_array_elements_text(?::json) AS value)`,
		Elements: `json_array_elements(?::json) AS e (value)`,
		Share:    ` FOR SHARE`,
		Lock:     ` FOR UPDATE`,
		Explain:  pgdb.Explain,
	}
}

// transaction runs fn in a transaction.
func (s *Store) transaction(ctx context.Context, pool *sqlx.DB, fn func(*sqlx.Tx) error) error {
	tx, err := pool.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // without effect after a commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Close waits for what is being written and closes every connection.
func (s *Store) Close() error {
	s.group.Close()
	if err := s.disconnect(); err != nil {
		return fmt.Errorf("close the inbox on Postgres: %w", err)
	}
	return nil
}

func (s *Store) disconnect() error {
	return errors.Join(s.inbox.Close(), s.gate.Close(), s.people.Close())
}
