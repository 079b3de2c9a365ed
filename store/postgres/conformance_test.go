package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(ctx context.Context, dsn string) (storetest.Store, error) {
	return postgres.Open(ctx, dsn, nil)
}

func harness() storetest.Harness {
	return storetest.Harness{
		Open: func(t storetest.T) storetest.Store {
			t.Helper()
			tb, ok := t.(pgtest.TB)
			if !ok {
				t.Fatalf("the suite runs in a %T", t)
			}
			return open(t, migrated.URL(tb))
		},
		Again: func(t storetest.T, s storetest.Store) storetest.Store {
			t.Helper()
			return open(t, where(t, s))
		},
		Address: func(t storetest.T, s storetest.Store) string { t.Helper(); return where(t, s) },
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
		SetClock: func(t storetest.T, s storetest.Store, at time.Time) {
			t.Helper()
			postgres.SetClock(of(t, s).DB, at)
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness())
}

// The suite finds every rule that a database can break.
func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	storetest.Prove(t, harness(), "TestConformance")
}

// migrated is a database with the tables and nothing in them.
var migrated = &pgtest.Template{Prepare: func(ctx context.Context, address string) error {
	l, err := postgres.Open(ctx, address, &postgres.Options{Migrate: true})
	if err != nil {
		return err
	}
	return l.Close()
}}

// store remembers where its database is.
type store struct {
	*postgres.DB

	url string
}

// of is the store behind one of the suite.
func of(t storetest.T, s storetest.Store) *store {
	t.Helper()
	l, ok := s.(*store)
	if !ok {
		t.Fatalf("a store of the suite is a %T", s)
	}
	return l
}

func where(t storetest.T, s storetest.Store) string { t.Helper(); return of(t, s).url }

func open(t storetest.T, url string) *store {
	t.Helper()
	l, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	return &store{DB: l, url: url}
}

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
