package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// skew is how far the clocks of the nodes of these tests are apart: as much as a lease of [quick]
// bears.
const skew = 600 * time.Millisecond

// nodesApart is a ledger of two nodes. Until the clock steps by skew the slow one answers, the fast
// one behind it.
func nodesApart() (*memory.DB, *stepping) {
	clock := &stepping{ahead: -skew / 2}
	return memory.New(&memory.Options{Now: clock.now, Limits: ledger.Limits{Skew: skew, Forgets: true}}), clock
}

// "Opening is refused when the margin is below 2 ε": then a lease could be taken over that is
// still trusted.
func TestALeaseThatTheClocksCannotKeepIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease, margin, skew time.Duration
		refused             bool
	}{
		"one clock":                     {lease: 2 * time.Second},
		"one clock, no margin":          {lease: 2 * time.Second, margin: time.Nanosecond},
		"the default on nodes":          {skew: 500 * time.Millisecond},
		"just enough":                   {lease: 10 * time.Second, skew: time.Second},
		"too short a lease":             {lease: 2 * time.Second, skew: time.Second, refused: true}, // taken over after 0.84 s
		"too small a margin":            {lease: 10 * time.Second, margin: 1999 * time.Millisecond, skew: time.Second, refused: true},
		"nothing is left between beats": {lease: 5 * time.Second, margin: 2 * time.Second, skew: time.Second, refused: true},
	} {
		l := memory.New(&memory.Options{Limits: ledger.Limits{Skew: c.skew}})
		_, err := coordinator.New(l, &coordinator.Options{Lease: c.lease, Margin: c.margin})
		if refused := err != nil; refused != c.refused || refused && !strings.Contains(err.Error(), "Margin must be 2s at least, and Lease 10s") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The slow node grants, the fast one looks. A holder that can renew no more keeps what it
// holds until its lease is over by the right time, and arms nothing in the margin and the skew
// before, where the answer comes that it waits for.
func TestNothingIsTakenFromAHolderWhoseLeaseGoesOn(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]time.Duration{"before the skew": 3 * skew, "in the skew": 5 * skew / 2, "behind the end": -20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { unreached(t, left) })
		})
	}
}

func unreached(t *testing.T, left time.Duration) { //nolint:thelper // it is the test itself, once for each case
	l, clock := nodesApart()
	o := quick()
	o.Margin = 2 * skew
	var cut atomic.Bool
	var renewed, taken atomic.Int64
	over := func() time.Time { return time.Unix(0, renewed.Load()).Add(o.Lease) }
	w := &world{plan: func(a arrival) fault {
		if a.step != "invoice" || a.n > 1 {
			return fault{}
		}
		cut.Store(true)
		clock.step(skew)
		return fault{slow: time.Until(over()) - left}
	}}
	away := errors.New("this process reaches no node any more")
	holder := boot(t, l, w, config{opts: o, tune: tuning{timeout: time.Minute}, hook: &hooked{
		renew: func(context.Context) error {
			if cut.Load() {
				return away
			}
			renewed.Store(time.Now().UnixNano())
			return nil
		},
		append: func(context.Context, []ledger.Entry) error {
			if cut.Load() && !time.Now().Before(over()) {
				return away
			}
			return nil
		},
	}})
	pass(10 * time.Second)
	holder.begin("o1")
	boot(t, l, w, config{opts: o, tune: tuning{timeout: time.Minute}, hook: &hooked{claim: func(hs []ledger.Instance) {
		if len(hs) > 0 {
			taken.CompareAndSwap(0, time.Now().UnixNano())
		}
	}}})
	pass(2 * time.Minute)
	after := time.Unix(0, taken.Load()).Sub(over())
	if left < 0 && (after < 0 || after > 2*skew+2*o.Poll) {
		t.Errorf("taken over %s after the end of the lease", after)
	}
	if len(holder.records.losses()) == 0 {
		t.Error("the holder did not lose its session: the test proves nothing")
	}
	for _, r := range holder.records.of("o1") {
		at := over().Sub(r.At.Add(-skew / 2)) // by the right time, of the fast node's
		if r.Dispatch != nil && r.Session == holder.records.opened[0] && at < o.Margin+skew && r.Dispatch.Step != "invoice" {
			t.Errorf("%s was armed with %s of the lease left", r.Dispatch.Step, at)
		}
	}
	verifyWork(t, l, w, "o1")
}

// "With clocks ±3 s apart sends behind recorded deadlines". The slow node writes the arm and
// grants the lease, its process dies, and the fast one answers who takes it over: the attempt is
// asked for when it has settled by the right time, and not before.
func TestAnAttemptSettlesByEveryClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, clock := nodesApart()
		made := &diary{}
		program := askedFor(t, made)
		var renewed time.Time
		p := several(t, l, config{hook: &hooked{renew: func(context.Context) error { renewed = time.Now(); return nil }}}, program)
		pass(time.Second)
		p.starts("billing", 1)
		pass(10 * time.Second)
		p.kill()
		synctest.Wait()
		settled := renewed.Add(quick().Lease + 30*time.Second)
		time.AfterFunc(time.Until(settled)-time.Millisecond, func() { made.note("invoice") }) // as late as saga/A2 allows
		clock.step(skew)
		several(t, l, config{}, program)
		pass(5 * time.Minute)
		if n := len(made.of("invoice")); n != 1 {
			t.Errorf("%d invoices", n)
		}
		if n := in(t, l, "billing")[saga.Completed]; n != 1 {
			t.Errorf("afterwards: %v", in(t, l, "billing"))
		}
	})
}

// askedFor sends for an invoice and gets no answer.
func askedFor(t testing.TB, made *diary) saga.Program {
	t.Helper()
	const timeout, settle = 30 * time.Second, 30 * time.Second
	d, err := saga.Define("billing", 1, saga.Do("invoice", func(ctx context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		<-ctx.Done()
		return thing{}, ctx.Err()
	}).Find(func(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
		if len(made.of("invoice")) > 0 {
			return saga.Found(thing{ID: "inv"}), nil
		}
		return saga.NotFound[thing](), nil
	}).EachRun().NoUndo("it stays").Timeout(timeout).Settle(settle))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The ledger tells how much one call of it carries, and no batch is larger.
func TestBatchesKeepToTheLedgersLimits(t *testing.T) {
	t.Parallel()
	for _, limits := range []ledger.Limits{{Records: 5}, {Bytes: 1500}} {
		synctest.Test(t, func(t *testing.T) {
			var records, bytes atomic.Int64 // the most of one batch, but for its first record's bytes
			l, w := memory.New(&memory.Options{Limits: limits}), &world{}
			p := boot(t, l, w, config{hook: &hooked{append: func(_ context.Context, es []ledger.Entry) error {
				size := 0
				for i := range es[1:] {
					size += len(es[i+1].Record.Body)
				}
				records.Store(max(records.Load(), int64(len(es))))
				bytes.Store(max(bytes.Load(), int64(size)))
				<-time.After(time.Millisecond) // the others queue up behind it
				return nil
			}}})
			var begun sync.WaitGroup
			for i := range 100 {
				begun.Go(func() {
					if _, err := p.Start(t.Context(), orderSaga, fmt.Sprint("o", i), order{Memo: strings.Repeat("m", 500)}, nil); err != nil {
						t.Error(err)
					}
				})
			}
			begun.Wait()
			pass(time.Minute)
			if n := in(t, l, orderSaga)[saga.Completed]; n != 100 {
				t.Errorf("%d of 100 completed", n)
			}
			if n, size := int(records.Load()), int(bytes.Load()); n < 2 || limits.Records > 0 && n > limits.Records || limits.Bytes > 0 && size > limits.Bytes {
				t.Errorf("%+v: the largest batches have %d records and %d bytes", limits, n, size)
			}
		})
	}
}
