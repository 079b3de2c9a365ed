package coordinator_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
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

// night is a bad one: an office that charges nothing until it is mended.
type night struct {
	t      *testing.T
	l      ledger.Ledger
	mended atomic.Bool
	fails  func(work string) error // what else it says, once mended; nil: nothing
	undone bool                    // what is refused is undone

	mu      sync.Mutex
	charged map[string]map[string]bool // the keys of each work since it was mended: a request that is repeated because its process was killed charges once
}

func (n *night) program(*process) saga.Program {
	open := func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "o"}, nil }
	first := saga.Do("open", open).Idempotent().NoUndo("a test")
	if !n.undone {
		first = first.Pivot()
	}
	def, err := saga.Define(orderSaga, 1, first, saga.Do("charge", func(_ context.Context, c saga.Call[order]) (thing, error) {
		if !n.mended.Load() {
			return thing{}, saga.Permanent(errors.New("the office is closed"))
		}
		if n.fails != nil {
			if err := n.fails(c.Work); err != nil {
				return thing{}, err
			}
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.charged[c.Work] == nil {
			n.charged[c.Work] = map[string]bool{}
		}
		n.charged[c.Work][c.Key] = true
		return thing{ID: "c"}, nil
	}).Idempotent().NoUndo("a test"))
	if err != nil {
		n.t.Fatal(err)
	}
	return def
}

// times is how often a work was charged.
func (n *night) times(work string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.charged[work])
}

// all is how many works were charged.
func (n *night) all() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.charged)
}

// reviews has works come to review for one cause, and returns them as a batch has them.
func (n *night) reviews(p *process, from, to int) (items []coordinator.BatchItem) {
	n.t.Helper()
	for i := from; i < to; i++ {
		if _, err := p.Start(n.t.Context(), orderSaga, fmt.Sprintf("o%03d", i), order{}, nil); err != nil {
			n.t.Fatal(err)
		}
	}
	for i := from; i < to; i++ {
		id := idOf(fmt.Sprintf("o%03d", i))
		if _, err := p.Wait(n.t.Context(), id.Saga, id.Work); err != nil {
			n.t.Fatal(err)
		}
		items = append(items, coordinator.BatchItem{Saga: id.Saga, Work: id.Work, Seq: n.chain(id).Records[0].Seq + int64(len(n.chain(id).Records)) - 1})
	}
	return items
}

func (n *night) chain(id saga.ID) *ledger.Chain {
	n.t.Helper()
	cs, err := n.l.Load(n.t.Context(), []saga.ID{id})
	if err != nil || len(cs) != 1 {
		n.t.Fatal(err)
	}
	return &cs[0]
}

// batch says it to works, by a process that runs nothing.
func (n *night) batch(name string, b coordinator.Batch) {
	n.t.Helper()
	client, err := coordinator.New(n.l, &coordinator.Options{Log: silent()})
	if err != nil {
		n.t.Fatal(err)
	}
	b.Verb, b.By = cmp.Or(b.Verb, machine.VerbRetry), anna
	if b.PerSecond == 0 {
		b.PerSecond = 20
	}
	if b.StopAfter == 0 {
		b.StopAfter = 20
	}
	if _, err := client.StartBatch(n.t.Context(), name, &b); err != nil {
		n.t.Fatal(err)
	}
}

// came is what came of a batch.
func (n *night) came(p *process, name string) (saga.Summary, coordinator.BatchResult) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Minute)
	defer cancel()
	s, err := p.Wait(ctx, coordinator.BatchSaga, name)
	if err != nil {
		n.t.Fatal(err)
	}
	var said coordinator.BatchResult
	_ = json.Unmarshal(s.Steps["say"].Output, &said) // none before its end
	return s, said
}

// saidTo is how often a person's word was stored for a work.
func (n *night) saidTo(id saga.ID) int {
	n.t.Helper()
	all, err := n.l.Signals(n.t.Context(), id)
	if err != nil {
		n.t.Fatal(err)
	}
	return len(all)
}

// Works in review for one cause are back by one batch, each once, also where the process that says it is killed in the middle, and where two batches are about
// the same works; by day 60, at night 500, on every database.
func TestABatchIsSaidOnce(t *testing.T) {
	t.Parallel()
	works := 60
	if os.Getenv("AMENDS_NIGHTLY") != "" {
		works = 500
	}
	test := func(t *testing.T, l ledger.Ledger, until func(func() bool)) {
		n := &night{t: t, l: l, charged: map[string]map[string]bool{}}
		p := boot(t, l, new(world), config{program: n.program})
		items := n.reviews(p, 0, works)
		n.mended.Store(true)
		n.batch("batch:1", coordinator.Batch{Items: items})
		until(func() bool { return n.saidTo(items[works/3].ID()) > 0 })
		p.kill()
		p = boot(t, l, new(world), config{program: n.program})
		n.batch("batch:2", coordinator.Batch{Items: items})
		s, said := n.came(p, "batch:1")
		_, second := n.came(p, "batch:2")
		if s.Status != saga.Completed || said.Said+second.Said != works || said.Moved+said.Refused+second.Moved+second.Refused != works || said.Said <= works/3 {
			t.Errorf("the batches came to %s, %+v and %+v", s.Status, said, second)
		}
		for i := range items {
			id := items[i].ID()
			if s, err := p.Wait(t.Context(), id.Saga, id.Work); err != nil || s.Status != saga.Completed {
				t.Fatalf("%s is %s, %v", id, s.Status, err)
			}
			if n.saidTo(id) != 1 || n.times(id.Work) != 1 {
				t.Errorf("%s: said %d times, charged %d times", id, n.saidTo(id), n.times(id.Work))
			}
		}
		ledgertest.MustCheck(t, l)
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			test(t, memory.New(nil), func(so func() bool) {
				for !so() {
					pass(100 * time.Millisecond)
				}
			})
		})
	})
	both(t, func(t *testing.T, open func() ledger.Ledger) {
		test(t, open(), func(so func() bool) {
			for !so() {
				if t.Context().Err() != nil {
					t.Fatal("it never was")
				}
				runtime.Gosched()
			}
		})
	})
}

// A batch of which too many come back for one cause stops, and nothing is said to the others. One that is paused goes on where it was, and what has moved on is
// left alone.
func TestABatchStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t, l: memory.New(nil), charged: map[string]map[string]bool{}}
		p := boot(t, n.l, new(world), config{program: n.program})
		items := n.reviews(p, 0, 100)
		n.batch("batch:1", coordinator.Batch{Items: items, StopAfter: 5}) // it is not mended
		s, said := n.came(p, "batch:1")
		if s.Status != saga.Completed || said.Said < 5 || said.Said > 50 || said.Left != 100-said.Said || !strings.Contains(said.Stopped, "after-pivot at charge") {
			t.Errorf("%s, %+v", s.Status, said)
		}
		if n.saidTo(items[99].ID()) != 0 {
			t.Error("it was said to the last")
		}

		n.mended.Store(true)
		n.batch("batch:2", coordinator.Batch{Items: items, PerSecond: 5})
		pass(3 * time.Second)
		id := saga.ID{Saga: coordinator.BatchSaga, Work: "batch:2"}
		if err := p.Pause(t.Context(), id, anna); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		if err := p.Retry(t.Context(), items[98].ID(), anna); err != nil { // by hand meanwhile
			t.Fatal(err)
		}
		if s, _ := p.Show(t.Context(), id); s.Status != saga.Paused {
			t.Errorf("it is %s", s.Status)
		}
		at := n.all()
		pass(time.Minute)
		if n.all() > at+1 {
			t.Errorf("%d were charged, and then %d", at, n.all())
		}
		if err := p.Resume(t.Context(), id, anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		_, second := n.came(p, "batch:2")
		if second.Moved != said.Said+1 || second.Said != 100-second.Moved || n.all() != second.Said+1 {
			t.Errorf("%+v, and %d are charged", second, n.all())
		}

		n.mended.Store(false)
		items = n.reviews(p, 100, 110)
		n.batch("batch:3", coordinator.Batch{Items: items, PerSecond: 0.5})
		pass(3 * time.Second)
		if err := p.Cancel(t.Context(), saga.ID{Saga: coordinator.BatchSaga, Work: "batch:3"}, anna); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if s, _ := n.came(p, "batch:3"); s.Status != saga.Compensated {
			t.Errorf("what was given up is %s", s.Status)
		}
		if n.saidTo(items[0].ID()) != 1 || n.saidTo(items[9].ID()) != 0 {
			t.Error("it was said to none, or to all")
		}
		if _, err := p.Start(t.Context(), coordinator.BatchSaga, "x", coordinator.Batch{Verb: machine.VerbCancel, Items: items}, nil); !errors.Is(err, coordinator.ErrUnknownSaga) {
			t.Errorf("who may start works started a batch: %v", err)
		}
		ledgertest.MustCheck(t, n.l)
	})
}

// What ran again since it was chosen is not run once more.
func TestABatchRunsNothingAgainThatMovedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t, l: memory.New(nil), charged: map[string]map[string]bool{}}
		n.mended.Store(true)
		p := boot(t, n.l, new(world), config{program: n.program})
		items := n.reviews(p, 0, 2)
		if _, err := p.Rerun(t.Context(), items[0].ID(), "a ticket", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		n.batch("batch:1", coordinator.Batch{Verb: machine.VerbRerun, Items: items})
		pass(10 * time.Second)
		if _, said := n.came(p, "batch:1"); said.Said != 1 || said.Moved != 1 || n.times("o000") != 2 || n.times("o001") != 2 {
			t.Errorf("%+v, charged %d and %d times", said, n.times("o000"), n.times("o001"))
		}
	})
}

// A batch stops for what is undone, not for what fails twice and is done, nor for what is undone because that was said. Another
// process goes on with it only after a look at what the one before has said.
func TestABatchStopsForWhatIsUndone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		undone, back bool
		fails        func(tries int) error
		stops        string
	}{
		"done at the third try": {fails: func(tries int) error { return map[bool]error{true: errors.New("busy")}[tries < 3] }},
		"undone":                {undone: true, fails: func(int) error { return saga.Permanent(errors.New("no")) }, stops: "undone"},
		"undone as was said":    {undone: true, back: true, fails: func(int) error { return saga.Permanent(errors.New("no")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &night{t: t, l: memory.New(nil), charged: map[string]map[string]bool{}, undone: c.undone}
				var mu sync.Mutex
				tries := map[string]int{}
				n.fails = func(work string) error {
					mu.Lock()
					defer mu.Unlock()
					tries[work]++
					return c.fails(tries[work])
				}
				p := boot(t, n.l, new(world), config{program: n.program})
				b := coordinator.Batch{Items: n.reviews(p, 0, 200), StopAfter: 5}
				if c.undone {
					b.Verb = machine.VerbRerun
				}
				for i := range b.Items {
					b.Items[i].Back = c.back
				}
				n.mended.Store(true)
				n.batch("batch:1", b)
				pass(time.Minute)
				_, said := n.came(p, "batch:1")
				if (c.stops != "") != strings.HasPrefix(said.Stopped, "5 failed: ") || !strings.HasSuffix(said.Stopped, c.stops) || said.Said+said.Left != 200 || (said.Left > 20) != (c.stops != "") {
					t.Errorf("%+v", said)
				}
			})
		})
	}
	t.Run("another process", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			n := &night{t: t, l: memory.New(nil), charged: map[string]map[string]bool{}}
			p := boot(t, n.l, new(world), config{program: n.program})
			items := n.reviews(p, 0, 100)
			n.batch("batch:1", coordinator.Batch{Items: items, StopAfter: 10})
			for n.saidTo(items[14].ID()) == 0 {
				pass(10 * time.Millisecond)
			}
			p.kill()
			if n.saidTo(items[18].ID()) != 0 {
				t.Fatal("too many were said")
			}
			p = boot(t, n.l, new(world), config{program: n.program})
			if _, said := n.came(p, "batch:1"); said.Said > 18 || said.Stopped == "" || len(said.Each) != 100 {
				t.Errorf("%+v", said)
			}
		})
	})
}

// blind is a ledger of which a work cannot be read.
type blind struct {
	ledger.Ledger

	work string
}

func (b *blind) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	if slices.Contains(ids, idOf(b.work)) {
		return nil, ledger.ErrDamaged
	}
	return b.Ledger.Load(ctx, ids)
}

// One work that cannot be read is refused, and the others are told.
func TestABatchPassesOverWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t, l: memory.New(nil), charged: map[string]map[string]bool{}}
		p := boot(t, n.l, new(world), config{program: n.program})
		items := n.reviews(p, 0, 5)
		p.kill()
		n.mended.Store(true)
		p = boot(t, &blind{n.l, items[1].Work}, new(world), config{program: n.program})
		n.batch("batch:1", coordinator.Batch{Items: items})
		if _, said := n.came(p, "batch:1"); said.Each != "srsss" {
			t.Errorf("%+v", said)
		}
	})
}
