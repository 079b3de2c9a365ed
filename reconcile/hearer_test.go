package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/store/memory"
)

// Rows E*, G* and D17 of the checklist, as the hearer holds them. All of it runs in virtual time on the memory
// store.

func TestPushedStateIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		h, stop := b.run()
		defer stop()
		b.after(500 * time.Millisecond)
		b.pushes("1", 1)
		h.Nudge()
		synctest.Wait() // no time passes: the nudge is enough
		b.pushes("1", 2)
		h.Nudge()
		synctest.Wait()
		if !slices.Equal(b.delivered, []string{"1@1", "1@2"}) || len(b.fetched) > 0 {
			t.Fatalf("delivered %v, fetched %v", b.delivered, b.fetched)
		}
		if c := h.Counts(); !maps.Equal(c.Verdicts, map[reconcile.Verdict]int64{reconcile.Applied: 2}) || c.Delivered != 2 {
			t.Fatalf("counts %+v", c)
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

// G1: "exponential backoff with full jitter 1 s..1 h, attempts and last error on the row; other keys unaffected".
func TestFailureBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Poll = 20 * time.Second
		tries, began := 0, time.Now()
		b.source.Deliver = func(_ context.Context, c reconcile.Change) error {
			if c.ID != "bad" {
				return nil
			}
			tries++
			return errors.New("the coordinator is away")
		}
		b.pushes("bad", 1)
		b.pushes("good", 1)
		h, stop := b.run()
		defer stop()
		b.after(24 * time.Hour)
		if !slices.Equal(b.delivered, []string{"good@1"}) {
			t.Fatalf("delivered %v", b.delivered)
		}
		// Ten waits until the cap of an hour, half of it on average afterwards.
		if e := b.entry("bad"); e.Attempts != tries || e.LastError != "the coordinator is away" || e.Blocked != "" || tries < 30 || tries > 100 {
			t.Fatalf("%d tries in %s; the row says %d, %q, blocked %q", tries, time.Since(began), e.Attempts, e.LastError, e.Blocked)
		}
		before := tries
		b.pushes("bad", 2) // news is tried at once, however long the wait was
		h.Nudge()
		b.after(time.Second)
		if tries == before {
			t.Fatal("a newer version waited for the older one's backoff")
		}
	})
}

// G2: "dead-letter at once with reason; operator replay".
func TestPermanentErrorBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Poll = 20 * time.Second
		tries, fixed := 0, false
		b.source.Deliver = func(context.Context, reconcile.Change) error {
			if tries++; fixed {
				return nil
			}
			return fmt.Errorf("start: %w", reconcile.Permanent(errors.New("no such customer")))
		}
		b.pushes("1", 1)
		h, stop := b.run()
		defer stop()
		b.after(48 * time.Hour)
		e := b.entry("1")
		if tries != 1 || e.Blocked != "start: no such customer" || !e.Due.IsZero() || h.Counts().Blocked != 1 {
			t.Fatalf("%d tries, blocked %q, due %s, counts %+v", tries, e.Blocked, e.Due, h.Counts())
		}
		fixed = true
		if n, err := b.store.Replay(t.Context(), reconcile.DeliveryFilter{Object: object("1")}, "mended"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		h.Nudge()
		synctest.Wait()
		d, err := b.store.Delivery(t.Context(), 1)
		if err != nil || d.Outcome != reconcile.Duplicate || !strings.HasSuffix(d.Because, "(mended)") {
			t.Fatalf("%s, %q, %v", d.Outcome, d.Because, err)
		}
		if e := b.entry("1"); tries != 2 || e.Blocked != "" || e.Owing() {
			t.Fatalf("after the replay: %d tries, %+v", tries, e)
		}
	})
}

// E5, G2: a source that refuses for good blocks; a refusal that may pass never does, and neither is a deletion.
func TestRefusedFetchIsNoDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Poll = 20 * time.Second
		b.pushes("forbidden", 1)
		b.pushes("nonsense", 1)
		b.source.Fetch = func(_ context.Context, o reconcile.Object) (reconcile.Fetched, error) {
			err := errors.New("403 forbidden")
			if o.ID == "nonsense" {
				err = reconcile.Permanent(errors.New("400 no id"))
			}
			return reconcile.Fetched{Gone: true}, err
		}
		_, stop := b.run()
		defer stop()
		b.hints("forbidden")
		b.hints("nonsense")
		b.after(12 * time.Hour)
		if e := b.entry("forbidden"); e.Deleted || e.Blocked != "" || e.Dirty == e.Clean || e.Due.IsZero() {
			t.Fatalf("%+v", e)
		}
		if e := b.entry("nonsense"); e.Deleted || e.Blocked != "400 no id" {
			t.Fatalf("%+v", e)
		}
	})
}

// G3: "recovered, counted, treated as G1, stack stored once per fingerprint".
func TestPanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		panics, stacks := 0, 0
		b.opts.Listener = &reconcile.Listener{Panicked: func(_ reconcile.Object, what, stack string) {
			if panics++; stack != "" {
				stacks++
			}
			if !strings.Contains(what, "TestPanicIsAFailure") || !strings.Contains(what, "nil customer") {
				t.Errorf("what panicked is not told: %s", what)
			}
		}}
		b.source.Deliver = func(_ context.Context, c reconcile.Change) error {
			if c.ID == "bad" && panics < 3 {
				panic("nil customer")
			}
			return nil
		}
		b.pushes("bad", 1)
		b.pushes("good", 1)
		h, stop := b.run()
		defer stop()
		b.after(time.Hour)
		if panics != 3 || stacks != 1 || h.Counts().Panics != 3 || len(b.delivered) != 2 {
			t.Fatalf("%d panics, %d stacks, delivered %v", panics, stacks, b.delivered)
		}
	})
}

// G5: "N workers never run one key twice at once, on any node"; E1: a hint during a fetch is one more round.
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
		b.source.Fetch = func(ctx context.Context, o reconcile.Object) (reconcile.Fetched, error) {
			return shown(int64(time.Since(time.Unix(946684800, 0)) / time.Second)), within(ctx, o.ID)
		}
		b.source.Deliver = func(ctx context.Context, c reconcile.Change) error { return within(ctx, c.ID) }
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

// G6: "fencing epoch on every final write; late write matches nothing". A fetch that hears no deadline comes back
// after its lease; meanwhile another process has done the work.
func TestLateWriteMatchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Lease = 30 * time.Second
		first, lost := true, 0
		b.opts.Listener = &reconcile.Listener{Lost: func(reconcile.Object) { lost++ }}
		b.source.Fetch = func(ctx context.Context, _ reconcile.Object) (reconcile.Fetched, error) {
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
		if e := b.entry("1"); lost != 1 || e.Version != reconcile.Counter(2) || !slices.Equal(b.delivered, []string{"1@2"}) {
			t.Fatalf("%d leases lost, version %s, delivered %v", lost, e.Version.Revision(), b.delivered)
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
		b.source.Fetch = func(ctx context.Context, _ reconcile.Object) (reconcile.Fetched, error) {
			defer func() { took = time.Since(began) }()
			return reconcile.Fetched{}, hang(ctx)
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

// Stopping cancels what is under way, gives it back and counts no attempt; another process has it at once.
func TestStopGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.source.Fetch = func(ctx context.Context, _ reconcile.Object) (reconcile.Fetched, error) {
			return reconcile.Fetched{}, hang(ctx)
		}
		b.hints("1")
		_, stop := b.run()
		b.after(5 * time.Second)
		stop()
		if e := b.entry("1"); e.Attempts != 0 || e.Holder != "" || e.Due.After(time.Now()) || e.LastError != "" {
			t.Fatalf("%+v", e)
		}
		b.source.Fetch = func(context.Context, reconcile.Object) (reconcile.Fetched, error) { return shown(1), nil }
		_, stop = b.run()
		b.after(time.Second)
		stop()
		if !slices.Equal(b.delivered, []string{"1@1"}) {
			t.Fatalf("delivered %v", b.delivered)
		}
	})
}

// D17: "concurrent D2 from two nodes: both orders give max ver". Many batches, two processes.
func TestTwoProcessesJudgeOneInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Batch = 3
		for n := range int64(50) {
			for id := range 5 {
				b.pushes(fmt.Sprint(id), (n*7)%50+1)
			}
		}
		h1, stop1 := b.run()
		defer stop1()
		h2, stop2 := b.run()
		defer stop2()
		b.after(time.Minute)
		sum := map[reconcile.Verdict]int64{}
		for _, h := range []*reconcile.Hearer{h1, h2} {
			for v, n := range h.Counts().Verdicts {
				sum[v] += n
			}
		}
		if sum[reconcile.Applied]+sum[reconcile.Stale] != 250 {
			t.Fatalf("verdicts %v", sum)
		}
		for id := range 5 {
			if e := b.entry(fmt.Sprint(id)); e.Version != reconcile.Counter(50) || e.Owing() {
				t.Fatalf("%+v", e)
			}
		}
	})
}

// A hearer of a source that nobody set up says so, once the source is set up a replay heals it.
func TestUnknownSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.accept(reconcile.Event{Object: reconcile.Object{Source: "crm", Type: "person", ID: "1"}, Payload: reconcile.Thin})
		h, stop := b.run()
		defer stop()
		b.after(time.Second)
		if h.Counts().Verdicts[reconcile.Unknown] != 1 {
			t.Fatalf("%+v", h.Counts())
		}
	})
}

// Every fault of the options is reported at once.
func TestNewReportsEveryFault(t *testing.T) {
	_, err := reconcile.New(memory.New(nil), reconcile.Options{Lease: time.Millisecond, Sources: map[string]reconcile.Source{
		"shop": {Policy: reconcile.Policy{Settle: -1, Merge: func(a, _ json.RawMessage) (json.RawMessage, error) { return a, nil }}},
	}})
	for _, fault := range []string{"Lease", `source "shop"`, "no Fetch", "no Deliver", "negative", "Dense"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is not among the faults: %v", fault, err)
		}
	}
	if _, err := reconcile.New(memory.New(nil), reconcile.Options{}); err == nil || !strings.Contains(err.Error(), "no Sources") {
		t.Error(err)
	}
}
