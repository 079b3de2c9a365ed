package bench

import (
	"context"
	"runtime"
	"testing"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/drifting"
)

// BenchmarkMerge is the comparison alone of N objects (10,000,000), over rows that are made on the way. -benchtime 1x.
func BenchmarkMerge(b *testing.B) {
	n := number(b, "N", 10_000_000)
	planned(b, n, cost.Process(), func(ctx context.Context) error { return drifting.Merge(ctx, int64(n)) })
}

// BenchmarkPlan is what a reconciler does with N listed objects (10,000,000, and a tenth of them on Postgres), of which one in a
// thousand differs: compare streams and merges listings and ledger, bare without their fields; plan is the whole way to a
// stored plan. -benchtime 1x; ten million objects take 6 GB of disk.
func BenchmarkPlan(b *testing.B) {
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			n := number(b, "N", 10_000_000)
			if ledger == onPostgres {
				n /= 10
			}
			address := fresh(b, ledger)
			job, err := drifting.Open(b.Context(), ledger, address, int64(n))
			must(b, err)
			db := database(b, ledger, address, "_pragma=busy_timeout(60000)")
			db.SetMaxOpenConns(1)
			must(b, job.Fill(b.Context(), db, ledger, func(what string) { b.Log(ledger, what) }), db.Close())
			settle(b)
			m := meter(b, ledger, address)
			for part, do := range map[string]func(context.Context) error{
				"compare-bare": func(ctx context.Context) error { return job.Compare(ctx, true) },
				"compare":      func(ctx context.Context) error { return job.Compare(ctx, false) },
				"plan":         job.Plan,
			} {
				b.Run("part="+part, func(b *testing.B) { planned(b, n, m, do) })
			}
			must(b, job.Close(), m.Close()) // in this order: see cost.OpenSQLite
		})
	}
}

// planned measures something about n objects.
func planned(b *testing.B, n int, m cost.Meter, do func(context.Context) error) {
	b.Helper()
	b.StopTimer()
	runtime.GC()
	must(b, cost.ResetPeakMemory())
	var allocated, now runtime.MemStats
	runtime.ReadMemStats(&allocated)
	before, err := m.Read(b.Context())
	must(b, err)
	b.StartTimer()
	for range b.N {
		must(b, do(b.Context()))
	}
	b.StopTimer()
	after, err := m.Read(b.Context())
	must(b, err)
	runtime.ReadMemStats(&now)
	peak, err := cost.PeakMemory()
	must(b, err)
	spent, all := after.Sub(before), float64(n)*float64(b.N)
	report(b, map[string]float64{
		"s": b.Elapsed().Seconds() / float64(b.N), "objects/s": all / b.Elapsed().Seconds(), "peak-MB": float64(peak) / (1 << 20),
		"cpu-s/million": (spent.EngineCPU + spent.DatabaseCPU).Seconds() / all * 1e6, "allocs/object": float64(now.Mallocs-allocated.Mallocs) / all,
	})
}
