package coordinator_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A process that claims a work while it answers a duplicate start of the same work still runs it:
// claimed and forgotten would be lost until the process ends.
func TestADuplicateStartDoesNotStrandAClaimedWork(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"claimed while the start is under way", "started while the claim is loaded"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { strand(t, when == "started while the claim is loaded") })
		})
	}
}

func strand(t *testing.T, duringLoad bool) { //nolint:thelper // it is the test itself, once for each case
	l, w := memory.New(nil), &world{}
	w.watch(l)
	boot(t, l, w, config{idle: true}).begin("o1") // stored, due, held by nobody
	claimed, started, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	hook := &hooked{
		claim: func(heads []ledger.Instance) {
			if len(heads) > 0 && !once.Swap(true) {
				close(claimed)
				if !duringLoad {
					<-started
				}
			}
		},
		append: func(_ context.Context, es []ledger.Entry) error {
			if es[0].Record.Seq == 1 {
				close(started)
				<-release
			}
			return nil
		},
	}
	if duringLoad {
		hook.load = func([]saga.ID) { <-started }
	}
	p := boot(t, l, w, config{hook: hook})
	<-claimed
	go p.Start(t.Context(), orderSaga, "o1", order{Customer: "c-o1", Total: 100}, nil) // a duplicate
	<-started
	synctest.Wait()
	close(release)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if s, err := p.Wait(ctx, orderSaga, "o1"); err != nil || s.Status != saga.Completed {
		t.Errorf("the work was claimed and nobody ran it: %s, %v", s.Status, err)
	}
	verify(t, l, w, "o1")
}

// "Further ones are stored and taken up when there is room": a process that is full accepts a start
// all the same. A claim that was under way while the last place was taken may have brought one more.
func TestAFullProcessStoresAndRunsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{slow: 3 * time.Second})}
		w.watch(l)
		o := quick()
		o.MaxWorks = 2
		p := boot(t, l, w, config{opts: o})
		synctest.Wait()
		works := []string{"o1", "o2", "o3", "o4", "o5"}
		for _, work := range works {
			p.begin(work)
		}
		synctest.Wait()
		running := 0
		for _, work := range works[2:] {
			running += w.count(work, "customer", saga.Forward)
		}
		if running > 1 {
			t.Errorf("%d works run beyond the two that this process holds", running)
		}
		for _, work := range works {
			p.want(work, saga.Completed, "")
		}
		verify(t, l, w, works...)
	})
}

// "for longer ones it is put back into the ledger, where any process picks it up when it is due";
// for shorter ones it stays in hand.
func TestALongWaitIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait time.Duration
		held bool
	}{
		"short": {2 * time.Second, true},
		"long":  {20 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { waits(t, c.wait, c.held) })
		})
	}
}

func waits(t *testing.T, wait time.Duration, held bool) { //nolint:thelper // it is the test itself, once for each case
	l, w := memory.New(nil), &world{plan: on("customer", saga.Forward, 1, fault{unsent: true, after: wait})}
	w.watch(l)
	p := boot(t, l, w, config{})
	other := boot(t, l, w, config{})
	synctest.Wait()
	p.begin("o1")
	synctest.Wait()
	head := headOf(t, l, "o1")
	if head.Status != saga.Retrying || (head.Session != 0) != held || head.Due.IsZero() != held {
		t.Errorf("the head is %+v, want retrying and held: %t", head, held)
	}
	if held {
		p.want("o1", saga.Completed, "")
	} else {
		p.halt() // it owes nothing any more: another process picks the work up
		other.want("o1", saga.Completed, "")
	}
	if d := w.arrivals[1].at.Sub(w.arrivals[0].at); d < wait || d > wait+3*time.Second {
		t.Errorf("the second try came after %s, the destination asked for %s", d, wait)
	}
	verify(t, l, w, "o1")
}

func headOf(t *testing.T, l ledger.Catalogue, work string) ledger.Instance {
	t.Helper()
	heads, err := ledger.First(t.Context(), l, ledger.Filter{Work: work})
	if err != nil || len(heads) != 1 {
		t.Fatalf("head of %s: %v, %v", work, heads, err)
	}
	return heads[0]
}

// A claim may bring a work that is on its way out of our hands: the answer to what released it is
// late, or it was in hand for a session that has ended. It is given back, due a poll
// later. Renewals would give it back, too, but only the second one that finds it out of hand.
func TestAClaimedWorkOnItsWayOutIsGivenBack(t *testing.T) {
	t.Parallel()
	t.Run("released", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := &lateReturn{Ledger: memory.New(nil), by: 10 * time.Second}
			onItsWayOut(t, l, &world{plan: on("customer", saga.Forward, 1, fault{unsent: true, after: 6 * time.Second})})
		})
	})
	t.Run("of the session before", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{cut: true})}
			var asked atomic.Bool
			over := make(chan struct{})
			defer close(over)
			w.asked = func(string, string) error {
				if !asked.Swap(true) { // a lookup that does not notice the end of its session
					bury(t, l, headOf(t, l, "o1").Session)
					<-over
				}
				return nil
			}
			onItsWayOut(t, l, w)
		})
	})
}

// lateReturn is a ledger that answers the first return late: it has taken effect.
type lateReturn struct {
	ledger.Ledger
	by   time.Duration
	late sync.Once
}

func (l *lateReturn) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	err := l.Ledger.GiveBack(ctx, t, works)
	l.late.Do(func() { pass(l.by) })
	return err
}

// onItsWayOut runs a work that a claim brings while it is on its way out of hand, and once more
// when it is out.
func onItsWayOut(t *testing.T, l ledger.Ledger, w *world) {
	t.Helper()
	w.watch(l)
	o := quick()
	o.Lease = time.Hour // a third of it passes between renewals
	var brought atomic.Int64
	p := boot(t, l, w, config{opts: o, hook: &hooked{claim: func(heads []ledger.Instance) { brought.Add(int64(len(heads))) }}})
	synctest.Wait()
	begun := time.Now()
	p.begin("o1")
	p.want("o1", saga.Completed, "")
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s, as long as it takes renewals to find it", took)
	}
	if n := brought.Load(); n < 2 {
		t.Errorf("%d claims brought it, want one while it is in hand and one behind it", n)
	}
	verify(t, l, w, "o1")
}

// "take returns on a chain that does not fold and its head stays ours": it does not.
// The work is given back, asked for again every ten minutes with a line in the log, and the others
// go on.
func TestAChainThatDoesNotFold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := memory.New(nil), &lines{}
		id := saga.ID{Saga: "billing", Work: "broken"}
		r := machine.Record{Kind: machine.KindStarted, Version: 1, Status: saga.Running}
		r.Seal(id, machine.Salt{}, 0, machine.Hash{}, 0)
		answer, err := l.Append(t.Context(), 0, []ledger.Entry{{ID: id, Record: r, Schedule: &ledger.Schedule{}}})
		if err != nil {
			t.Fatal(err)
		}
		e := ledger.Entry{ID: id, Number: answer[0].Number, Prev: r.Hash, Schedule: &ledger.Schedule{}}
		e.Record = machine.Record{Kind: machine.KindDone, Step: "none", Direction: saga.Forward, Attempt: 7, Status: saga.Running}
		e.Record.Seal(id, machine.Salt{}, 1, r.Hash, 0)
		if a, err := l.Append(t.Context(), 0, []ledger.Entry{e}); err != nil || a[0].Result != ledger.Appended {
			t.Fatalf("%+v, %v", a, err)
		}
		p := several(t, l, config{opts: coordinator.Options{Log: out.logger()}}, oneStep(t, "billing", "", nil))
		p.starts("billing", 20)
		pass(time.Minute)
		if n := held(t, l, p); n != 0 {
			t.Errorf("%d works are held, want none", n)
		}
		if count := in(t, l, "billing"); count[saga.Completed] != 20 || count[saga.Running] != 1 {
			t.Errorf("a minute later: %v", count)
		}
		pass(time.Hour)
		if n := len(out.lined(t, "a claimed chain does not fold; run amends check")); n < 6 || n > 7 {
			t.Errorf("it was said %d times in an hour, want every ten minutes", n)
		}
	})
}
