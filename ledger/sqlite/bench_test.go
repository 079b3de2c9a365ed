package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/sqlite"
	"github.com/amends-dev/amends/saga"
)

// BenchmarkAppend stores sagas of five records in batches of one step each: start, three steps, the end. One
// iteration is one record.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			l, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			lease, err := l.OpenSession(b.Context(), time.Hour, "bench")
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for n := 0; n < b.N; {
				entries := starts(lease.Token, size, n)
				for step := range 5 {
					if step > 0 {
						follow(entries, lease.Token, step)
					}
					answers, err := l.Append(b.Context(), lease.Token, entries)
					if err != nil {
						b.Fatal(err)
					}
					for i, a := range answers {
						if a.Result != ledger.Appended {
							b.Fatalf("step %d: %+v", step, a)
						}
						entries[i].Head = a.Head
					}
					n += size
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func starts(t saga.Token, size, n int) []ledger.Entry {
	entries := make([]ledger.Entry, size)
	for i := range entries {
		e := &entries[i]
		e.ID = saga.ID{Saga: "order-to-invoice", Work: fmt.Sprintf("shop:order:%d-%d", n, i)}
		e.Schedule = &ledger.Schedule{Hold: true}
		e.Record = saga.Record{
			Kind: saga.KindStarted, Version: 1, Revision: "2026-11-20T10:00:00Z", Status: saga.Running,
			Body: []byte(`{"order":10492,"total":4200,"currency":"EUR"}`), Arm: arm(0),
		}
		e.Record.Seal(e.ID, 0, saga.Hash{}, t)
	}
	return entries
}

// follow makes every entry the next record of its chain.
func follow(entries []ledger.Entry, t saga.Token, step int) {
	for i := range entries {
		e := &entries[i]
		seq, prev := e.Record.Seq, e.Record.Hash
		e.Prev, e.Schedule = prev, nil
		e.Record = saga.Record{
			Kind: saga.KindDone, Step: steps[step-1], Direction: saga.Forward, Attempt: 1, Status: saga.Running,
			ExternalID: fmt.Sprintf("ext_%012d", e.Head), Body: []byte(`{"id":"ext_000000000001"}`),
		}
		if step < 4 {
			e.Record.Arm = arm(step)
		} else {
			e.Record.Status, e.Schedule = saga.Completed, &ledger.Schedule{}
		}
		e.Record.Seal(e.ID, seq, prev, t)
	}
}

var steps = []string{"customer", "invoice", "mark-synced", "receipt"}

func arm(step int) *saga.Arm {
	return &saga.Arm{
		Step: steps[step], Direction: saga.Forward, Attempt: 1,
		Key: "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6", Budget: 30 * time.Second,
	}
}
