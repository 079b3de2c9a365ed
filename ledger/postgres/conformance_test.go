package postgres_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/ledger/postgres"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Harness{
		Open: func(t *testing.T) ledgertest.Store { return open(t, pgtest.URL(t)) },
		Again: func(t *testing.T, s ledgertest.Store) ledgertest.Store {
			return open(t, s.(*store).url)
		},
		DB: func(t *testing.T, s ledgertest.Store) *sqlx.DB { return connect(t, s.(*store).url) },
	}.Run(t)
}

// store remembers where its database is.
type store struct {
	*postgres.Ledger

	url string
}

func open(t *testing.T, url string) *store {
	t.Helper()
	l, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	return &store{Ledger: l, url: url}
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

func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	ledgertest.Prove(t, "TestConformance")
}
