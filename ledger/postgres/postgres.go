package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/internal/engine"
	"github.com/amends-dev/amends/migrations"
)

// Options tunes a ledger. The zero value is ready to use.
type Options struct {
	// Migrate brings an older schema up to date when the ledger is opened. Without it an older schema is
	// refused.
	Migrate bool

	// Writers is how many batches of records may be on their way at the same time. Default: 2.
	Writers int

	// Readers is how many claims, loads, signals and listings may run at the same time. Default: 4.
	Readers int

	// ConnectTimeout is for one attempt to connect, where the DSN does not say. Default: 5 s.
	ConnectTimeout time.Duration

	// StartLockTimeout is how long a start waits for a transaction that is starting the same work. It must be
	// shorter than the server's deadlock_timeout (1 s), so that it is we who give way and not the caller whose
	// transaction is open. Default: 250 ms.
	StartLockTimeout time.Duration
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Writers <= 0 {
		out.Writers = 2
	}
	if out.Readers <= 0 {
		out.Readers = 4
	}
	if out.ConnectTimeout <= 0 {
		out.ConnectTimeout = 5 * time.Second
	}
	if out.StartLockTimeout <= 0 {
		out.StartLockTimeout = 250 * time.Millisecond
	}
	return out
}

// store is the part of the ledger that SQLite has as well.
type store = engine.Store

// Ledger is a ledger in a Postgres database. It implements [ledger.Ledger], [ledger.Reader] and
// [ledger.TxStarter].
type Ledger struct {
	*store

	server *server
	schema string // where the tables are
	lanes
	writing
	now func() any // nil but in tests: the server's clock
}

// lanes are the pools, one for each urgency.
type lanes struct {
	records, starts, pulse, rest *sqlx.DB
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
	s, err := newServer(dsn, o)
	if err != nil {
		return nil, err
	}
	l := &Ledger{server: s, now: func() any { return nil }}
	l.lanes = lanes{
		records: s.pool(o.Writers, append(slices.Clone(byIndex), steady)...),
		starts: s.pool(1, steady, "enable_nestloop=off",
			fmt.Sprintf("lock_timeout=%dms", o.StartLockTimeout.Milliseconds())),
		pulse: s.pool(1),
		rest:  s.pool(o.Readers, byIndex...),
	}
	defer func() {
		if err != nil {
			_ = l.close()
		}
	}()
	if l.schema, err = firstSchema(ctx, l.rest); err != nil {
		return nil, err
	}
	if err := l.fit(ctx, o.Migrate); err != nil {
		return nil, err
	}
	if l.writing, err = prepare(ctx, &l.lanes); err != nil {
		return nil, err
	}
	l.store = engine.New(l.database())
	return l, nil
}

// firstSchema returns the schema in which the tables must be. A first schema that does not exist is a mistake:
// the database would silently use the next.
func firstSchema(ctx context.Context, db *sqlx.DB) (string, error) {
	var path, user string
	var current *string
	err := db.QueryRowxContext(ctx, `SELECT current_setting('search_path'), current_user, current_schema()`).Scan(&path, &user, &current)
	if err != nil {
		return "", err
	}
	for name := range strings.SplitSeq(path, ",") {
		name = strings.Trim(strings.TrimSpace(name), `"`)
		if name == "$user" && (current == nil || *current != user) {
			continue // it need not exist
		}
		if current != nil && (*current == name || name == "$user") {
			return *current, nil
		}
		return "", fmt.Errorf("%w: the search_path is %q, but there is no schema %q (or this user may not use it). "+
			"Create the schema or correct the search_path", ledger.ErrSchema, path, name)
	}
	return "", fmt.Errorf("%w: the search_path %q names no schema that exists", ledger.ErrSchema, path)
}

// fit makes sure that the schema is this program's.
func (l *Ledger) fit(ctx context.Context, migrate bool) error {
	latest := migrations.Latest(migrations.Postgres)
	version, err := migrations.Version(ctx, l.rest.DB, migrations.Postgres)
	switch {
	case err != nil:
		return err
	case version > latest:
		return fmt.Errorf("%w: schema %q has version %d, this program knows %d. Use a newer program",
			ledger.ErrSchema, l.schema, version, latest)
	case version == latest:
		return nil
	case migrate:
		_, err := migrations.Up(ctx, l.rest.DB, migrations.Postgres)
		return err
	case version == 0:
		return fmt.Errorf("%w: schema %q holds no ledger yet. Run amends migrate, or set Options.Migrate",
			ledger.ErrSchema, l.schema)
	default:
		return fmt.Errorf("%w: schema %q has version %d, this program needs %d. Run amends migrate, or set Options.Migrate",
			ledger.ErrSchema, l.schema, version, latest)
	}
}

// database is what the engine needs to know about Postgres.
func (l *Ledger) database() *engine.Database {
	return &engine.Database{
		Words:    words,
		Clock:    func() any { return l.now() },
		Read:     l.read,
		Write:    l.write,
		Pulse:    func(_ context.Context, fn func(engine.Queries) error) error { return fn(l.pulse) },
		Identity: identity,
		Claim:    l.claim,
		Explain:  explain,
	}
}

// Close closes every connection. It does not bury sessions.
func (l *Ledger) Close() error {
	if err := l.close(); err != nil {
		return fmt.Errorf("close the ledger on Postgres: %w", err)
	}
	return nil
}

func (l *lanes) close() error {
	return errors.Join(l.records.Close(), l.starts.Close(), l.pulse.Close(), l.rest.Close())
}

// config reads a DSN and sets what must not be left to chance.
func config(dsn string, o Options) (pq.Config, error) {
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		return cfg, fmt.Errorf("read the DSN: %w", err)
	}
	if cfg.ConnectTimeout <= 0 { // it would wait for ever
		cfg.ConnectTimeout = o.ConnectTimeout
	}
	if len(cfg.Multi) > 0 && (cfg.TargetSessionAttrs == "" || cfg.TargetSessionAttrs == pq.TargetSessionAttrsAny) {
		cfg.TargetSessionAttrs = pq.TargetSessionAttrsReadWrite
	}
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "amends" // the fallback is only looked at while a DSN is read
	}
	return cfg, nil
}
