package hear

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/internal/pgtest"
)

// free is a meter that costs nothing and reads nothing.
type free struct{}

func (free) Read(context.Context) (cost.Reading, error) { return cost.Reading{}, nil }
func (free) Close() error                               { return nil }

// What a load reports as accepted is in the table, once.
func TestAcceptedIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		driver, address, table string
		open                   func(context.Context, string) (Acceptor, error)
	}{
		"bare sqlite":   {"sqlite", filepath.Join(t.TempDir(), "bare.db"), "bare", BareSQLite},
		"bare postgres": {"postgres", pgtest.URL(t), "bare", BarePostgres},
		"sqlite": {"sqlite", filepath.Join(t.TempDir(), "store.db"), "amends_inbox",
			func(ctx context.Context, path string) (Acceptor, error) { return SQLite(ctx, path) }},
		"postgres": {"postgres", pgtest.URL(t), "amends_inbox",
			func(ctx context.Context, url string) (Acceptor, error) { return Postgres(ctx, url) }},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := c.open(t.Context(), c.address)
			if err != nil {
				t.Fatal(err)
			}
			result, err := Load{InFlight: 20, Duration: 200 * time.Millisecond, Meter: free{}}.Drive(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			db := sqlx.MustConnect(c.driver, c.address)
			defer db.Close()
			var there int
			if err := db.Get(&there, `SELECT count(*) FROM `+c.table); err != nil || there != result.Deliveries {
				t.Errorf("%d deliveries were accepted, %d are there (%v)", result.Deliveries, there, err)
			}
			if result.P50 <= 0 || result.P99 < result.P50 {
				t.Errorf("p50 %v, p99 %v", result.P50, result.P99)
			}
		})
	}
}

// Every delivery is judged, by several judges too, or the figure is none.
func TestDecisions(t *testing.T) {
	address := pgtest.URL(t)
	for name, open := range map[string]func() (Store, error){
		"sqlite":   func() (Store, error) { return SQLite(t.Context(), filepath.Join(t.TempDir(), "store.db")) },
		"postgres": func() (Store, error) { return Postgres(t.Context(), address) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			j, err := Decisions{Objects: 120, Batch: 25, Judges: 2, Meter: free{}}.Drive(t.Context(), s)
			if err != nil || j.Deliveries != 360 {
				t.Errorf("judged %d, %v; want 360", j.Deliveries, err)
			}
		})
	}
}
