package coordinator_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// answering lets a test answer appends. Without an answer and an error the ledger behind it does.
type answering struct {
	*memory.DB
	append func(context.Context, machine.Token, []ledger.Entry) ([]ledger.Answer, error)
}

func (a *answering) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	if as, err := a.append(ctx, t, es); as != nil || err != nil {
		return as, err
	}
	return a.DB.Append(ctx, t, es)
}

// A start whose connection was cut while the server went on with it is blocked by itself
// when it is repeated. The very same record is appended until there is an answer, so that nothing
// is held that is not in hand.
func TestAStartThatBlocksItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &answering{DB: memory.New(nil)}
		calls := 0
		var pending []ledger.Entry
		var of machine.Token
		l.append = func(ctx context.Context, token machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
			if es[0].Record.Seq != 1 {
				return nil, nil
			}
			switch calls++; calls {
			case 1: // the connection is cut; the server goes on with the statement
				pending, of = append([]ledger.Entry(nil), es...), token
				return nil, driver.ErrBadConn
			case 2: // its own transaction is in the way
				return []ledger.Answer{{Result: ledger.Blocked}}, nil
			case 3: // which commits now
				if as, err := l.DB.Append(ctx, of, pending); err != nil || as[0].Result != ledger.Appended {
					t.Errorf("%v %v", as, err)
				}
			}
			return nil, nil
		}
		p := several(t, l, config{}, oneStep(t, "billing", "books", nil))
		synctest.Wait()
		if s, err := p.Start(t.Context(), "billing", "w", order{}, nil); err != nil || s.Duplicate {
			t.Errorf("the start was answered with %+v, %v", s, err)
		}
		pass(time.Minute)
		if n := in(t, l, "billing")[saga.Completed]; n != 1 {
			t.Errorf("a minute later: %v", in(t, l, "billing"))
		}
		ledgertest.MustCheck(t, l)
	})
}

// What a lost answer left on record under a live session, and in no process's
// hands, is given back after two renewals and goes on.
func TestWhatIsHeldAndNotInHandIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		p := several(t, l, config{faults: []ledgertest.Fault{ledgertest.LoseAnswer(2, ledgertest.ClaimWorks)}}, oneStep(t, "billing", "", nil))
		synctest.Wait() // the first claim has found nothing
		web := several(t, l, config{idle: true}, oneStep(t, "billing", "", nil))
		web.starts("billing", 20)
		pass(quick().Poll + 10*time.Millisecond) // the second has them all, and its answer is lost
		if n := held(t, l, p); n != 20 {
			t.Fatalf("%d works are held, want 20", n)
		}
		pass(2 * quick().Lease)
		if n := in(t, l, "billing")[saga.Completed]; n != 20 {
			t.Errorf("two leases later: %v", in(t, l, "billing"))
		}
	})
}

// Starts while the database is away leave nothing behind once their callers have gone,
// and what waits is bounded: further ones are told at once that this process is busy. One start of
// a work is under way at a time.
func TestStartsDoNotPileUp(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the whole process
	synctest.Test(t, func(t *testing.T) {
		l := &answering{DB: memory.New(nil)}
		var away atomic.Bool
		l.append = func(context.Context, machine.Token, []ledger.Entry) ([]ledger.Answer, error) {
			if away.Load() {
				return nil, errors.New("connection refused")
			}
			return nil, nil
		}
		p := several(t, l, config{opts: coordinator.Options{MaxWorks: 300, MaxBatch: 10}}, oneStep(t, "billing", "", nil))
		synctest.Wait()
		away.Store(true)
		before := runtime.NumGoroutine()
		wave := func(name string, n, same int) (busy int64) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					switch _, err := p.Start(ctx, "billing", fmt.Sprintf("%s%d", name, i%same), order{}, nil); {
					case errors.Is(err, coordinator.ErrBusy):
						atomic.AddInt64(&busy, 1)
					case !errors.Is(err, context.DeadlineExceeded):
						t.Errorf("a start was answered with %v", err)
					}
				})
			}
			all.Wait()
			synctest.Wait()
			return busy
		}
		for i := range 50 {
			if busy := wave(fmt.Sprint("wave", i, "-"), 200, 200); busy > 0 {
				t.Errorf("wave %d: %d starts were refused, with room for 300", i, busy)
			}
		}
		if n := runtime.NumGoroutine() - before; n > 1000 {
			t.Errorf("ten thousand callers have gone, and %d goroutines are left", n)
		}
		if busy := wave("many", 1000, 1000); busy < 600 || busy > 720 {
			t.Errorf("%d of a thousand starts at once were refused, with room for 300", busy)
		}
		if busy := wave("same", 1000, 20); busy > 0 {
			t.Errorf("%d of a thousand starts of twenty works were refused", busy)
		}
		away.Store(false)
		pass(2 * time.Second)
		if n := len(in(t, l, "billing")); n > 1 {
			t.Errorf("%v", in(t, l, "billing"))
		}
		if n := in(t, l, "billing")[saga.Completed]; n > 40 {
			t.Errorf("%d works were stored whose callers had gone before anything was sent", n)
		}
		p.starts("billing", 10)
	})
}

// Starts that a transaction holds up repeat beside the others, at growing pauses, and
// stall none of them.
func TestContendedStartsStallNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &answering{DB: memory.New(nil)}
		asked := &diary{}
		begun := time.Now()
		const open = 75 * time.Second
		l.append = func(_ context.Context, _ machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
			as := make([]ledger.Answer, len(es))
			blocked := false
			for i := range es {
				if c := es[i].ID.Work[0]; c == 'c' && es[i].Record.Seq == 1 && time.Since(begun) < open {
					asked.note(es[i].ID.Work)
					as[i], blocked = ledger.Answer{Result: ledger.Blocked}, true
				}
			}
			if !blocked {
				return nil, nil
			}
			<-time.After(250 * time.Millisecond) // the database's lock time-out
			for i := range es {
				if as[i].Result == "" {
					one, err := l.DB.Append(t.Context(), es[i].Record.Session, es[i:i+1])
					if err != nil {
						return nil, err
					}
					as[i] = one[0]
				}
			}
			return as, nil
		}
		p := several(t, l, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 1}}}},
			oneStep(t, "billing", "books", nil))
		synctest.Wait()
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				if _, err := p.Start(t.Context(), "billing", fmt.Sprint("contended", i), order{}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		pass(20 * time.Second) // each has met the transaction in the common lane once
		for i := range 50 {
			at := time.Now()
			if _, err := p.Start(t.Context(), "billing", fmt.Sprint("free", i), order{}, nil); err != nil || time.Since(at) > 100*time.Millisecond {
				t.Errorf("a start beside them took %s, %v", time.Since(at), err)
			}
			if s, err := p.Wait(t.Context(), "billing", fmt.Sprint("free", i)); err != nil || time.Since(at) > 2*time.Second {
				t.Errorf("it was %s after %s, %v", s.Status, time.Since(at), err)
			}
		}
		all.Wait()
		pass(time.Minute)
		if n := in(t, l, "billing")[saga.Completed]; n != 110 {
			t.Errorf("%v, want 110 completed", in(t, l, "billing"))
		}
		if n := len(asked.of("contended1")); n > 30 {
			t.Errorf("a contended start was repeated %d times in %s", n, open)
		}
		p.kill()
	})
}
