package pgtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

func open(t *testing.T, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func value[T any](t *testing.T, db *sql.DB, query string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// Tests that share a server share nothing else: no table, no advisory lock.
func TestURLGivesEachTestADatabaseOfItsOwn(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	a, b := open(t, pgtest.URL(t)), open(t, pgtest.URL(t))

	mustExec(t, a, "CREATE TABLE ours (id int)")
	mustExec(t, b, "CREATE TABLE ours (id int)") // would fail in a shared schema

	for _, db := range []*sql.DB{a, b} {
		db.SetMaxOpenConns(1)
		if !value[bool](t, db, "SELECT pg_try_advisory_lock(42)") {
			t.Error("an advisory lock of another test is in the way")
		}
	}
}

// A database goes away with its test, even while somebody is connected to it.
func TestURLIsDroppedWhenTheTestEnds(t *testing.T) { //nolint:tparallel // it looks when its subtest has ended
	pace.Day(t)
	t.Parallel()
	server := open(t, pgtest.URL(t))
	var name string
	outer := t
	t.Run("the test", func(t *testing.T) {
		address := pgtest.URL(t)
		name = databaseName(t, address)
		held, err := sql.Open("postgres", address) // not closed before the cleanup
		if err != nil {
			t.Fatal(err)
		}
		outer.Cleanup(func() { _ = held.Close() })
		if err := held.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if n := value[int](t, server, "SELECT count(*) FROM pg_database WHERE datname = $1", name); n != 0 {
		t.Errorf("database %s is still there", name)
	}
}

func databaseName(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(parsed.Path, "/")
}

// A given server is named by a URL, and an error about it never shows a password.
func TestDatabaseRefusesWhatIsNoURL(t *testing.T) {
	t.Parallel()
	for _, server := range []string{
		"host=/tmp user=amends password=s3cret",
		"mysql://amends:s3cret@localhost/",
		"postgres://amends:s3cret@local host/\x00",
		"postgres://amends:s3cret@127.0.0.1:1/none?connect_timeout=1&sslmode=disable",
	} {
		_, _, err := pgtest.Database(t.Context(), server)
		if err == nil {
			t.Errorf("%s: no error", server)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the password is in: %v", err)
		}
	}
}

// lent records how a test was ended.
type lent struct{ ended string }

func (*lent) Helper()                          {}
func (*lent) Cleanup(func())                   {}
func (*lent) Errorf(string, ...any)            {}
func (l *lent) Fatalf(format string, a ...any) { l.end("failed: "+format, a) }
func (l *lent) Skipf(format string, a ...any)  { l.end(format, a) }
func (l *lent) end(format string, args []any) {
	l.ended = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func ending(call func(pgtest.TB)) string {
	var l lent
	done := make(chan struct{})
	go func() { defer close(done); call(&l) }()
	<-done
	return l.ended
}

// Without a PostgreSQL a test is skipped with the reason; where CI is set nothing
// may be skipped. A server that is there and does not work is always a failure.
func TestUnavailable(t *testing.T) {
	missing := fmt.Errorf("look: %w", pgtest.ErrNotInstalled)
	broken := fmt.Errorf("initdb failed: %w", context.DeadlineExceeded)
	for _, tc := range []struct {
		name, ci string
		err      error
		want     string
	}{
		{"missing", "", missing, "skipped: "},
		{"missing in CI", "true", missing, "failed: "},
		{"broken", "", broken, "failed: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("CI", tc.ci)
			got := ending(func(tb pgtest.TB) { pgtest.Unavailable(tb, tc.err) })
			if !strings.HasPrefix(got, tc.want) || !strings.Contains(got, tc.err.Error()) {
				t.Errorf("ended with %q; want %q and the reason %q", got, tc.want, tc.err)
			}
		})
	}
}
