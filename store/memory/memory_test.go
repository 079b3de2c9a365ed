package memory_test

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/storetest"
	"github.com/amends-dev/amends/store/memory"
)

// store is a database whose clock can be stopped.
type store struct {
	*memory.DB

	stopped time.Time
}

func (s *store) now() time.Time {
	if s.stopped.IsZero() {
		return time.Now()
	}
	return s.stopped
}

// of is the store behind one of the suite.
func of(t storetest.T, s storetest.Store) *store {
	t.Helper()
	db, ok := s.(*store)
	if !ok {
		t.Fatalf("a store of the suite is a %T", s)
	}
	return db
}

// harness makes databases with limits.
func harness(l ledger.Limits) storetest.Harness {
	return storetest.Harness{
		Open: func(storetest.T) storetest.Store {
			s := new(store)
			s.DB = memory.New(&memory.Options{Now: s.now, Limits: l})
			return s
		},
		Change: func(t storetest.T, s storetest.Store) {
			t.Helper()
			db := of(t, s)
			db.FailOver(db.Backup())
		},
		SetTime: func(t storetest.T, s storetest.Store, at time.Time) { t.Helper(); of(t, s).stopped = at },
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness(ledger.Limits{}))
}

// The suite finds every rule that a database can break.
func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	storetest.Prove(t, harness(ledger.Limits{}), "TestConformance")
}

// A database of several nodes keeps to the same, with clocks that are apart.
func TestConformanceOfSeveralNodes(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness(ledger.Limits{Skew: 20 * time.Millisecond, Forgets: true}))
}
