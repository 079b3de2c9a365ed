package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// BenchmarkAppend stores sagas of five records in batches of one step each: start, three steps, the
// end. One iteration is one record.
func BenchmarkAppend(b *testing.B) {
	for _, d := range databases {
		for _, size := range []int{1, 64, 512} {
			for _, writers := range d.writers {
				b.Run(fmt.Sprintf("%s/batch=%d/writers=%d", d.name, size, writers), func(b *testing.B) {
					l := d.open(b)
					defer func() {
						if err := l.Close(); err != nil {
							b.Error(err)
						}
					}()
					lease, err := l.OpenSession(b.Context(), time.Hour, "bench", nil)
					if err != nil {
						b.Fatal(err)
					}
					b.ResetTimer()
					var g errgroup.Group
					for w := range writers {
						g.Go(func() error { return run(b, l, lease.Token, w, size, b.N/writers) })
					}
					if err := g.Wait(); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
				})
			}
		}
	}
}

var databases = []struct {
	name    string
	writers []int
	open    func(b *testing.B) ledger.Ledger
}{
	{"sqlite", []int{1}, func(b *testing.B) ledger.Ledger {
		b.Helper()
		l, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		return l
	}},
	{"postgres", []int{1, 2}, func(b *testing.B) ledger.Ledger {
		b.Helper()
		l, err := postgres.Open(b.Context(), pgtest.URL(b), &postgres.Options{Migrate: true})
		if err != nil {
			b.Fatal(err)
		}
		return l
	}},
}

// BenchmarkEmptyClaim is what a process that knows a hundred definitions costs the database while
// there is nothing to do.
func BenchmarkEmptyClaim(b *testing.B) {
	var known []ledger.Version
	for i := range 100 {
		known = append(known, ledger.Version{Saga: fmt.Sprint("saga-", i), Version: 1})
	}
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			l := d.open(b)
			defer func() {
				if err := l.Close(); err != nil {
					b.Error(err)
				}
			}()
			lease, err := l.OpenSession(b.Context(), time.Hour, "bench", known)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := l.Claim(b.Context(), lease.Token, ledger.Claim{Limit: 100, Fresh: 25, Known: known}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// run stores at least n records in batches.
func run(b *testing.B, l ledger.Ledger, t machine.Token, writer, size, n int) error {
	b.Helper()
	for done := 0; done < n; {
		entries := starts(t, size, fmt.Sprintf("%d-%d", writer, done))
		for step := range 5 {
			if step > 0 {
				follow(entries, t, step)
			}
			answers, err := l.Append(b.Context(), t, entries)
			if err != nil {
				return err
			}
			for i, a := range answers {
				if a.Result != ledger.Appended {
					return fmt.Errorf("step %d: %+v", step, a)
				}
				entries[i].Number = a.Number
			}
			done += size
		}
	}
	return nil
}

func starts(t machine.Token, size int, name string) []ledger.Entry {
	entries := make([]ledger.Entry, size)
	for i := range entries {
		e := &entries[i]
		e.ID = saga.ID{Saga: "order-to-invoice", Work: fmt.Sprintf("shop:order:%s-%d", name, i)}
		e.Schedule = &ledger.Schedule{Hold: true}
		e.Record = machine.Record{
			Kind: machine.KindStarted, Version: 1, Revision: revision, Status: saga.Running,
			Body: []byte(`{"order":10492,"total":4200,"currency":"EUR"}`), Dispatch: arm(e.ID, 0),
		}
		e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, t)
	}
	return entries
}

// follow makes every entry the next record of its chain.
func follow(entries []ledger.Entry, t machine.Token, step int) {
	for i := range entries {
		e := &entries[i]
		seq, prev := e.Record.Seq, e.Record.Hash
		e.Prev, e.Schedule, e.Revision = prev, nil, revision
		e.Record = machine.Record{
			Kind: machine.KindDone, Step: steps[step-1], Direction: saga.Forward, Attempt: 1, Status: saga.Running,
			ExternalID: fmt.Sprintf("ext_%012d", e.Number), Body: []byte(`{"id":"ext_000000000001"}`),
		}
		if step < 4 {
			e.Record.Dispatch = arm(e.ID, step)
		} else {
			e.Record.Status, e.Schedule = saga.Completed, &ledger.Schedule{}
		}
		e.Record.Seal(e.ID, machine.Salt{}, seq, prev, t)
	}
}

var steps = []string{"customer", "invoice", "mark-synced", "receipt"}

const revision = "2026-11-20T10:00:00Z"

func arm(id saga.ID, step int) *machine.Dispatch {
	return &machine.Dispatch{
		Step: steps[step], Direction: saga.Forward, Attempt: 1,
		Key: machine.StepKey(machine.RootKey(id.Saga, id.Work, revision), steps[step], saga.Forward, 0), Budget: 30 * time.Second,
	}
}
