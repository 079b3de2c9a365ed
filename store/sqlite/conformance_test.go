package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/storetest"
	"github.com/amends-dev/amends/store/sqlite"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(ctx context.Context, path string) (storetest.Store, error) {
	return sqlite.Open(ctx, path, nil)
}

// files remembers where each database of the suite is.
type files struct{ paths sync.Map }

func (f *files) open(t storetest.T, path string) storetest.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	f.paths.Store(db, path)
	return db
}

// empty is the content of a database in which nothing has happened: to make one takes longer than
// most cases.
var empty = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "ledger.db")
	db, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// create opens an empty database in a folder of its own, which goes with the test.
func (f *files) create(t storetest.T) storetest.Store {
	t.Helper()
	folder, err := os.MkdirTemp("", "conformance")
	if err != nil {
		t.Fatalf("make a folder: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Errorf("remove the folder: %v", err)
		}
	})
	content, err := empty()
	if err != nil {
		t.Fatalf("make an empty database: %v", err)
	}
	path := filepath.Join(folder, "ledger.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatalf("copy the empty database: %v", err)
	}
	return f.open(t, path)
}

func (f *files) where(t storetest.T, s storetest.Store) string {
	t.Helper()
	path, _ := f.paths.Load(s)
	at, ok := path.(string)
	if !ok {
		t.Fatalf("%T is no database of ours", s)
	}
	return at
}

func (f *files) connect(t storetest.T, s storetest.Store) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", fmt.Sprintf("file:%s?_txlock=immediate&_pragma=busy_timeout(5000)", f.where(t, s)))
	if err != nil {
		t.Fatalf("open the file beside the store: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the file beside the store: %v", err)
		}
	})
	return db
}

func (f *files) execute(t storetest.T, s storetest.Store, statement string) {
	t.Helper()
	if _, err := f.connect(t, s).ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func harness() storetest.Harness {
	var f files
	return storetest.Harness{
		Open: f.create,
		Again: func(t storetest.T, s storetest.Store) storetest.Store {
			t.Helper()
			return f.open(t, f.where(t, s))
		},
		Address: f.where,
		DB:      f.connect,
		Change: func(t storetest.T, s storetest.Store) { // the sessions that were are of another file
			t.Helper()
			f.execute(t, s, `UPDATE amends_sessions SET database = 'another'`)
		},
		Newer: func(t storetest.T, s storetest.Store) {
			t.Helper()
			f.execute(t, s, `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, 1)`)
		},
		SetTime: func(t storetest.T, s storetest.Store, at time.Time) {
			t.Helper()
			db, ok := s.(*sqlite.DB)
			if !ok {
				t.Fatalf("a store of the suite is a %T", s)
			}
			sqlite.SetTime(db, at)
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
