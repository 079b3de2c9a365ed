package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// "Exponential backoff with full jitter 1 s..1 h, attempts and last error on the row; other
// keys unaffected".
func TestFailureBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Poll = 20 * time.Second
		tries, began := 0, time.Now()
		b.source.Apply = func(_ context.Context, c saga.Change) error {
			if idOf(c) != "bad" {
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
		h.Sources()[0].Wake()
		b.after(time.Second)
		if tries == before {
			t.Fatal("a newer version waited for the older one's backoff")
		}
	})
}

// "Dead-letter at once with reason; operator replay".
func TestPermanentErrorBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Poll = 20 * time.Second
		tries, fixed := 0, false
		b.source.Apply = func(context.Context, saga.Change) error {
			if tries++; fixed {
				return nil
			}
			return fmt.Errorf("start: %w", asking.Permanent(errors.New("no such customer")))
		}
		b.pushes("1", 1)
		h, stop := b.run()
		defer stop()
		b.after(48 * time.Hour)
		e := b.entry("1")
		_, told := b.told.now()
		if tries != 1 || e.Blocked != "start: no such customer" || !e.Due.IsZero() || told.blocked != 1 {
			t.Fatalf("%d tries, blocked %q, due %s, counts %+v", tries, e.Blocked, e.Due, told)
		}
		fixed = true
		if n, err := b.store.Replay(t.Context(), intake.DeliveryFilter{Object: object("1")}, "mended"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		h.Sources()[0].Wake()
		synctest.Wait()
		d, err := b.store.Delivery(t.Context(), 1)
		if err != nil || d.Outcome != intake.Duplicate || !strings.HasSuffix(d.Because, "(mended)") {
			t.Fatalf("%s, %q, %v", d.Outcome, d.Because, err)
		}
		if e := b.entry("1"); tries != 2 || e.Blocked != "" || e.Owing() {
			t.Fatalf("after the replay: %d tries, %+v", tries, e)
		}
	})
}

// A source that refuses for good blocks; a refusal that may pass never does, and neither is
// a deletion.
func TestRefusedFetchIsNoDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Poll = 20 * time.Second
		b.pushes("forbidden", 1)
		b.pushes("nonsense", 1)
		b.source.Fetch = func(_ context.Context, o inbox.Object) (inbox.Fetched, error) {
			err := errors.New("403 forbidden")
			if o.ID == "nonsense" {
				err = asking.Permanent(errors.New("400 no id"))
			}
			return inbox.Fetched{Gone: true}, err
		}
		_, stop := b.run()
		defer stop()
		b.hints("forbidden")
		b.hints("nonsense")
		b.after(12 * time.Hour)
		if e := b.entry("forbidden"); e.Deleted || e.Blocked != "" || e.FetchRequested == e.FetchCompleted || e.Due.IsZero() {
			t.Fatalf("%+v", e)
		}
		if e := b.entry("nonsense"); e.Deleted || e.Blocked != "400 no id" {
			t.Fatalf("%+v", e)
		}
	})
}

// A source that refuses for good does not end the tries to deliver what was accepted before.
func TestRefusedFetchDoesNotBlockDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.source.Fetch = func(context.Context, inbox.Object) (inbox.Fetched, error) {
			return inbox.Fetched{}, asking.Permanent(errors.New("400 no id"))
		}
		failures := 2
		b.source.Apply = func(context.Context, saga.Change) error {
			if failures--; failures >= 0 {
				return errors.New("the coordinator is away")
			}
			return nil
		}
		b.pushes("1", 1)
		b.hints("1")
		_, stop := b.run()
		defer stop()
		b.after(time.Minute)
		if e := b.entry("1"); !slices.Equal(b.delivered, []string{"1@1"}) || e.Blocked != "400 no id" {
			t.Fatalf("delivered %v, %+v", b.delivered, e)
		}
	})
}

// "Recovered, counted, treated as any error, stack stored once per fingerprint".
func TestPanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		panics, stacks := 0, 0
		b.opts.Listener = &inbox.Listener{Panicked: func(_ inbox.Object, what, stack string) {
			if panics++; stack != "" {
				stacks++
			}
			if !strings.Contains(what, "TestPanicIsAFailure") || !strings.Contains(what, "nil customer") {
				t.Errorf("what panicked is not told: %s", what)
			}
		}}
		b.source.Apply = func(_ context.Context, c saga.Change) error {
			if idOf(c) == "bad" && panics < 3 {
				panic("nil customer")
			}
			return nil
		}
		b.pushes("bad", 1)
		b.pushes("good", 1)
		_, stop := b.run()
		defer stop()
		b.after(time.Hour)
		if panics != 3 || stacks != 1 || len(b.delivered) != 2 {
			t.Fatalf("%d panics, %d stacks, delivered %v", panics, stacks, b.delivered)
		}
	})
}

// An object whose accepted counter was never its source's own shows as blocked, a person is
// told once, the source is asked all the same, and when its versions begin a new epoch the object
// goes on by itself.
func TestFrozenObjectIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var told atomic.Int64
		b.opts.Listener = &inbox.Listener{Blocked: func(inbox.Object, string) { told.Add(1) }}
		var epoch atomic.Int64
		b.source.Fetch = func(context.Context, inbox.Object) (inbox.Fetched, error) {
			f := shown(8)
			f.Version.Epoch = epoch.Load()
			return f, nil
		}
		b.pushes("1", 1<<50)
		_, stop := b.run()
		defer stop()
		b.after(time.Minute)
		b.pushes("1", 8)
		b.after(5 * time.Hour)
		blocked, err := b.store.Entries(t.Context(), intake.EntryFilter{Blocked: true})
		if err != nil || len(blocked) != 1 || !strings.Contains(blocked[0].Blocked, "begin a new epoch") || told.Load() != 1 {
			t.Fatalf("%d blocked, told %d times, %v", len(blocked), told.Load(), err)
		}
		asked := len(b.fetched)
		b.after(3 * time.Hour)
		if len(b.fetched) == asked {
			t.Error("the source is not asked any more")
		}
		epoch.Store(1)
		b.after(2 * time.Hour)
		if e := b.entry("1"); e.Blocked != "" || !slices.Contains(b.delivered, "1@1/8") {
			t.Errorf("delivered %v, blocked %q", b.delivered, e.Blocked)
		}
	})
}
