package pgtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"strings"
	"testing"

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
