package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// What the processor promises. All of it runs in virtual time
// on the memory store.

func TestPushedStateIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		h, stop := b.run()
		defer stop()
		b.after(500 * time.Millisecond)
		b.pushes("1", 1)
		h.Sources()[0].Wake()
		synctest.Wait() // no time passes: the wake is enough
		b.pushes("1", 2)
		h.Sources()[0].Wake()
		synctest.Wait()
		if !slices.Equal(b.delivered, []string{"1@1", "1@2"}) || len(b.fetched) > 0 {
			t.Fatalf("delivered %v, fetched %v", b.delivered, b.fetched)
		}
		if v, _ := b.told.now(); !maps.Equal(v, map[intake.Disposition]int64{intake.Applied: 2}) {
			t.Fatalf("dispositions %v", v)
		}
	})
}

// "Level-triggered": what is delivered is the latest accepted state, not each.
func TestOnlyTheLatestIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for n := range int64(5) {
			b.pushes("1", n+1)
		}
		_, stop := b.run()
		defer stop()
		b.after(time.Second)
		if !slices.Equal(b.delivered, []string{"1@5"}) {
			t.Fatalf("delivered %v", b.delivered)
		}
	})
}

// What is accepted while an older state is being delivered is delivered after it.
func TestNewsDuringDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.source.Apply = func(ctx context.Context, _ saga.Change) error { return pauseFor(ctx, 5*time.Second) }
		b.pushes("1", 1)
		_, stop := b.run()
		defer stop()
		b.after(2 * time.Second)
		b.pushes("1", 2)
		b.pushes("1", 3)
		b.after(time.Minute)
		if e := b.entry("1"); !slices.Equal(b.delivered, []string{"1@1", "1@3"}) || e.Owing() {
			t.Fatalf("delivered %v, %+v", b.delivered, e)
		}
	})
}

// "N workers never run one key twice at once, on any node"; a hint during a fetch is one
// more round.
func TestOneObjectIsSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var mu sync.Mutex
		at := map[string]int{}
		most, inParallel := 0, 0
		within := func(ctx context.Context, id string) error {
			mu.Lock()
			at[id]++
			most, inParallel = max(most, at[id]), max(inParallel, len(at))
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				if at[id]--; at[id] == 0 {
					delete(at, id)
				}
			}()
			return pauseFor(ctx, 700*time.Millisecond)
		}
		b.source.Fetch = func(ctx context.Context, o inbox.Object) (inbox.Fetched, error) {
			return shown(int64(time.Since(time.Unix(946684800, 0)) / time.Second)), within(ctx, o.ID)
		}
		b.source.Apply = func(ctx context.Context, c saga.Change) error { return within(ctx, idOf(c)) }
		_, stop1 := b.run()
		defer stop1()
		_, stop2 := b.run()
		defer stop2()
		for range 60 {
			for id := range 8 {
				b.hints(fmt.Sprint(id))
			}
			b.after(300 * time.Millisecond)
		}
		b.after(time.Minute)
		if most != 1 || inParallel < 5 {
			t.Fatalf("%d at once on one object, %d objects at once", most, inParallel)
		}
	})
}

// "Fencing epoch on every final write; late write matches nothing". A fetch that hears no
// deadline comes back after its lease; meanwhile another process has done the work.
func TestLateWriteMatchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Lease = 30 * time.Second
		first, lost := true, 0
		b.opts.Listener = &inbox.Listener{Lost: func(inbox.Object) { lost++ }}
		b.source.Fetch = func(ctx context.Context, _ inbox.Object) (inbox.Fetched, error) {
			if first {
				first = false
				_ = pauseFor(context.WithoutCancel(ctx), time.Minute)
				return shown(9), nil // were it believed, everything real would be stale
			}
			return shown(2), nil
		}
		b.hints("1")
		_, stop1 := b.run()
		defer stop1()
		b.after(20 * time.Second)
		_, stop2 := b.run()
		defer stop2()
		b.after(5 * time.Minute)
		if e := b.entry("1"); lost != 1 || e.Version != inbox.Counter(2) || !slices.Equal(b.delivered, []string{"1@2"}) {
			t.Fatalf("%d leases lost, version %s, delivered %v", lost, e.Version.Revision(), b.delivered)
		}
	})
}

// The fence also holds between two leases of one process.
func TestLateWriteOfTheSameProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Lease = 30 * time.Second
		var calls atomic.Int32 // two of them overlap
		b.source.Fetch = func(ctx context.Context, _ inbox.Object) (inbox.Fetched, error) {
			switch calls.Add(1) {
			case 1: // comes back while the second is under way
				_ = pauseFor(context.WithoutCancel(ctx), 40*time.Second)
				return shown(9), nil
			case 2:
				return shown(2), pauseFor(ctx, 18*time.Second)
			default:
				return shown(2), nil
			}
		}
		b.hints("1")
		_, stop := b.run()
		defer stop()
		b.after(5 * time.Minute)
		_, told := b.told.now()
		if e := b.entry("1"); told.lost != 1 || e.Version != inbox.Counter(2) || !slices.Equal(b.delivered, []string{"1@2"}) {
			t.Fatalf("%d leases lost, version %s, delivered %v", told.lost, e.Version.Revision(), b.delivered)
		}
	})
}

// A call that never ends is cut short before the lease is over, and counts as a failure.
func TestWorkIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Lease = 30 * time.Second
		began := time.Now()
		var took time.Duration
		b.source.Fetch = func(ctx context.Context, _ inbox.Object) (inbox.Fetched, error) {
			defer func() { took = time.Since(began) }()
			return inbox.Fetched{}, hang(ctx)
		}
		b.hints("1")
		_, stop := b.run()
		defer stop()
		b.after(25 * time.Second)
		if e := b.entry("1"); took != 20*time.Second || e.Attempts != 1 {
			t.Fatalf("cut short after %s; %+v", took, e)
		}
	})
}

// Stopping cancels what is under way, gives it back and counts no attempt; another process has it
// at once.
func TestStopGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.source.Fetch = func(ctx context.Context, _ inbox.Object) (inbox.Fetched, error) {
			return inbox.Fetched{}, hang(ctx)
		}
		b.hints("1")
		_, stop := b.run()
		b.after(5 * time.Second)
		stop()
		if e := b.entry("1"); e.Attempts != 0 || e.Holder != "" || e.Due.After(time.Now()) || e.LastError != "" {
			t.Fatalf("%+v", e)
		}
		b.source.Fetch = func(context.Context, inbox.Object) (inbox.Fetched, error) { return shown(1), nil }
		_, stop = b.run()
		b.after(time.Second)
		stop()
		if !slices.Equal(b.delivered, []string{"1@1"}) {
			t.Fatalf("delivered %v", b.delivered)
		}
	})
}

// "Concurrent deliveries from two nodes: both orders give max ver". Many batches, two processes.
func TestTwoProcessesJudgeOneInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Batch = 3
		for n := range int64(50) {
			for id := range 5 {
				b.pushes(fmt.Sprint(id), (n*7)%50+1)
			}
		}
		_, stop1 := b.run()
		defer stop1()
		_, stop2 := b.run()
		defer stop2()
		b.after(time.Minute)
		sum, _ := b.told.now()
		if sum[intake.Applied]+sum[intake.Stale] != 250 {
			t.Fatalf("dispositions %v", sum)
		}
		for id := range 5 {
			if e := b.entry(fmt.Sprint(id)); e.Version != inbox.Counter(50) || e.Owing() {
				t.Fatalf("%+v", e)
			}
		}
	})
}

// A processor of a source that nobody set up says so, once the source is set up a replay heals it.
func TestUnknownSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.accept(intake.Event{Object: inbox.Object{Source: "crm", Type: "person", ID: "1"}, Payload: intake.Thin})
		_, stop := b.run()
		defer stop()
		b.after(time.Second)
		if v, _ := b.told.now(); v[intake.Unknown] != 1 {
			t.Fatalf("dispositions %v", v)
		}
	})
}

// broken are webhooks that no receiver could take.
type broken struct{}

func (broken) Validate(source string) error {
	return fmt.Errorf("the webhooks of %s are broken", source)
}

// Every fault of the sources and the options is reported at once.
func TestNewReportsEveryFault(t *testing.T) {
	_, err := inbox.New(memory.New(nil), []*inbox.Source{
		nil, {Name: "twice", Webhooks: broken{}}, {Name: "twice"}, {},
		{Name: "shop", Policy: inbox.Policy{Settle: -1, Merge: func(a, _ json.RawMessage) (json.RawMessage, error) { return a, nil }}},
	}, &inbox.Options{Lease: time.Millisecond})
	for _, fault := range []string{"Lease", "source 1 is nil", "no Name", "another source of this name", "the webhooks of twice are broken", `source "shop"`, "no Fetch", "no Apply", "negative", "Dense"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is not among the faults: %v", fault, err)
		}
	}
	if _, err := inbox.New(nil, nil, nil); err == nil || !strings.Contains(err.Error(), "no sources") || !strings.Contains(err.Error(), "no Store") {
		t.Error(err)
	}
}
