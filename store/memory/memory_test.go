package memory_test

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/store/memory"
	"github.com/amends-dev/amends/store/storetest"
)

// ledgers is the suite of what a coordinator needs, inboxes that of what a reconciler needs.
var (
	ledgers = ledgertest.Harness{
		Open: func(*testing.T) ledgertest.Store { return memory.New(nil) },
		Change: func(t *testing.T, s ledgertest.Store) {
			t.Helper()
			db, ok := s.(*memory.DB)
			if !ok {
				t.Fatalf("a store of the suite is a %T", s)
			}
			db.FailOver(db.Backup())
		},
	}
	inboxes = storetest.Harness{
		Open: func(*testing.T) storetest.Store { return memory.New(nil) },
	}
)

func TestLedger(t *testing.T) {
	t.Parallel()
	ledgers.Run(t)
}

func TestInbox(t *testing.T) {
	t.Parallel()
	inboxes.Run(t)
}

// A database of several nodes keeps to the same, with clocks that are apart (K10).
func TestLedgerOfSeveralNodes(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(*testing.T) ledgertest.Store {
		return memory.New(&memory.Options{Limits: ledger.Limits{Skew: 20 * time.Millisecond, Forgets: true}})
	})
}

// The suites find every rule that a database can break.
func TestLedgerCatches(t *testing.T) {
	t.Parallel()
	ledgertest.Prove(t, "TestLedger")
}

func TestInboxCatches(t *testing.T) {
	t.Parallel()
	inboxes.Prove(t, "TestInbox")
}
