package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// "Input faults are refused at Start, every reason at once", and nothing is stored.
func TestStartRefusesWithEveryReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		p := boot(t, l, &world{}, config{})
		synctest.Wait()
		for name, c := range map[string]struct {
			saga, work string
			input      any
			says       []string
		}{
			"no id, wrong input": {orderSaga, "", 42, []string{"the work id is empty", "the input is a int"}},
			"a bad text":         {orderSaga, "w\xff", order{}, []string{"not valid UTF-8"}},
			"unknown saga":       {"no-such-saga", "", order{}, []string{`"no-such-saga"`, "the work id is empty"}},
			"too large":          {orderSaga, "w\x00", order{Memo: strings.Repeat("x", program.MaxInput)}, []string{"control characters", "at most 262144 are allowed"}},
			"not JSON":           {orderSaga, strings.Repeat("w", 300), json.RawMessage(`{`), []string{"300 bytes", "not the JSON"}},
		} {
			_, err := p.Start(t.Context(), c.saga, c.work, c.input, nil)
			for _, want := range c.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error %v does not say %q", name, err, want)
				}
			}
			if (c.saga == orderSaga) != errors.Is(err, coordinator.ErrInvalid) {
				t.Errorf("%s: an API cannot tell whose fault it is: %v", name, err)
			}
			if (c.saga != orderSaga) != errors.Is(err, coordinator.ErrUnknownSaga) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if heads, _ := ledger.First(t.Context(), l, ledger.Filter{}); len(heads) != 0 {
			t.Errorf("refused starts stored %v", heads)
		}
	})
}

// "When ctx ends before the ledger has answered, the work may or may not be stored: start it again
// to learn which." What was stored runs.
func TestAStartWhoseCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		release := make(chan struct{})
		p := boot(t, l, w, config{hook: &hooked{append: func(context.Context, []ledger.Entry) error { <-release; return nil }}})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Start(ctx, orderSaga, "o1", order{Customer: "c-o1", Total: 100}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may be stored") {
			t.Errorf("the caller who left got %v", err)
		}
		close(release)
		p.want("o1", saga.Completed, "")
		if s := p.begin("o1"); !s.Duplicate {
			t.Error("the second start was not told that the work is known")
		}
		verify(t, l, w, "o1")
	})
}

// "A second start of the same work runs nothing, is counted, and returns what is there", with its
// source. Many at once are one work.
func TestDuplicatesAreBlockedAndCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		p, q := boot(t, l, w, config{}), boot(t, l, w, config{})
		synctest.Wait()
		var mu sync.Mutex
		fresh := 0
		var all sync.WaitGroup
		const storm = 40
		for i := range storm {
			all.Go(func() {
				at := []*process{p, q}[i%2]
				s, err := at.Start(t.Context(), orderSaga, "o1", order{Customer: "c-o1"}, &saga.StartOptions{Source: "webhook"})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if !s.Duplicate {
					fresh++
				}
			})
		}
		all.Wait()
		p.want("o1", saga.Completed, "")
		if _, err := p.Start(t.Context(), orderSaga, "o1", order{Customer: "c-o1"}, &saga.StartOptions{Source: "cron"}); err != nil {
			t.Error(err)
		}
		pass(3 * time.Second)
		ds, err := l.Duplicates(t.Context(), ledger.Filter{Work: "o1"})
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int64{}
		for _, d := range ds {
			counts[d.Source] += d.Count
		}
		if fresh != 1 || counts["webhook"] != storm-1 || counts["cron"] != 1 {
			t.Errorf("%d starts were new and %v duplicates were counted, want 1, and %d and 1", fresh, counts, storm-1)
		}
		verify(t, l, w, "o1")
	})
}

// What was counted is not lost with a graceful stop.
func TestDuplicatesAreFlushedAtAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		p.begin("o1")
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		if ds, err := l.Duplicates(t.Context(), ledger.Filter{}); err != nil || len(ds) != 1 || ds[0].Count != 1 {
			t.Errorf("duplicates: %+v, %v", ds, err)
		}
	})
}

// A process that only starts works, and never runs, may end behind its last start: what it counted
// is in the ledger by then. A storm of one key is still no storm of statements.
func TestDuplicatesAreCountedWithoutRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		var calls atomic.Int64
		p := boot(t, l, w, config{idle: true, hook: &hooked{count: func() { calls.Add(1); pass(time.Second) }}})
		p.begin("o1")
		counted := func() (n int64) {
			ds, err := l.Duplicates(t.Context(), ledger.Filter{Work: "o1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range ds {
				n += d.Count
			}
			return n
		}
		p.begin("o1")
		if n := counted(); n != 1 {
			t.Errorf("%d duplicates are in the ledger behind the start that was one", n)
		}
		calls.Store(0)
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { p.begin("o1") })
		}
		all.Wait()
		if n := counted(); n != 41 || calls.Load() > 2 {
			t.Errorf("%d duplicates are in the ledger after %d statements, want 41 after 2 at most", n, calls.Load())
		}
		p.kill()
	})
}

// An answer of the ledger is lost and the duplicate is counted once, because the same total is
// stored again; and what is counted next comes on top of it.
func TestALostAnswerCountsNothingTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		var lost atomic.Int64
		p := boot(t, l, w, config{hook: &hooked{forget: func() error {
			if lost.Add(1) <= 3 {
				return errors.New("the connection is gone")
			}
			return nil
		}}})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		for want := int64(1); want <= 3; want++ {
			p.begin("o1")
			pass(5 * time.Second)
			if ds, err := l.Duplicates(t.Context(), ledger.Filter{}); err != nil || len(ds) != 1 || ds[0].Count != want {
				t.Errorf("duplicates: %+v, %v; want one counter at %d", ds, err, want)
			}
		}
		if n := lost.Load(); n != 6 {
			t.Errorf("%d calls, want three whose answer was lost and one for each duplicate", n)
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
	})
}

// Counts are stored again while the ledger does not take them, and that holds up no claim.
func TestASlowCountHoldsUpNoClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		p := boot(t, l, w, config{hook: &hooked{count: func() { pass(14 * time.Second) }}})
		q := boot(t, l, w, config{idle: true})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		p.begin("o1")
		pass(3 * time.Second)
		q.begin("o2")
		began := time.Now()
		p.want("o2", saga.Completed, "")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it was claimed and done after %s, while a count was on its way", took)
		}
		q.kill()
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		pass(time.Minute) // the hook's own sleep
	})
}

// A process that runs for long keeps no name that others would take for silent one day, and
// loses no count when it changes names.
func TestACounterIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		names := map[ledger.Counter]bool{}
		p := boot(t, l, w, config{hook: &hooked{named: func(c ledger.Counter) { names[c] = true }}})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		for _, quiet := range []time.Duration{61 * time.Minute, 61 * time.Minute, 13 * time.Hour, time.Minute} {
			p.begin("o1")
			pass(quiet)
		}
		if ds, err := l.Duplicates(t.Context(), ledger.Filter{}); err != nil || len(ds) != 1 || ds[0].Count != 4 {
			t.Errorf("duplicates: %+v, %v; want one counter at 4", ds, err)
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		if len(names) != 4 || names[0] {
			t.Errorf("counted under %v, want a name for each of them", names)
		}
	})
}

// What was counted is not lost when the stop comes in the middle of counting.
func TestAStopWaitsForTheCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		counting := make(chan struct{}, 10)
		p := boot(t, l, w, config{hook: &hooked{count: func() { counting <- struct{}{}; pass(time.Second) }}})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		p.begin("o1")
		<-counting
		p.begin("o1")
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		if ds, err := l.Duplicates(t.Context(), ledger.Filter{}); err != nil || len(ds) != 1 || ds[0].Count != 2 {
			t.Errorf("duplicates: %+v, %v; want one counter at 2", ds, err)
		}
	})
}

// "The same work at the same version with a different identity is a conflict signal": the caller is
// told, the chain says so, and the work goes on with its first input. Our own mark in the input is
// none.
func TestConflicts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("customer", saga.Forward, 1, fault{slow: 2 * time.Second})}
		w.watch(l)
		p := boot(t, l, w, config{tune: tuning{identity: func(o order) any { return o.Total }}})
		synctest.Wait()
		p.begin("o1")
		start := func(o order) (coordinator.Started, error) {
			return p.Start(t.Context(), orderSaga, "o1", o, &saga.StartOptions{Source: "webhook"})
		}
		if s, err := start(order{Customer: "c-o1", Total: 100, Memo: "synced"}); err != nil || !s.Duplicate {
			t.Errorf("a start that differs outside of its identity: %+v, %v", s, err)
		}
		for range 2 {
			if s, err := start(order{Customer: "c-o1", Total: 200}); !errors.Is(err, coordinator.ErrConflict) || !s.Duplicate {
				t.Errorf("a start with another identity: %+v, %v", s, err)
			}
		}
		p.want("o1", saga.Completed, "")
		signals, err := l.Signals(t.Context(), idOf("o1"))
		if err != nil || len(signals) != 1 || signals[0].Kind != machine.SignalConflict || signals[0].Actor != "webhook" {
			t.Errorf("signals: %+v, %v; want one conflict", signals, err)
		}
		verify(t, l, w, "o1")
	})
}

// StartTx: "the work exists if and only if tx commits, and begins to move once a coordinator claims
// it".
func TestStartTx(t *testing.T) {
	t.Parallel()
	if _, err := boot(t, memory.New(nil), &world{}, config{idle: true}).StartTx(t.Context(), nil, orderSaga, "o1", order{}, nil); err == nil {
		t.Error("a ledger without a database started something in a transaction")
	}
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, db := open(t)
			w := &world{}
			w.watch(l)
			p := boot(t, l, w, config{opts: fast()})
			startTx := func(work string, end func(*sqlx.Tx) error) bool {
				t.Helper()
				tx, err := db.Beginx()
				if err != nil {
					t.Fatal(err)
				}
				isNew, err := p.StartTx(t.Context(), tx, orderSaga, work, order{Customer: "c-" + work}, nil)
				if err := errors.Join(err, end(tx)); err != nil {
					t.Fatal(err)
				}
				return isNew
			}
			if !startTx("undone", (*sqlx.Tx).Rollback) || !startTx("o1", (*sqlx.Tx).Commit) {
				t.Error("a work that was not there was not new")
			}
			p.want("o1", saga.Completed, "")
			if startTx("o1", (*sqlx.Tx).Commit) {
				t.Error("a work that is there was new")
			}
			counted(t, l, 1)
			p = boot(t, l, w, config{opts: fast(), idle: true})
			if startTx("o1", (*sqlx.Tx).Commit) {
				t.Error("a work that is there was new to a process that does not run")
			}
			counted(t, l, 2)
			if _, err := p.Show(t.Context(), idOf("undone")); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("a work whose transaction was rolled back: %v", err)
			}
			verify(t, l, w, "o1")
		})
	}
}

// counted waits until the ledger has counted so many duplicates.
func counted(t *testing.T, l ledger.Catalogue, want int64) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		ds, err := l.Duplicates(t.Context(), ledger.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(ds) == 1 && ds[0].Count == want {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("after a minute the ledger has counted %+v, want %d", ds, want)
		}
	}
}

// fast are options for real time.
func fast() coordinator.Options {
	return coordinator.Options{Lease: 2 * time.Second, Poll: 20 * time.Millisecond, Drain: 10 * time.Second}
}

// databases are the SQL ledgers, each with the database behind it.
var databases = map[string]func(*testing.T) (ledger.Ledger, *sqlx.DB){
	"postgres": postgresAndItsDatabase,
	"sqlite": func(t *testing.T) (ledger.Ledger, *sqlx.DB) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "ledger.db")
		l := openFile(t, path)
		db, err := sqlx.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return l, db
	},
}
