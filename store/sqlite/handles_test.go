package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// crowd is what several callers do at the same time on each of dbs, n times each: works are
// started, events accepted and jobs take turns. It fails when one of them is refused, and counts
// what is there at the end.
func crowd(t *testing.T, n int, dbs ...*DB) {
	t.Helper()
	lease := session(t, dbs[0])
	var callers sync.WaitGroup
	run := func(what string, do func(i int) error) {
		callers.Go(func() {
			for i := range n {
				if err := do(i); err != nil {
					t.Errorf("%s %d: %v", what, i, err)
				}
			}
		})
	}
	for k, db := range dbs {
		run("start", func(i int) error {
			as, err := db.Append(t.Context(), lease.Token, []ledger.Entry{start(lease.Token, fmt.Sprint(k, "-", i))})
			if err == nil && as[0].Result != ledger.Appended {
				err = fmt.Errorf("answered %s", as[0].Result)
			}
			return err
		})
		run("accept", func(i int) error { return db.Accept(t.Context(), []intake.Event{event(k*n + i)}) })
		run("turn", func(int) error {
			return db.Turn(t.Context(), "nightly", func(_ time.Time, a *schedule.Agenda) error {
				a.State.Asked++
				return nil
			})
		})
	}
	callers.Wait()
	if err := dbs[0].Turn(t.Context(), "nightly", func(_ time.Time, a *schedule.Agenda) error {
		if want := int64(n * len(dbs)); a.State.Asked != want {
			t.Errorf("%d turns have left something, want %d", a.State.Asked, want)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	heads, err := ledger.First(t.Context(), dbs[0], ledger.Filter{Limit: 10 * n})
	ds, err2 := dbs[0].Deliveries(t.Context(), intake.DeliveryFilter{Limit: 10 * n})
	if err := errors.Join(err, err2); err != nil || len(heads) != n*len(dbs) || len(ds) != n*len(dbs) {
		t.Errorf("%d works and %d deliveries, %v; want %d of each", len(heads), len(ds), err, n*len(dbs))
	}
}

// Within one handle the writers queue in one place: with a busy timeout of nothing, none of them is
// ever refused because another one writes.
func TestOneHandleQueues(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), &Options{BusyTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	crowd(t, 200, db)
}

// Two handles on one file in one process wait for each other as two processes do, by SQLite's own
// lock: nothing is lost, and nothing fails within the busy timeout.
func TestTwoHandlesOnOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	var dbs []*DB
	for range 2 {
		db, err := Open(t.Context(), path, &Options{BusyTimeout: time.Hour}) // who is next is luck
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		dbs = append(dbs, db)
	}
	crowd(t, 100, dbs...)
}

// What callers ask of one work at the same time is read once, and what each of them does to its answer is its own affair.
func TestAnswersAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	lease := session(t, db)
	if _, err := db.Append(t.Context(), lease.Token, []ledger.Entry{start(lease.Token, "w")}); err != nil {
		t.Fatal(err)
	}
	id := start(lease.Token, "w").ID
	wait := ledger.Wait{Name: "paid", Key: "k", ID: id, Step: "s", StepKey: "key"}
	for i := range 3 {
		if _, err := db.Post(t.Context(), id, machine.Signal{Kind: machine.SignalCancel, Key: fmt.Sprint(i), Actor: "anna", Reason: "a test"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Await(t.Context(), []ledger.Wait{wait}); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			chains, err := db.Load(t.Context(), []saga.ID{id})
			said, err2 := db.Signals(t.Context(), id)
			waits, err3 := db.Waits(t.Context(), "paid", "k")
			if err := errors.Join(err, err2, err3); err != nil || len(chains) != 1 || len(chains[0].Signals) != 3 || len(said) != 3 || len(waits) != 1 || waits[0] != wait {
				t.Errorf("%d chains, %d signals, %v, %v", len(chains), len(said), waits, err)
				return
			}
			for i := range said {
				if said[i].Key != fmt.Sprint(i) || chains[0].Signals[i].Key != fmt.Sprint(i) {
					t.Errorf("signal %d is %q and %q", i, said[i].Key, chains[0].Signals[i].Key)
				}
			}
			clear(chains[0].Records)
			clear(chains[0].Signals)
			clear(said)
			clear(waits)
		})
	}
	callers.Wait()
}
