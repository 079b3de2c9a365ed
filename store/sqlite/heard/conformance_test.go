package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/amends-dev/amends/store/sqlite/heard"
	"github.com/amends-dev/amends/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(ctx context.Context, path string) (storetest.Store, error) {
	return sqlite.Open(ctx, path, nil)
}

func harness() storetest.Harness {
	var paths sync.Map // storetest.Store → its file
	open := func(t *testing.T, path string) storetest.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		paths.Store(storetest.Store(s), path)
		return s
	}
	where := func(t *testing.T, s storetest.Store) string {
		t.Helper()
		path, _ := paths.Load(s)
		at, ok := path.(string)
		if !ok {
			t.Fatalf("%T is no store of ours", s)
		}
		return at
	}
	return storetest.Harness{
		Open: func(t *testing.T) storetest.Store {
			t.Helper()
			return open(t, filepath.Join(t.TempDir(), "ledger.db"))
		},
		Again: func(t *testing.T, s storetest.Store) storetest.Store {
			t.Helper()
			return open(t, where(t, s))
		},
		Address: where,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	harness().Run(t)
}

// The suite finds every rule that a store can break.
func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	harness().Prove(t, "TestConformance")
}
