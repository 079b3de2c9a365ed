package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/store/sqlite"
)

// listing makes a listing of n orders. AMENDS_BENCH_SIGHTINGS says how many; 10,000,000 need 3 GB
// of disk.
func listing(b *testing.B) (s *sqlite.DB, n int) {
	b.Helper()
	n = 200_000
	if text := os.Getenv("AMENDS_BENCH_SIGHTINGS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	p := scan.Position{Name: "orders/source", State: []byte(`{}`)}
	for from := 0; from < n; from += 5000 {
		if p, err = s.Advance(b.Context(), p, page(from, min(5000, n-from), 1)); err != nil {
			b.Fatal(err)
		}
	}
	return s, n
}

// page is a page of n orders.
func page(from, n int, generation int64) scan.Catch {
	rows := make([]scan.Sighting, n)
	for i := range rows {
		id := fmt.Sprintf("%08d", from+i)
		f := plan.Fields{"customer": "customer-" + id[4:], "total": id, "currency": "EUR", "lines": "3"}
		rows[i] = scan.Sighting{Key: "shop:order:" + id, ID: id, Partition: "2026-" + id[:4], Generation: generation,
			Revision: "2026-11-20T10:00:00.000Z", Flags: scan.Wanted, Fingerprint: scan.Fingerprint("1", f), Fields: f}
	}
	return scan.Catch{Name: "orders", Side: scan.SourceSide, Sightings: rows}
}

// How fast a listing streams into a comparison.
func BenchmarkSightings(b *testing.B) {
	s, n := listing(b)
	for _, bare := range []bool{true, false} {
		b.Run(fmt.Sprintf("bare=%t", bare), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				r := scan.Read(b.Context(), s, scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Generation: 1, Bare: bare})
				var seen plan.Seen
				read := 0
				for more, err := r.Seen(&seen); more || err != nil; more, err = r.Seen(&seen) {
					if err != nil {
						b.Fatal(err)
					}
					read++
				}
				r.Close()
				if read != n {
					b.Fatalf("%d of %d rows", read, n)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(after.HeapInuse)/1e6, "heap-MB")
		})
	}
}

// How fast a page of a listing is stored, again and again.
func BenchmarkAdvance(b *testing.B) {
	s, _ := listing(b)
	p, err := s.Position(b.Context(), "orders/source")
	if err != nil {
		b.Fatal(err)
	}
	rows, n := page(0, 200, 2), 0
	for b.Loop() {
		p.State = []byte(strconv.Itoa(n))
		if p, err = s.Advance(b.Context(), p, rows); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(200*n)/b.Elapsed().Seconds(), "rows/s")
}
