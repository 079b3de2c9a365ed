package plan_test

import (
	"fmt"
	"testing"

	"github.com/amends-dev/amends/internal/plan"
)

// inSync are n keys with three sides that agree. The keys share memory, so that it is the merge
// that is measured.
func inSync(n int) (sides func() plan.Sides) {
	rows, known := make([]plan.Seen, n), make([]plan.Head, n)
	for i := range n {
		key := fmt.Sprintf("shop:order:%09d", i)
		rows[i] = plan.Seen{Key: key, ID: key, Revision: "7", Wanted: true, Fingerprint: plan.Fingerprint{1}}
		known[i] = plan.Head{Key: key, Known: *done()}
	}
	return func() plan.Sides {
		return plan.Sides{Source: stream(rows), Destination: stream(rows), Ledger: stream(known)}
	}
}

// What is in sync costs no memory.
func TestInSyncAllocatesNothing(t *testing.T) {
	const n = 10_000
	sides := inSync(n)
	if got := testing.AllocsPerRun(5, func() {
		counts, err := (&plan.Comparison{Complete: true}).Compare(t.Context(), sides(), nil)
		if err != nil || counts.Tallies[0].Count != n {
			t.Fatal(counts, err)
		}
	}); got > 50 {
		t.Errorf("%v allocations for %d keys", got, n)
	}
}

func BenchmarkCompareInSync(b *testing.B) {
	const n = 1_000_000
	sides := inSync(n)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (&plan.Comparison{Complete: true}).Compare(b.Context(), sides(), nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
}

func BenchmarkPlanner(b *testing.B) {
	f := plan.Finding{Class: plan.Diverged, Action: plan.Ask, Reason: "fields of ours were changed at the destination", Changes: []plan.Change{{Field: "total", Actual: "1", Desired: "2"}}, Documents: []string{"inv_1"}}
	p, n := plan.NewPlanner(&plan.Plan{Job: "books"}, nil), 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		f.Key = fmt.Sprintf("shop:order:%012d", n)
		if err := p.Add(&f); err != nil {
			b.Fatal(err)
		}
	}
}
