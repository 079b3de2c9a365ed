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
func used(t *testing.T, m *pgtest.Template) (oid int) {
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
	})
	return oid
}

func identity(t *testing.T, db *sql.DB) (oid int) {
	t.Helper()
	return value[int](t, db, "SELECT oid FROM pg_database WHERE datname = current_database()")
}

// Each test has a copy for itself that is as new, also when another one wrote to it before, and with the last
// of them all are gone. The next one prepares them again.
func TestTemplate(t *testing.T) { //nolint:tparallel // a group has ended before the next one begins
	pace.Day(t)
	t.Parallel()
	var prepared atomic.Int32
	m := &pgtest.Template{Prepare: prepare(&prepared)}
	var seen []int
	for n := int32(1); n <= 2; n++ {
		t.Run("tests", func(t *testing.T) {
			m.URL(t)
			seen = append(seen, used(t, m), used(t, m))
		})
		if prepared.Load() != n {
			t.Errorf("it was prepared %d times for %d groups of tests", prepared.Load(), n)
		}
	}
	db := open(t, pgtest.URL(t))
	for _, oid := range seen {
		if value[bool](t, db, "SELECT EXISTS (SELECT FROM pg_database WHERE oid = $1)", oid) {
			t.Error("a copy was left behind")
		}
	}
}
