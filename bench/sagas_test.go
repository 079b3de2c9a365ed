package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/amends-dev/amends/bench/amends"
	"github.com/amends-dev/amends/bench/floor"
	"github.com/amends-dev/amends/bench/preload"
	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/retention"
	"github.com/amends-dev/amends/store"
)

// opener opens an engine on an empty ledger.
type opener = func(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error)

var floors = map[string]opener{onSQLite: floor.SQLite, onPostgres: floor.Postgres}

func engine(v amends.Variant) opener {
	return func(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error) {
		return amends.Open(ctx, address, steps, v)
	}
}

// sagas is an engine with n sagas to run, numbered from first on, and those that warm it up. When it
// is closed each of their steps must have run once.
func sagas(b *testing.B, ledger, address string, open opener, first, n int) subject {
	b.Helper()
	steps, free := workload.NewSteps(first, n)
	b.Cleanup(free)
	e, err := open(context.WithoutCancel(b.Context()), address, steps)
	must(b, err)
	return subject{ledger, address,
		func(ctx context.Context, i int) error { return e.Run(ctx, workload.NewSaga(first+i)) },
		func() error { return errors.Join(e.Close(), steps.Verify(n)) },
	}
}

// beside measures two subjects, in any order, and returns the figures of both. The timer is of the first.
func beside(b *testing.B, inFlight int, open, other func() subject) (f, of figures) {
	b.Helper()
	b.StopTimer()
	if rand.IntN(2) == 0 {
		of = other().measure(b, inFlight, b.N, false)
	}
	f = open().measure(b, inFlight, b.N, true)
	if of.n == 0 {
		of = other().measure(b, inFlight, b.N, false)
	}
	return f, of
}

// perSaga are the figures of sagas.
func perSaga(f *figures) map[string]float64 {
	return map[string]float64{
		"sagas/s": f.perSecond(), "p50-ms": ms(f.p50), "p99-ms": ms(f.p99),
		"commits/saga": float64(f.cost.Commits) / float64(f.n), "log-B/saga": float64(f.cost.LogBytes) / float64(f.n),
		"cpu-ms/saga": f.cpu(), "db-cpu-ms/saga": ms(f.cost.DatabaseCPU) / float64(f.n), "peak-B": float64(f.peak),
	}
}

// BenchmarkSagas is amends beside the floor, in one run. One iteration is one saga of each.
func BenchmarkSagas(b *testing.B) {
	for _, ledger := range ledgers {
		for _, inFlight := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("ledger=%s/in-flight=%d", ledger, inFlight), func(b *testing.B) {
				n := warm(inFlight) + b.N
				f, of := beside(b, inFlight,
					func() subject { return sagas(b, ledger, fresh(b, ledger), engine(amends.Variant{}), 0, n) },
					func() subject { return sagas(b, ledger, fresh(b, ledger), floors[ledger], 0, n) })
				all := perSaga(&f)
				all["floor-sagas/s"], all["%floor"], all["floor-cpu-ms/saga"] = of.perSecond(), 100*f.perSecond()/of.perSecond(), of.cpu()
				all["floor-p50-ms"] = ms(of.p50)
				report(b, all)
			})
		}
	}
}

// BenchmarkSingle is amends with one transaction for each record.
func BenchmarkSingle(b *testing.B) { variant(b, amends.Variant{Single: true}, 64) }

// BenchmarkSlow is amends with a third step that takes 400 ms, so that hundreds are under way at one destination; 1,024 in flight
// make 2,560 sagas a second at best.
func BenchmarkSlow(b *testing.B) { variant(b, amends.Variant{Slow: true}, 1024) }

// BenchmarkSealed is amends with sealed bodies, beside itself without.
func BenchmarkSealed(b *testing.B) {
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			n := warm(1024) + b.N
			s, plain := beside(b, 1024,
				func() subject { return sagas(b, ledger, fresh(b, ledger), engine(amends.Variant{Sealed: true}), 0, n) },
				func() subject { return sagas(b, ledger, fresh(b, ledger), engine(amends.Variant{}), 0, n) })
			all := perSaga(&s)
			all["%plain"], all["plain-cpu-ms/saga"] = 100*s.perSecond()/plain.perSecond(), plain.cpu()
			report(b, all)
		})
	}
}

func variant(b *testing.B, v amends.Variant, inFlight int) {
	b.Helper()
	for _, ledger := range ledgers {
		b.Run(fmt.Sprintf("ledger=%s/in-flight=%d", ledger, inFlight), func(b *testing.B) {
			f := sagas(b, ledger, fresh(b, ledger), engine(v), 0, warm(inFlight)+b.N).measure(b, inFlight, b.N, true)
			report(b, perSaga(&f))
		})
	}
}

// templates is how many sagas are run for real before they are copied.
const templates = 500

// grown are ledgers with many finished works, and the number of the next saga in each.
var grown = map[string]*struct {
	address string
	next    int
}{}

// grow returns the address of a ledger with finished works, and the first number of n new ones.
func grow(b *testing.B, ledger string, n int) (address string, first int) {
	b.Helper()
	b.StopTimer()
	g := grown[ledger]
	if g == nil {
		address := kept(b, ledger)
		finish(b, ledger, address, 0, templates)
		db := database(b, ledger, address, "_pragma=synchronous(0)&_pragma=cache_size(-200000)") // a crash here costs a benchmark
		must(b, preload.Fill(b.Context(), db, number(b, "WORKS", 1_000_000), func(int) {}), db.Close())
		syscall.Sync() // gigabytes on their way to the disk would be measured, too
		grown[ledger] = &struct {
			address string
			next    int
		}{address, templates}
		g = grown[ledger]
	}
	first, g.next = g.next, g.next+n
	return g.address, first
}

// finish runs the sagas of a range for real, 64 at a time.
func finish(b *testing.B, ledger, address string, first, n int) {
	b.Helper()
	s := sagas(b, ledger, address, engine(amends.Variant{}), first, n)
	_, err := s.loop(b.Context(), 0, n, 64, nil)
	must(b, err, s.close())
}

// BenchmarkGrown is what a million finished works cost a new one: a ledger with them beside an empty one. WORKS=n has fewer.
func BenchmarkGrown(b *testing.B) {
	for _, ledger := range ledgers {
		for _, inFlight := range []int{1, 64} {
			b.Run(fmt.Sprintf("ledger=%s/in-flight=%d", ledger, inFlight), func(b *testing.B) {
				n := warm(inFlight) + b.N
				address, first := grow(b, ledger, n)
				f, of := beside(b, inFlight,
					func() subject { return sagas(b, ledger, address, engine(amends.Variant{}), first, n) },
					func() subject { return sagas(b, ledger, fresh(b, ledger), engine(amends.Variant{}), 0, n) })
				report(b, map[string]float64{
					"sagas/s": f.perSecond(), "empty-sagas/s": of.perSecond(), "%slower": 100 * (of.perSecond()/f.perSecond() - 1),
					"cpu-ms/saga": f.cpu(), "empty-cpu-ms/saga": of.cpu(),
				})
			})
		}
	}
}

// BenchmarkForget is what letting go of finished works costs new ones: the same ledger, with a run of retention beside it and without. WORKS=n has
// fewer finished works than a million; each run takes 200 a second, bodies first and then records.
func BenchmarkForget(b *testing.B) {
	for _, ledger := range ledgers {
		for _, left := range []string{retention.Bodies, retention.Records} {
			b.Run(fmt.Sprintf("ledger=%s/goes=%s/in-flight=64", ledger, left), func(b *testing.B) {
				n := warm(64) + b.N
				address, first := grow(b, ledger, 2*n)
				age(b, ledger, address)
				forgotten := 0
				f, of := beside(b, 64,
					func() subject {
						s := sagas(b, ledger, address, engine(amends.Variant{}), first, n)
						return subject{s.ledger, s.address, s.do, forgetting(b, address, left, &forgotten, s.close)}
					},
					func() subject { return sagas(b, ledger, address, engine(amends.Variant{}), first+n, n) })
				report(b, map[string]float64{
					"p50-ms": ms(f.p50), "p99-ms": ms(f.p99), "alone-p50-ms": ms(of.p50), "alone-p99-ms": ms(of.p99), "x-p99": float64(f.p99) / float64(of.p99),
					"forgotten": float64(forgotten), "sagas/s": f.perSecond(), "alone-sagas/s": of.perSecond(),
				})
			})
		}
	}
}

// age makes finished works three days old.
func age(b *testing.B, ledger, address string) {
	b.Helper()
	db := database(b, ledger, address, "")
	by := map[string]string{onSQLite: "3 * 86400000000", onPostgres: "interval '3 days'"}[ledger]
	now := map[string]string{onSQLite: "unixepoch() * 1000000", onPostgres: "now()"}[ledger]
	_, err := db.ExecContext(b.Context(), "UPDATE amends_instances SET updated_at = updated_at - "+by+" WHERE finished_at IS NOT NULL AND updated_at > "+now+" - "+by)
	must(b, err, db.Close())
}

// forgetting runs retention until what it returns is called, which then closes what it is beside.
func forgetting(b *testing.B, address, left string, forgotten *int, then func() error) (end func() error) {
	b.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	db, err := store.Open(ctx, address, nil)
	must(b, err)
	keeping(b, db, map[string]string{retention.Bodies: `{"bodies":"48h"}`, retention.Records: `{"records":"48h"}`}[left])
	ended := make(chan error, 1)
	go func() {
		report, err := retention.Run(ctx, db, nil)
		for _, line := range report.Lines {
			*forgotten += line.Works
		}
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		ended <- err
	}()
	return func() error {
		stop()
		return errors.Join(<-ended, db.Close(), then())
	}
}

// keeping says what is kept of all sagas.
func keeping(b *testing.B, db store.DB, policy string) {
	b.Helper()
	controls, _, err := db.Controls(b.Context())
	must(b, err)
	set := ledger.Control{Kind: ledger.ControlRetention, Name: retention.DefaultName, Body: []byte(policy), Actor: "bench", Reason: "it is measured", Nonce: rand.Int64()}
	for _, c := range controls {
		if c.Kind == set.Kind && c.Name == set.Name {
			set.Version = c.Version
		}
	}
	_, err = db.SetControl(b.Context(), 0, set)
	must(b, err)
}

// BenchmarkMonth is thirty days of a ledger with retention: each has as many works as there are iterations (-benchtime 2000x), and a run of retention.
// The bodies of a work go when it is three days old, its records at seven and its key at fourteen: works are made older when their day comes.
// PostgreSQL is vacuumed once a day, as it does by itself. With GROWTH=keys no key goes, and a tombstone is what each work leaves.
func BenchmarkMonth(b *testing.B) {
	const days = 30
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			policy := `{"bodies":"2160h","records":"16800h","key":"48000h"}`
			if os.Getenv("GROWTH") == "keys" {
				policy = `{"bodies":"2160h","records":"16800h"}`
			}
			b.StopTimer()
			address, n := fresh(b, ledger), warm(64)+b.N
			all := map[string]float64{}
			for day := 1; day <= days; day++ {
				f := sagas(b, ledger, address, engine(amends.Variant{}), day*n, n).measure(b, 64, b.N, true)
				tidy(b, ledger, address, policy, func(age int) (from, to int) { return (day - age) * n, (day - age + 1) * n })
				b.Logf("%s, day %2d: %7.1f MB, p50 %5.1f ms, p99 %5.1f ms, %5.0f sagas/s", ledger, day, float64(size(b, ledger, address))/1e6, ms(f.p50), ms(f.p99), f.perSecond())
				if day == days/2 || day == days {
					all[fmt.Sprintf("MB-day-%d", day)], all[fmt.Sprintf("p99-ms-day-%d", day)] = float64(size(b, ledger, address))/1e6, ms(f.p99)
				}
			}
			report(b, all)
		})
	}
}

// tidy makes works older whose day has come, and runs retention. those are the numbers of the works that are so many days old.
func tidy(b *testing.B, ledger, address, policy string, those func(age int) (from, to int)) {
	b.Helper()
	raw := database(b, ledger, address, "")
	for age, hours := range map[int]int{3: 2200, 7: 17000, 14: 50000} {
		from, to := those(age)
		if from <= 0 {
			continue
		}
		at := map[string]string{onSQLite: fmt.Sprintf("(unixepoch() - %d * 3600) * 1000000", hours), onPostgres: fmt.Sprintf("now() - interval '%d hours'", hours)}[ledger]
		_, err := raw.ExecContext(b.Context(), raw.Rebind("UPDATE amends_instances SET updated_at = "+at+" WHERE work_id >= ? AND work_id < ?"), workload.NewSaga(from).Work, workload.NewSaga(to).Work)
		must(b, err)
	}
	db, err := store.Open(b.Context(), address, nil)
	must(b, err)
	keeping(b, db, policy)
	_, err = retention.Run(b.Context(), db, &retention.Options{PerSecond: 100_000})
	must(b, err, db.Close())
	if ledger == onPostgres {
		_, err = raw.ExecContext(b.Context(), "VACUUM")
	}
	must(b, err, raw.Close())
}

// BenchmarkSize is what a finished work takes on disk. One iteration is one work: -benchtime 20000x.
func BenchmarkSize(b *testing.B) {
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			b.StopTimer()
			address := fresh(b, ledger)
			finish(b, ledger, address, 0, 1)
			before := size(b, ledger, address)
			b.StartTimer()
			finish(b, ledger, address, 1, b.N)
			b.StopTimer()
			report(b, map[string]float64{"B/work": float64(size(b, ledger, address)-before) / float64(b.N)})
		})
	}
}

// size is that of a database that no process has open.
func size(b *testing.B, ledger, address string) (n int64) {
	b.Helper()
	if ledger == onSQLite {
		info, err := os.Stat(address)
		must(b, err)
		return info.Size()
	}
	db := database(b, ledger, address, "")
	must(b, db.Get(&n, "SELECT pg_database_size(current_database())"), db.Close())
	return n
}
