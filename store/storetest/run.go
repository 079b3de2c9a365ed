package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/prove"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/sweep"
)

// Store is what a store of package reconcile implements.
type Store interface {
	reconcile.Inbox
	reconcile.Gate
	reconcile.Reader
	schedule.Store
	schedule.Reader
	drift.Plans
	drift.Drifts
	sweep.Store
	Close() error
}

// Harness tells the suite how to make a store, and what else this kind of store can do. Only Open is required; what
// is nil is not tested.
type Harness struct {
	// Open returns an empty store. The suite closes it.
	Open func(t *testing.T) Store

	// Again opens the database behind s once more, as another process would. The suite closes it before s.
	Again func(t *testing.T, s Store) Store

	// Address is where the database behind s is, for the function given to [Main].
	Address func(t *testing.T, s Store) string
}

// Run runs the conformance suite, every test in parallel on a store of its own.
func (h Harness) Run(t *testing.T) {
	t.Helper()
	rule := Rule(prove.Broken())
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newBench(t, h, rule))
				})
			}
		})
	}
}

// group is one part of the contract, in one file.
type group struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string // the rule in a few words
	run  func(*bench)
}

var groups = []group{
	{"inbox", inboxCases},
	{"values", valueCases},
	{"judge", judgeCases},
	{"claim", claimCases},
	{"update", updateCases},
	{"read", readCases},
	{"replay", replayCases},
	{"retention", retentionCases},
	{"plans", planCases},
	{"drifts", driftCases},
	{"sweep", sweepCases},
	{"race", raceCases},
	{"crash", crashCases},
	{"turn", turnCases},
	{"runs", runCases},
}

// bench is one test with its store.
type bench struct {
	*testing.T
	Store
	harness Harness
	raw     Store // the store without the wrapper of a broken rule
}

func newBench(t *testing.T, h Harness, r Rule) *bench {
	t.Helper()
	raw := h.Open(t)
	b := &bench{T: t, Store: raw, harness: h, raw: raw}
	if r != "" {
		b.Store = Break(raw, r)
	}
	t.Cleanup(func() {
		if err := raw.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// again is a second process on the same database where the harness can have one, else the same store.
func (b *bench) again() Store {
	b.Helper()
	if b.harness.Again == nil {
		return b.Store
	}
	s := b.harness.Again(b.T, b.raw)
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Errorf("close the second process: %v", err)
		}
	})
	return s
}

var errOnlyAsking = errors.New("only asking what time it is")

// clock reads the store's clock: every callback is told.
func (b *bench) clock() (at time.Time) {
	b.Helper()
	err := b.raw.Update(b.Context(), object("clock"), func(now time.Time, _ *reconcile.Entry) error {
		at = now
		return errOnlyAsking
	})
	if !errors.Is(err, errOnlyAsking) {
		b.Fatalf("read the store's clock: %v", err)
	}
	return at
}

// until waits for the store's clock to pass at.
func (b *bench) until(at time.Time) {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !b.clock().After(at) {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatalf("the store's clock did not reach %v: %v", at, b.Context().Err())
		}
	}
}

// object is an order of the one shop there is.
func object(id string) reconcile.Object {
	return reconcile.Object{Source: "shop", Type: "order", ID: id}
}

// event is the one event there is about an order, unless the test changes it.
func event(id string) reconcile.Event {
	now := time.Now().UTC().Truncate(time.Microsecond)
	body := fmt.Sprintf(`{"id": %q, "total": "10.00"}`, id)
	return reconcile.Event{
		Object:      object(id),
		Topic:       "order.updated",
		ID:          "evt_" + id,
		Dedupe:      reconcile.DigestOf("evt", id),
		Payload:     reconcile.Whole,
		Version:     reconcile.At(now.Truncate(time.Second), time.Second),
		Body:        json.RawMessage(body),
		Fingerprint: reconcile.DigestOf(body),
		At:          now.Add(-time.Second),
		Received:    now,
		Secret:      "new",
	}
}

// events are events about n orders.
func events(n int) []reconcile.Event {
	es := make([]reconcile.Event, n)
	for i := range es {
		es[i] = event(fmt.Sprintf("%04d", i))
	}
	return es
}

func (b *bench) accept(es ...reconcile.Event) {
	b.Helper()
	if err := b.Accept(b.Context(), es); err != nil {
		b.Fatalf("accept: %v", err)
	}
}

// all lists every delivery, the oldest first.
func (b *bench) all() []reconcile.Delivery {
	b.Helper()
	ds, err := b.Deliveries(b.Context(), reconcile.DeliveryFilter{Limit: 100_000})
	if err != nil {
		b.Fatalf("list deliveries: %v", err)
	}
	for i, j := 0, len(ds)-1; i < j; i, j = i+1, j-1 {
		ds[i], ds[j] = ds[j], ds[i]
	}
	return ds
}

// judgeAs gives every unjudged delivery one outcome and leaves the entries alone.
func (b *bench) judgeAs(v reconcile.Verdict) int {
	b.Helper()
	n, err := b.Judge(b.Context(), 100_000, func(_ time.Time, ds []reconcile.Delivery, _ map[reconcile.Object]*reconcile.Entry) error {
		for i := range ds {
			ds[i].Outcome, ds[i].Because = v, "the test says so"
		}
		return nil
	})
	if err != nil {
		b.Fatalf("judge: %v", err)
	}
	return n
}

// put changes an entry.
func (b *bench) put(o reconcile.Object, change func(*reconcile.Entry)) {
	b.Helper()
	err := b.Update(b.Context(), o, func(_ time.Time, e *reconcile.Entry) error {
		change(e)
		return nil
	})
	if err != nil {
		b.Fatalf("update %s: %v", o, err)
	}
}

// known returns an entry that must be there.
func (b *bench) known(o reconcile.Object) reconcile.Entry {
	b.Helper()
	e, err := b.Entry(b.Context(), o)
	if err != nil || e == nil {
		b.Fatalf("entry of %s: %v, %v", o, e, err)
	}
	return *e
}
