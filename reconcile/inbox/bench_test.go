package inbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// bench is a store, a source whose answers a test scripts, and what was delivered.
type bench struct {
	t      *testing.T
	store  *memory.DB
	source inbox.Source
	opts   inbox.Options
	told   counts

	mu        sync.Mutex
	number    int
	fetched   []string // object ids in the order they were asked for
	delivered []string // id and revision
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, store: memory.New(nil)}
	b.source = inbox.Source{
		Name: "shop", Saga: "order-to-invoice", Limits: inbox.Limits{PerSecond: 1000},
		Fetch:  func(context.Context, inbox.Object) (inbox.Fetched, error) { return shown(1), nil },
		Decide: func(c inbox.Snapshot) (saga.Change, error) { return saga.Change{Input: c.Body}, nil },
		Apply:  func(context.Context, saga.Change) error { return nil },
	}
	return b
}

// idOf is the id of the object that a change is about.
func idOf(c saga.Change) string {
	o, _ := inbox.ParseObject(c.ID.Work)
	return o.ID
}

// run starts a processor and returns how to stop it.
func (b *bench) run() (h *inbox.Processor, stop func()) {
	b.t.Helper()
	s := b.source
	s.Fetch = func(ctx context.Context, o inbox.Object) (inbox.Fetched, error) {
		b.mu.Lock()
		b.fetched = append(b.fetched, o.ID)
		b.mu.Unlock()
		return b.source.Fetch(ctx, o)
	}
	s.Apply = func(ctx context.Context, c saga.Change) error {
		err := b.source.Apply(ctx, c)
		if err == nil {
			b.mu.Lock()
			b.delivered = append(b.delivered, idOf(c)+"@"+c.Revision)
			b.mu.Unlock()
		}
		return err
	}
	o := b.opts
	o.Listener = inbox.Tee(b.told.listener(), o.Listener)
	h, err := inbox.New(b.store, []*inbox.Source{&s}, &o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	return h, func() {
		b.t.Helper()
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("Run: %v", err)
		}
	}
}

func object(id string) inbox.Object {
	return inbox.Object{Source: "shop", Type: "order", ID: id}
}

func shown(n int64) inbox.Fetched {
	body := fmt.Appendf(nil, `{"n":%d}`, n)
	return inbox.Fetched{Version: inbox.Counter(n), Body: body}
}

// pushes stores an event that carries version n; hints one that carries nothing.
func (b *bench) pushes(id string, n int64) {
	b.t.Helper()
	f := shown(n)
	fp, err := intake.Fingerprint(f.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.accept(intake.Event{Object: object(id), Payload: intake.Whole, Version: f.Version, Body: f.Body, Fingerprint: fp})
}

func (b *bench) hints(id string) {
	b.t.Helper()
	b.accept(intake.Event{Object: object(id), Payload: intake.Thin})
}

func (b *bench) accept(ev intake.Event) {
	b.t.Helper()
	b.number++
	ev.Dedupe, ev.Received = intake.DigestOf(fmt.Sprint(b.number)), time.Now()
	if err := b.store.Accept(b.t.Context(), []intake.Event{ev}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) entry(id string) *intake.Entry {
	b.t.Helper()
	e, err := b.store.Entry(b.t.Context(), object(id))
	if err != nil || e == nil {
		b.t.Fatalf("entry %s: %v, %v", id, e, err)
	}
	return e
}

// after lets the bubble's time pass. What the test has looked at so far it may look at again: the
// store's lock orders that before everything the processors do from now on, for the race detector.
func (b *bench) after(d time.Duration) {
	b.t.Helper()
	if _, err := b.store.Counts(b.t.Context()); err != nil {
		b.t.Error(err)
	}
	if err := pauseFor(b.t.Context(), d); err != nil {
		b.t.Error(err)
	}
	synctest.Wait()
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
