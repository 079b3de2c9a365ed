package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/store/sqlite"
	"github.com/amends-dev/amends/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(ctx context.Context, path string) (storetest.Store, error) {
	return sqlite.Open(ctx, path, nil)
}

// files remembers where each database of a suite is.
type files struct{ paths sync.Map }

func (f *files) open(t *testing.T, path string, o *sqlite.Options) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	f.paths.Store(db, path)
	return db
}

func (f *files) where(t *testing.T, s any) string {
	t.Helper()
	path, _ := f.paths.Load(s)
	at, ok := path.(string)
	if !ok {
		t.Fatalf("%T is no database of ours", s)
	}
	return at
}

func (f *files) connect(t *testing.T, s ledgertest.Store) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", fmt.Sprintf("file:%s?_txlock=immediate&_pragma=busy_timeout(5000)", f.where(t, s)))
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

func ledgers() ledgertest.Harness {
	var f files
	return ledgertest.Harness{
		Open: func(t *testing.T) ledgertest.Store {
			t.Helper()
			return f.open(t, filepath.Join(t.TempDir(), "ledger.db"), &sqlite.Options{BusyTimeout: 100 * time.Millisecond})
		},
		Change: func(t *testing.T, s ledgertest.Store) { // the sessions that were are of another file
			t.Helper()
			f.connect(t, s).MustExecContext(t.Context(), `UPDATE amends_sessions SET database = 'another'`)
		},
		Newer: func(t *testing.T, s ledgertest.Store) {
			t.Helper()
			f.connect(t, s).MustExecContext(t.Context(), `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, 1)`)
		},
		DB: f.connect,
	}
}

func inboxes() storetest.Harness {
	var f files
	return storetest.Harness{
		Open: func(t *testing.T) storetest.Store {
			t.Helper()
			return f.open(t, filepath.Join(t.TempDir(), "ledger.db"), nil)
		},
		Again: func(t *testing.T, s storetest.Store) storetest.Store {
			t.Helper()
			return f.open(t, f.where(t, s), nil)
		},
		Address: func(t *testing.T, s storetest.Store) string { t.Helper(); return f.where(t, s) },
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	ledgers().Run(t)
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
