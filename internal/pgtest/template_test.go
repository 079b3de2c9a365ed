package pgtest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/amends-dev/amends/internal/pgtest"
)

// Each test has a copy of its own of what was prepared once, and with the last of them all is gone. The next one prepares it again.
func TestTemplate(t *testing.T) { //nolint:tparallel // a group has ended before the next one begins
	t.Parallel()
	var prepared atomic.Int32
	m := &pgtest.Template{Prepare: func(ctx context.Context, address string) error {
		prepared.Add(1)
		db := open(t, address)
		_, err := db.ExecContext(ctx, "CREATE TABLE things AS SELECT 'prepared' AS name")
		return errors.Join(err, db.Close())
	}}
	var names []string
	for n := int32(1); n <= 2; n++ {
		t.Run("tests", func(t *testing.T) {
			for range 4 {
				db := open(t, m.URL(t))
				if n := value[int](t, db, "SELECT count(*) FROM things"); n != 1 {
					t.Errorf("a copy has %d things, want the one that was prepared", n)
				}
				mustExec(t, db, "INSERT INTO things VALUES ('mine')")
				names = append(names, value[string](t, db, "SELECT current_database()"))
			}
		})
		if prepared.Load() != n {
			t.Errorf("it was prepared %d times for %d groups of tests", prepared.Load(), n)
		}
	}
	db := open(t, pgtest.URL(t))
	if n := value[int](t, db, "SELECT count(*) FROM pg_database WHERE datname = ANY (string_to_array($1, ','))", strings.Join(names, ",")); n != 0 {
		t.Errorf("%d copies were left behind", n)
	}
}

// A failed preparation fails the test, and leaves nothing behind.
func TestTemplateThatFails(t *testing.T) {
	t.Parallel()
	var address string
	m := &pgtest.Template{Prepare: func(_ context.Context, at string) error {
		address = at
		return errors.New("no")
	}}
	db := open(t, pgtest.URL(t)) // or the test is skipped
	if got := ending(func(tb pgtest.TB) { m.URL(tb) }); got != "failed: no" {
		t.Errorf("ended with %q", got)
	}
	if n := value[int](t, db, "SELECT count(*) FROM pg_database WHERE datname = $1", databaseName(t, address)); n != 0 {
		t.Errorf("%s was left behind", address)
	}
}
