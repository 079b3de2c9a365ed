package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/ledger/sqlite"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t *testing.T) ledgertest.Store {
		l, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}

func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	ledgertest.Prove(t, "TestConformance")
}
