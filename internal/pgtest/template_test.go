package pgtest_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

// prepare fills a database with what copies are made of, and counts how often.
func prepare(times *atomic.Int32) func(context.Context, string) error {
	return func(ctx context.Context, address string) error {
		times.Add(1)
		db, err := sql.Open("postgres", address)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, `CREATE TABLE things AS SELECT 'prepared' AS name;
			CREATE TABLE events (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text);
			CREATE TABLE parts (event bigint NOT NULL REFERENCES events, "Of" text);
			CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'insert only'; END $$;
			CREATE TRIGGER kept BEFORE DELETE ON events EXECUTE FUNCTION never();`)
		return errors.Join(err, db.Close())
	}
}

// used is a test that writes to its copy, which must be as new, and says which it was, whatever its
// name.
func used(t *testing.T, m *pgtest.Template, statements ...string) (oid int) {
	t.Helper()
	t.Run("test", func(t *testing.T) {
		db := open(t, m.URL(t))
		if n := value[int](t, db, "SELECT count(*) FROM things"); n != 1 {
			t.Errorf("there are %d things, want the one that was prepared", n)
		}
		if n := value[int](t, db, "INSERT INTO events (name) VALUES ('mine') RETURNING number"); n != 1 {
			t.Errorf("the first event has number %d", n)
		}
		if n := value[int](t, db, "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM parts)"); n != 1 {
			t.Errorf("there are %d events and parts, want the one of this test", n)
		}
		mustExec(t, db, "INSERT INTO parts VALUES (1, 'it')")
		oid = identity(t, db)
		for _, s := range statements {
			mustExec(t, db, s)
		}
	})
	return oid
}

func identity(t *testing.T, db *sql.DB) (oid int) {
	t.Helper()
	return value[int](t, db, "SELECT oid FROM pg_database WHERE datname = current_database()")
}

// Each test has a copy for itself that is as new, also when another one wrote to it before, and
// with the last of them all are gone. The next one prepares them again.
func TestTemplate(t *testing.T) { //nolint:tparallel // a group has ended before the next one begins
	pace.Day(t)
	t.Parallel()
	var prepared atomic.Int32
	m := &pgtest.Template{Prepare: prepare(&prepared)}
	seen := map[int]bool{}
	for n := int32(1); n <= 2; n++ {
		t.Run("tests", func(t *testing.T) {
			a, b := open(t, m.URL(t)), open(t, m.URL(t))
			first := used(t, m)
			for range 4 {
				if oid := used(t, m); oid != first {
					t.Error("a copy in which nothing but rows was written is not the next test's")
				}
			}
			for _, oid := range []int{first, identity(t, a), identity(t, b)} {
				if seen[oid] {
					t.Error("two tests have the same copy")
				}
				seen[oid] = true
			}
		})
		if prepared.Load() != n {
			t.Errorf("it was prepared %d times for %d groups of tests", prepared.Load(), n)
		}
	}
	db := open(t, pgtest.URL(t))
	for oid := range seen {
		if value[bool](t, db, "SELECT EXISTS (SELECT FROM pg_database WHERE oid = $1)", oid) {
			t.Error("a copy was left behind")
		}
	}
}

// A copy in which a test changed anything but rows, or rows that were prepared, is no other test's.
func TestAChangedCopyIsDropped(t *testing.T) { //nolint:tparallel // the next test begins when one has ended
	pace.Day(t)
	t.Parallel()
	var prepared atomic.Int32
	m := &pgtest.Template{Prepare: prepare(&prepared)}
	m.URL(t) // it stays prepared
	for what, statement := range map[string]string{
		"a row that was prepared":   `UPDATE things SET name = 'changed'`,
		"a row beside a prepared":   `INSERT INTO things VALUES ('new')`,
		"a prepared row again":      `DELETE FROM things; INSERT INTO things VALUES ('prepared')`,
		"a column":                  `ALTER TABLE events ADD flag boolean`,
		"a column's default":        `ALTER TABLE events ALTER name SET DEFAULT 'x'`,
		"a table again":             `DROP TABLE parts; CREATE TABLE parts (event bigint, "Of" text)`,
		"an index":                  `CREATE INDEX ON events (name)`,
		"a trigger that is off":     `ALTER TABLE events DISABLE TRIGGER kept`,
		"a function":                `CREATE OR REPLACE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$`,
		"a setting of the database": `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''7MB''', current_database()); END $$`,
		"a large object":            `SELECT lo_create(0)`,
		"statistics":                `ANALYZE events`,
		"very many rows":            `INSERT INTO events (name) SELECT repeat('x', 1000) FROM generate_series(1, 5000)`,
	} {
		changed := used(t, m, statement)
		if used(t, m) == changed {
			t.Errorf("%s: the next test had the same copy", what)
		}
	}
	if prepared.Load() != 1 {
		t.Fatalf("it was prepared %d times", prepared.Load())
	}
}

// What is still connected when a test ends is cut, and cannot come back to what is the next test's.
func TestWhoIsLeftConnectedIsCut(t *testing.T) { //nolint:tparallel // the next test begins when one has ended
	pace.Day(t)
	t.Parallel()
	var prepared atomic.Int32
	m := &pgtest.Template{Prepare: prepare(&prepared)}
	m.URL(t)
	var left *sql.DB
	var had int
	outer := t
	t.Run("a test", func(t *testing.T) {
		var err error
		if left, err = sql.Open("postgres", m.URL(t)); err != nil {
			t.Fatal(err)
		}
		outer.Cleanup(func() { _ = left.Close() })
		had = identity(t, left)
		mustExec(t, left, "BEGIN; INSERT INTO events (name) VALUES ('open')")
	})
	if used(t, m) != had {
		t.Error("the copy was not the next test's")
	}
	if _, err := left.ExecContext(t.Context(), "INSERT INTO events (name) VALUES ('late')"); err == nil {
		t.Error("it writes to the next test's copy")
	}
}

// A process to which a template was lent prepares nothing, takes copies of the same, and drops none
// of them.
func TestALentTemplate(t *testing.T) { //nolint:tparallel // it looks when its subtests have ended
	pace.Day(t)
	t.Parallel()
	const name = "OF_A_TEST"
	var prepared atomic.Int32
	m := &pgtest.Template{Name: name, Prepare: prepare(&prepared)}
	t.Run("while it is lent", func(t *testing.T) {
		m.Lend(t)
		first := used(t, m)
		other := &pgtest.Template{Name: name, Prepare: func(context.Context, string) error { return errors.New("it is prepared again") }}
		for range 2 {
			if used(t, other) != first {
				t.Error("the other process had another copy")
			}
		}
		if used(t, m) != first {
			t.Error("the other process left no copy")
		}
	})
	used(t, &pgtest.Template{Name: name, Prepare: prepare(&prepared)})
	if prepared.Load() != 2 {
		t.Error("it is lent for longer than the test")
	}
}

// A failed preparation fails the test, and leaves nothing behind.
func TestTemplateThatFails(t *testing.T) {
	pace.Day(t)
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
	if n := value[int](t, db, "SELECT count(*) FROM pg_database WHERE starts_with(datname, $1)", databaseName(t, address)); n != 0 {
		t.Errorf("%s was left behind", address)
	}
}
