package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/store/sqlite"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	var paths sync.Map // ledgertest.Store → its file
	connect := func(t *testing.T, s ledgertest.Store) *sqlx.DB {
		t.Helper()
		path, _ := paths.Load(s)
		db, err := sqlx.Open("sqlite", fmt.Sprintf("file:%s?_txlock=immediate&_pragma=busy_timeout(5000)", path))
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
	ledgertest.Harness{
		Open: func(t *testing.T) ledgertest.Store {
			t.Helper()
			path := filepath.Join(t.TempDir(), "ledger.db")
			l, err := sqlite.Open(t.Context(), path, &sqlite.Options{BusyTimeout: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			paths.Store(ledgertest.Store(l), path)
			return l
		},
		Change: func(t *testing.T, s ledgertest.Store) { // the sessions that were are of another file
			t.Helper()
			connect(t, s).MustExecContext(t.Context(), `UPDATE amends_sessions SET database = 'another'`)
		},
		Newer: func(t *testing.T, s ledgertest.Store) {
			t.Helper()
			connect(t, s).MustExecContext(t.Context(), `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, 1)`)
		},
		DB: connect,
	}.Run(t)
}

func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	ledgertest.Prove(t, "TestConformance")
}
