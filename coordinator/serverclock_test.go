package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

// fakeTime finds the library by which a server's clock can be set.
func fakeTime(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the only error is a malformed pattern
			return found[0]
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("CI is set, so nothing may be skipped, and libfaketime is missing")
	}
	t.Skip("skipped: no libfaketime; scripts/deps.sh libfaketime installs it")
	return ""
}

// serverClock is the clock of a PostgreSQL server of its own.
type serverClock struct {
	*pgtest.Cluster
	t    *testing.T
	file string
}

func newServerClock(t *testing.T) *serverClock {
	t.Helper()
	lib := fakeTime(t)
	dir, err := os.MkdirTemp("", "amends-clock-") //nolint:usetesting // another user must be able to read it
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &serverClock{t: t, file: filepath.Join(dir, "offset")}
	c.set(0)
	c.Cluster, err = pgtest.Start(t.Context(), "", nil, "LD_PRELOAD="+lib, "FAKETIME_TIMESTAMP_FILE="+c.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Stop(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return c
}

// set makes the server's clock differ from the right time. The file is replaced as a whole: half an
// offset is a wrong one.
func (c *serverClock) set(offset time.Duration) {
	c.t.Helper()
	next := c.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+f\n", offset.Seconds()), 0o644); err != nil { // another user reads it
		c.t.Fatal(err)
	}
	if err := os.Rename(next, c.file); err != nil {
		c.t.Fatal(err)
	}
}

// offset asks the server what time it is.
func (c *serverClock) offset(db *sqlx.DB) time.Duration {
	c.t.Helper()
	var now time.Time
	if err := db.GetContext(c.t.Context(), &now, "SELECT clock_timestamp()"); err != nil {
		c.t.Fatal(err)
	}
	return time.Until(now)
}

// The clock of a real server steps forward and back while real processes work. What was due
// in the future becomes due once the clock is right again; nothing is sent twice and nothing is
// lost.
func TestTheServersClockSteps(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	steps, works, far := 3, 24, 5
	if pace.AtNight() {
		steps, works, far = 100, 300, 30
	}
	server := newServerClock(t)
	address, drop, err := pgtest.Database(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	a := newArena(t, apart(t, address), works)
	a.ledger, a.w.judge = address, nil // the world has another clock than the ledger
	db, err := sqlx.Open("postgres", apart(t, address))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one, other := a.launch(), a.launch()
	for range steps {
		a.after(1 + a.r.IntN(2*4*works/steps))
		server.set(time.Duration(1+a.r.IntN(far)) * time.Second * time.Duration(1-2*a.r.IntN(2)))
		if off := server.offset(db); off.Abs() < 500*time.Millisecond {
			t.Errorf("the server's clock is off by %s: the test proves nothing", off)
		}
	}
	server.set(0)
	a.poll(func() bool { // what a person does then; amends check asks for it
		_, _, err := a.look.CatchUp(t.Context())
		o, oerr := a.look.Overview(t.Context())
		if err := errors.Join(err, oerr); err != nil {
			t.Fatal(err)
		}
		return len(o.Ahead.Works)+len(o.Ahead.Sessions) == 0
	})
	reviews := a.finish()
	t.Logf("%d works, %d steps, %d requests, %d reviews", works, steps, a.arrivals(), reviews)
	a.leave(one)
	a.leave(other)
}
