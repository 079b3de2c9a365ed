package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/amends-dev/amends/bench/hear"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store"
)

// inboxStore is what hears and judges.
type inboxStore interface {
	hear.Acceptor
	intake.Gate
}

func openInbox(b *testing.B, address string) inboxStore {
	b.Helper()
	db, err := store.Open(context.WithoutCancel(b.Context()), address, &store.Options{Migrate: true})
	must(b, err)
	return db
}

// BenchmarkAccept is deliveries that become durable, beside a bare insert of the same rows: one call each, from the call to the
// durable answer. One iteration is one delivery to each.
func BenchmarkAccept(b *testing.B) {
	bares := map[string]func(context.Context, string) (hear.Acceptor, error){onSQLite: hear.BareSQLite, onPostgres: hear.BarePostgres}
	for _, ledger := range ledgers {
		for _, inFlight := range []int{64, 1024} {
			b.Run(fmt.Sprintf("ledger=%s/in-flight=%d", ledger, inFlight), func(b *testing.B) {
				hears := func(open func(address string) hear.Acceptor) func() subject {
					return func() subject {
						address := fresh(b, ledger)
						a := open(address)
						return subject{ledger, address, func(ctx context.Context, i int) error { return hear.Deliver(ctx, a, i) }, a.Close}
					}
				}
				f, of := beside(b, inFlight,
					hears(func(address string) hear.Acceptor { return openInbox(b, address) }),
					hears(func(address string) hear.Acceptor {
						a, err := bares[ledger](context.WithoutCancel(b.Context()), address)
						must(b, err)
						return a
					}))
				report(b, map[string]float64{
					"deliveries/s": f.perSecond(), "bare/s": of.perSecond(), "%bare": 100 * f.perSecond() / of.perSecond(),
					"p50-ms": ms(f.p50), "p99-ms": ms(f.p99), "bare-p99-ms": ms(of.p99), "cpu-ms/delivery": f.cpu(), "bare-cpu-ms/delivery": of.cpu(),
				})
			})
		}
	}
}

// BenchmarkJudge is what the gate decides, 500 deliveries at a time, two batches at once: deliveries read, judged with their
// objects' entries locked, and both stored. One iteration is three versions of one object: -benchtime 10000x.
func BenchmarkJudge(b *testing.B) {
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			b.StopTimer()
			address := fresh(b, ledger)
			s := openInbox(b, address)
			must(b, hear.Fill(b.Context(), s, int64(b.N)))
			settle(b)
			m := meter(b, ledger, address)
			before, err := m.Read(b.Context())
			must(b, err)
			b.StartTimer()
			judged, news, err := hear.Judge(b.Context(), s, 2, 500)
			b.StopTimer()
			must(b, err)
			after, err := m.Read(b.Context())
			must(b, err, s.Close(), m.Close())
			if judged != int64(hear.Versions*b.N) || news < int64(b.N) {
				b.Fatalf("the gate judged %d of %d deliveries and applied %d", judged, hear.Versions*b.N, news)
			}
			spent := after.Sub(before)
			report(b, map[string]float64{
				"decisions/s": float64(judged) / b.Elapsed().Seconds(), "cpu-ms/decision": ms(spent.EngineCPU+spent.DatabaseCPU) / float64(judged),
			})
		})
	}
}
