package memory_test

import (
	"testing"

	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/store/memory"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Harness{
		Open: func(*testing.T) ledgertest.Store { return memory.New(nil) },
		Change: func(t *testing.T, s ledgertest.Store) {
			t.Helper()
			l, ok := s.(*memory.Ledger)
			if !ok {
				t.Fatalf("a store of the suite is a %T", s)
			}
			l.FailOver(l.Backup())
		},
	}.Run(t)
}

// The suite finds every rule that a ledger can break.
func TestConformanceCanFail(t *testing.T) {
	t.Parallel()
	ledgertest.Prove(t, "TestConformance")
}
