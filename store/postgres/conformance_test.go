package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(ctx context.Context, dsn string) (storetest.Store, error) {
	return postgres.Open(ctx, dsn, nil)
}

func ledgers(in *pgtest.Template) ledgertest.Harness {
	return ledgertest.Harness{
		Open: func(t *testing.T) ledgertest.Store {
			t.Helper()
			return open(t, in.URL(t))
		},
		Again: func(t *testing.T, s ledgertest.Store) ledgertest.Store {
			t.Helper()
			return open(t, where(t, s))
		},
		Change: func(t *testing.T, s ledgertest.Store) { // the sessions that were are of another server
			t.Helper()
			connect(t, where(t, s)).MustExecContext(t.Context(), `UPDATE amends_sessions SET database = 'another'`)
		},
		Newer: func(t *testing.T, s ledgertest.Store) {
			t.Helper()
			connect(t, where(t, s)).MustExecContext(t.Context(), `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, true)`)
		},
		DB: func(t *testing.T, s ledgertest.Store) *sqlx.DB {
			t.Helper()
			return connect(t, where(t, s))
		},
	}
}

func inboxes() storetest.Harness {
	return storetest.Harness{
		Open: func(t *testing.T) storetest.Store {
			t.Helper()
			return open(t, migrated.URL(t))
		},
		Again: func(t *testing.T, s storetest.Store) storetest.Store {
			t.Helper()
			return open(t, where(t, s))
		},
		Address: func(t *testing.T, s storetest.Store) string { t.Helper(); return where(t, s) },
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	ledgers(migrated).Run(t)
}

// A ledger that spreads its works over buckets, as one on several nodes does, keeps the same rules (K3).
func TestLedgerInBuckets(t *testing.T) {
	t.Parallel()
	ledgers(bucketed).Run(t)
}

func TestInbox(t *testing.T) {
	t.Parallel()
	inboxes().Run(t)
}

// The suites find every rule that a database can break.
func TestLedgerCatches(t *testing.T) {
	t.Parallel()
	ledgertest.Prove(t, "TestLedger")
}

func TestInboxCatches(t *testing.T) {
	t.Parallel()
	inboxes().Prove(t, "TestInbox")
}

// migrated is a database with the tables and nothing in them.
var migrated = &pgtest.Template{Prepare: func(ctx context.Context, address string) error {
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

func where(t *testing.T, s any) string {
	t.Helper()
	l, ok := s.(*store)
	if !ok {
		t.Fatalf("a store of the suite is a %T", s)
	}
	return l.url
}

func open(t *testing.T, url string) *store {
	t.Helper()
	l, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	return &store{DB: l, url: url}
}

// connect opens a pool of the test's own.
func connect(t *testing.T, url string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.ConnectContext(t.Context(), "postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
