package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/postgres/heard"
	"github.com/amends-dev/amends/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(ctx context.Context, dsn string) (storetest.Store, error) {
	return postgres.Open(ctx, dsn, nil)
}

// migrated is a database with an empty store.
var migrated = &pgtest.Template{Prepare: func(ctx context.Context, address string) error {
	s, err := postgres.Open(ctx, address, &postgres.Options{Migrate: true})
	if err != nil {
		return err
	}
	return s.Close()
}}

func harness() storetest.Harness {
	var databases sync.Map // storetest.Store → its URL
	open := func(t *testing.T, url string) storetest.Store {
		t.Helper()
		s, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		databases.Store(storetest.Store(s), url)
		return s
	}
	where := func(t *testing.T, s storetest.Store) string {
		t.Helper()
		url, _ := databases.Load(s)
		at, ok := url.(string)
		if !ok {
			t.Fatalf("%T is no store of ours", s)
		}
		return at
	}
	return storetest.Harness{
		Open: func(t *testing.T) storetest.Store {
			t.Helper()
			return open(t, migrated.URL(t))
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
