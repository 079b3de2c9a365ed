// Package pace says which tests run when. There are three paces, and each runs all that the one
// before it does:
//
//	make check     what needs neither PostgreSQL nor another process, without the race detector:
//	               two minutes, and seconds when little changed. It is go test -short.
//	make test      with the race detector and PostgreSQL: all that must hold before a commit.
//	make nightly   AMENDS_NIGHTLY is set: every seed and scene, every broken switch, large ledgers.
//
// A test that says nothing runs in all three. [Day] and [Night] are called first in a test, by the
// test itself, so that docs/testing.md can tell which rules are held when.
package pace

import (
	"os"
	"testing"
)

// AtNight reports whether make nightly runs: a test then plays all it has.
func AtNight() bool { return os.Getenv("AMENDS_NIGHTLY") != "" }

// Day leaves the test to make test: it starts processes, or takes long.
func Day(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("make test runs it: -short is set")
	}
}

// Night leaves the test to make nightly.
func Night(tb testing.TB) {
	tb.Helper()
	if !AtNight() {
		tb.Skip("make nightly runs it: AMENDS_NIGHTLY is not set")
	}
}
