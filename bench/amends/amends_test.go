package amends

import (
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// variants are engines on empty ledgers.
func variants(t *testing.T) map[string]func(*workload.Steps) (string, workload.Engine, error) {
	t.Helper()
	all := map[string]func(*workload.Steps) (string, workload.Engine, error){}
	for name, v := range map[string]Variant{"": {}, ", without group commit": {Single: true}} {
		for where, address := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "ledger.db"), "postgres": pgtest.URL(t)} {
			all[where+name] = func(steps *workload.Steps) (string, workload.Engine, error) {
				e, err := Open(t.Context(), address, steps, v)
				return address, e, err
			}
		}
	}
	return all
}

// What the benchmark measures is the whole product: every saga it reports is in the
// ledger, completed, as the five records of a saga that goes well, each step with
// the external id of its one run, and nobody holds it any more.
func TestMeasuredSagasAreInTheLedger(t *testing.T) {
	const sagas = 100
	for name, open := range variants(t) {
		t.Run(name, func(t *testing.T) {
			steps, free := workload.NewSteps(0, sagas)
			defer free()
			address, e, err := open(steps)
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

			l, err := store.Open(t.Context(), address, nil)
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
