package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/storetest"
	"github.com/amends-dev/amends/store/postgres"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(ctx context.Context, dsn string) (storetest.Store, error) {
	return postgres.Open(ctx, dsn, nil)
}

// variant is a way to run the suite.
type variant struct {
	name    string
	options postgres.Options
	faults  *faults
	buckets bool // 64, as a ledger on several nodes has
}

// variants are all of them: the first is what users have.
var variants = []variant{
	{name: "read committed", options: *postgres.Isolated("read committed", migrate)},
	{name: "repeatable read", options: *postgres.Isolated("repeatable read", migrate)},
	{name: "serializable", options: *postgres.Isolated("serializable", migrate)},
	{name: "64 buckets", options: migrate, buckets: true},
	{name: "64 buckets, serializable", options: *postgres.Isolated("serializable", migrate), buckets: true},
	{name: "sealed", options: postgres.Options{Migrate: true, Keys: oneKey{}}},
	faulty("read committed"),
	faulty("serializable"),
}

// oneKey seals all bodies.
type oneKey struct{}

func (oneKey) Sealing(string) (string, error) { return "k", nil }
func (oneKey) Key(string) ([]byte, error)     { return make([]byte, ledger.KeySize), nil }

var migrate = postgres.Options{Migrate: true}

// faulty is a variant with faults between the driver and the store.
func faulty(level string) variant {
	f := &faults{draw: random}
	return variant{name: "faults, " + level, options: *postgres.Between(f.between, *postgres.Isolated(level, migrate)), faults: f}
}

func (v variant) open(t storetest.T, url string) *store {
	t.Helper()
	l, err := postgres.Open(t.Context(), url, &v.options)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	return &store{DB: l, url: url}
}

// opened is a store as the suite sees it.
func (v variant) opened(s *store) storetest.Store {
	if v.faults != nil {
		return &certain{store: s}
	}
	return s
}

func (v variant) harness() storetest.Harness {
	h := storetest.Harness{
		Open: func(t storetest.T) storetest.Store {
			t.Helper()
			tb, ok := t.(pgtest.TB)
			if !ok {
				t.Fatalf("the suite runs in a %T", t)
			}
			in := migrated
			if v.buckets {
				in = bucketed
			}
			return v.opened(v.open(t, in.URL(tb)))
		},
		Again: func(t storetest.T, s storetest.Store) storetest.Store {
			t.Helper()
			return v.opened(v.open(t, where(t, s)))
		},
		LosesAnswers: v.faults != nil,
		Address:      func(t storetest.T, s storetest.Store) string { t.Helper(); return where(t, s) },
		DB: func(t storetest.T, s storetest.Store) *sqlx.DB {
			t.Helper()
			return connect(t, where(t, s))
		},
		Change: func(t storetest.T, s storetest.Store) { // the sessions that were are of another server
			t.Helper()
			connect(t, where(t, s)).MustExecContext(t.Context(), `UPDATE amends_sessions SET database = 'another'`)
		},
		Newer: func(t storetest.T, s storetest.Store) {
			t.Helper()
			connect(t, where(t, s)).MustExecContext(t.Context(), `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, true)`)
		},
	}
	if v.options.Keys != nil { // a child process has none
		h.Address = nil
	}
	return h
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, variants[0].harness())
}

// At night every other variant is run, too.
func TestVariants(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	others := variants[1:]
	for _, v := range others {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, v.harness())
			if v.faults != nil {
				t.Cleanup(func() { v.faults.happened(t) })
			}
		})
	}
}

// The suite finds every rule that a database can break.
func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	migrated.Lend(t) // preparing it again would take longer than most cases
	storetest.Prove(t, variants[0].harness(), "TestConformance")
}

// migrated is a database with the tables and nothing in them.
var migrated = &pgtest.Template{Name: "MIGRATED", Prepare: func(ctx context.Context, address string) error {
	l, err := postgres.Open(ctx, address, &postgres.Options{Migrate: true})
	if err != nil {
		return err
	}
	return l.Close()
}}

// bucketed is the same with 64 buckets.
var bucketed = &pgtest.Template{Prepare: func(ctx context.Context, address string) error {
	if err := migrated.Prepare(ctx, address); err != nil {
		return err
	}
	db, err := sqlx.ConnectContext(ctx, "postgres", address)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `UPDATE amends_meta SET buckets = 64`)
	return errors.Join(err, db.Close())
}}

// store remembers where its database is.
type store struct {
	*postgres.DB

	url string
}

// certain answers of a record that a lost answer made us append twice what the first time would
// have answered: no test gave it before.
type certain struct {
	*store

	given sync.Map // the hashes of records that were given
}

func (c *certain) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	first := make([]bool, len(es))
	for i := range es {
		_, before := c.given.LoadOrStore(es[i].Record.Hash, true)
		first[i] = !before
	}
	as, err := c.store.Append(ctx, t, es)
	for i := range as {
		switch {
		case first[i] && as[i].Result == ledger.Mine:
			as[i].Result = ledger.Appended
		case as[i].Result == ledger.Blocked: // it is to be given again
			c.given.Delete(es[i].Record.Hash)
		}
	}
	return as, err
}

// of is the store behind one of the suite.
func of(t storetest.T, s storetest.Store) *store {
	t.Helper()
	switch s := s.(type) {
	case *store:
		return s
	case *certain:
		return s.store
	}
	t.Fatalf("a store of the suite is a %T", s)
	return nil
}

func where(t storetest.T, s storetest.Store) string { t.Helper(); return of(t, s).url }

func open(t storetest.T, url string) *store { t.Helper(); return variants[0].open(t, url) }

// connect opens a pool of the test's own.
func connect(t storetest.T, url string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.ConnectContext(t.Context(), "postgres", url)
	if err != nil {
		t.Fatalf("connect beside the store: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the pool beside the store: %v", err)
		}
	})
	return db
}
