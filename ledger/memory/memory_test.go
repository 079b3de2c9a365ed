package memory_test

import (
	"testing"

	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/ledger/memory"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(*testing.T) ledgertest.Store { return memory.New(nil) })
}

// The suite finds every rule that a ledger can break.
func TestConformanceCanFail(t *testing.T) {
	t.Parallel()
	ledgertest.Prove(t, "TestConformance")
}
