package amends

import (
	"context"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// variant is an engine on an empty ledger, and how to read that ledger.
type variant struct {
	name    string
	address string
	open    func(context.Context, string, *workload.Steps) (workload.Engine, error)
	read    func(ctx context.Context, address string) (readable, error)
}

// readable is a ledger as people read it.
type readable interface {
	ledger.Catalogue
	Close() error
}

func variants(t *testing.T) []variant {
	t.Helper()
	file := func() string { return filepath.Join(t.TempDir(), "ledger.db") }
	readSQLite := func(ctx context.Context, path string) (readable, error) { return sqlite.Open(ctx, path, nil) }
	readPostgres := func(ctx context.Context, url string) (readable, error) { return postgres.Open(ctx, url, nil) }
	return []variant{
		{"sqlite", file(), SQLite, readSQLite},
		{"sqlite without group commit", file(), SQLiteSingle, readSQLite},
		{"postgres", pgtest.URL(t), Postgres, readPostgres},
		{"postgres without group commit", pgtest.URL(t), PostgresSingle, readPostgres},
	}
}

// What the benchmark measures is the whole product: every saga it reports is in the
// ledger, completed, as the five records of a saga that goes well, each step with
// the external id of its one run, and nobody holds it any more.
func TestMeasuredSagasAreInTheLedger(t *testing.T) {
	const sagas = 100
	for _, v := range variants(t) {
		t.Run(v.name, func(t *testing.T) {
			steps := workload.NewSteps(0, sagas)
			e, err := v.open(t.Context(), v.address, steps)
			if err != nil {
				t.Fatal(err)
			}
			var g errgroup.Group
			g.SetLimit(20)
			for n := range sagas {
				g.Go(func() error { return e.Run(t.Context(), workload.NewSaga(n)) })
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if err := steps.Verify(sagas); err != nil {
				t.Fatal(err)
			}

			l, err := v.read(t.Context(), v.address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			heads, err := ledger.First(t.Context(), l, ledger.Filter{Limit: 2 * sagas})
			if err != nil || len(heads) != sagas {
				t.Fatalf("the ledger holds %d works, want %d (%v)", len(heads), sagas, err)
			}
			for _, h := range heads {
				if h.Status != saga.Completed || h.Session != 0 {
					t.Errorf("%s is %s and held by %v", h.ID.Work, h.Status, h.Session)
				}
				records, err := l.History(t.Context(), h.ID)
				if err != nil {
					t.Fatal(err)
				}
				var ids []string
				for _, r := range records {
					if r.ExternalID != "" { // one that waited for a slot has a record more
						ids = append(ids, r.ExternalID)
					}
				}
				if len(ids) != workload.StepCount || len(ids[0]) != 20 || ids[0] == ids[1] {
					t.Errorf("%s is %d records with the external ids %q, want %d ids", h.ID.Work, len(records), ids, workload.StepCount)
				}
			}
		})
	}
}

// A work that is in the ledger already is not measured again.
func TestKnownWorkIsRefused(t *testing.T) {
	for _, v := range variants(t) {
		t.Run(v.name, func(t *testing.T) {
			e, err := v.open(t.Context(), v.address, workload.NewSteps(0, 1))
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Run(t.Context(), workload.NewSaga(0)); err != nil {
				t.Fatal(err)
			}
			if err := e.Run(t.Context(), workload.NewSaga(0)); err == nil {
				t.Error("the second run of a saga gave no error")
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
