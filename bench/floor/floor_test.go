package floor

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/internal/pgtest"
)

// onLedger is a floor and where its empty ledger is.
type onLedger struct {
	driver, address string
	open            func(context.Context, string, *workload.Steps) (workload.Engine, error)
}

// floors are both floors, each with an empty ledger.
func floors(t *testing.T) []onLedger {
	t.Helper()
	return []onLedger{
		{"sqlite", filepath.Join(t.TempDir(), "floor.db"), SQLite},
		{"postgres", pgtest.URL(t), Postgres},
	}
}

// Every saga that Run reports as ended is in the table as completed, with the
// result of each step, whatever batches it went through.
func TestEndedSagasAreRecorded(t *testing.T) {
	const sagas = 500
	for _, f := range floors(t) {
		t.Run(f.driver, func(t *testing.T) {
			steps, free := workload.NewSteps(0, sagas)
			defer free()
			e, err := f.open(t.Context(), f.address, steps)
			if err != nil {
				t.Fatal(err)
			}
			var g errgroup.Group
			g.SetLimit(50)
			for n := range sagas {
				g.Go(func() error { return e.Run(t.Context(), workload.NewSaga(n)) })
			}
			if err := errors.Join(g.Wait(), e.Close(), steps.Verify(sagas)); err != nil {
				t.Fatal(err)
			}

			db := sqlx.MustConnect(f.driver, f.address)
			defer db.Close()
			var recorded int
			err = db.Get(&recorded, `select count(*) from saga where state = 2 and seq = 4 and
			doc like '[{"n":"customer","x":"ext_00_%"},{"n":"invoice","x":"ext_01_%"},{"n":"mark-synced","x":"ext_02_%"},{"n":"receipt","x":"ext_03_%"}]'`)
			if err != nil || recorded != sagas {
				t.Errorf("%d sagas are recorded as completed with all results, want %d (%v)", recorded, sagas, err)
			}
		})
	}
}

// A work that is known is refused, and none of its steps runs again.
func TestDuplicateIsRefused(t *testing.T) {
	for _, f := range floors(t) {
		t.Run(f.driver, func(t *testing.T) {
			steps, free := workload.NewSteps(0, 1)
			defer free()
			e, err := f.open(t.Context(), f.address, steps)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Run(t.Context(), workload.NewSaga(0)); err != nil {
				t.Fatal(err)
			}
			if err := e.Run(t.Context(), workload.NewSaga(0)); !errors.Is(err, ErrDuplicate) {
				t.Errorf("the second start gave %v, want ErrDuplicate", err)
			}
			if err := errors.Join(e.Close(), steps.Verify(1)); err != nil {
				t.Error(err)
			}
		})
	}
}

// failing is a table that refuses transitions of one seq.
type failing struct{ seq int16 }

var errFull = errors.New("disk full")

func (f failing) write(batch []*transition) error {
	if batch[0].seq == f.seq {
		return errFull
	}
	return nil
}

func (failing) close() error { return nil }

// A step runs only after the end of the one before it is durable.
func TestNoStepBeforeTheOneBeforeItIsDurable(t *testing.T) {
	steps, free := workload.NewSteps(0, 1)
	defer free()
	e := newEngine(failing{seq: 2}, steps, 1)
	if err := e.Run(t.Context(), workload.NewSaga(0)); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	err := steps.Verify(1)
	if err == nil || !strings.Contains(err.Error(), `"mark-synced" ran 0 times`) {
		t.Errorf("the step after the failed write: %v, want it not to have run", err)
	}
}

// A writer takes what waits, up to its limit, and waits for nothing.
func TestDrain(t *testing.T) {
	queue := make(chan *transition, maxBatch+100)
	if got := drain([]*transition{{}}, queue); len(got) != 1 {
		t.Errorf("an empty queue made a batch of %d, want 1", len(got))
	}
	for range maxBatch + 99 {
		queue <- &transition{}
	}
	if got := drain([]*transition{{}}, queue); len(got) != maxBatch {
		t.Errorf("a full queue made a batch of %d, want %d", len(got), maxBatch)
	}
	if got := drain(nil, queue); len(got) != 100 {
		t.Errorf("%d transitions were left, want 100", len(got))
	}
}
