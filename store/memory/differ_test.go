package memory_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/storetest"
)

// What is the same twice answers the same: no answer of the reference depends on chance.
func TestDiffer(t *testing.T) {
	t.Parallel()
	storetest.Differ(t, harness(ledger.Limits{}))
}

// Histories show what only a rare one meets.
func TestDifferCatches(t *testing.T) {
	t.Parallel()
	storetest.DifferCatches(t, harness(ledger.Limits{}))
}
