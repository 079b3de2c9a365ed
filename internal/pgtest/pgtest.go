package pgtest

import (
	"context"
	"errors"
	"flag"
	"os"
	"sync"
)

// Env names the environment variable with the URL of a server to use.
const Env = "AMENDS_TEST_POSTGRES"

// TB is what a test lends us. [testing.TB] satisfies it; naming the few methods
// keeps package testing out of the programs that import this one.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// URL returns the URL of a new, empty database. It drops the database when the test
// and its subtests end, and cuts the connections that are still open. With -short
// the test is skipped. Without a PostgreSQL it is, too, or fails where CI is set.
func URL(tb TB) string {
	tb.Helper()
	skipShort(tb)
	server, err := sharedServer()
	if err != nil {
		unavailable(tb, err)
	}
	address, drop, err := Database(context.Background(), server)
	return lent(tb, address, drop, err)
}

// lent returns the URL of a database that was made for a test, and drops it at the test's end.
func lent(tb TB, address string, drop func(context.Context) error, err error) string {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := drop(context.Background()); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return address
}

// Own starts a server for one test, which may take it down, and stops it when the
// test ends. It always runs from installed binaries: a server that was given to us
// is not ours to stop.
func Own(tb TB, settings Settings) *Cluster {
	tb.Helper()
	skipShort(tb)
	c, err := Start(context.Background(), "", settings)
	if err != nil {
		unavailable(tb, err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := c.Stop(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return c
}

// skipShort skips the test where make check runs it: no PostgreSQL is started for that. It asks the
// flag as testing.Short does, without package testing.
func skipShort(tb TB) {
	tb.Helper()
	if f := flag.Lookup("test.short"); f != nil && f.Value.String() == "true" {
		tb.Skipf("skipped: -short starts no PostgreSQL")
	}
}

// sharedServer is the server of this process: the one given, or a cluster that is
// started once and ends with the process.
func sharedServer() (string, error) {
	if given := os.Getenv(Env); given != "" {
		return given, nil
	}
	c, err := ownCluster()
	if err != nil {
		return "", err
	}
	return c.URL(), nil
}

// ownCluster keeps the cluster reachable for the life of the process: were it
// collected, the leash would close.
var ownCluster = sync.OnceValues(func() (*Cluster, error) {
	return Start(context.Background(), "", nil)
})

// unavailable ends the test: skipped where PostgreSQL is simply not there, failed
// where it does not work or where nothing may be skipped.
func unavailable(tb TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
		tb.Skipf("skipped: %v", err)
	}
	tb.Fatalf("%v", err)
}
