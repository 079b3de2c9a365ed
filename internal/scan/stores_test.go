package scan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// store is what a store of package inbox is to these tests.
type store interface {
	intake.Inbox
	intake.Gate
	intake.Reader
	scan.Store
	Close() error
}

// onStores runs a test on every kind of store. open opens the same database again.
func onStores(t *testing.T, test func(t *testing.T, open func() store)) {
	t.Helper()
	closed := func(t *testing.T, s store, err error) store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := memory.New(nil)
		test(t, func() store { return s })
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "ledger.db")
		test(t, func() store {
			s, err := sqlite.Open(t.Context(), path, nil)
			return closed(t, s, err)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.URL(t)
		test(t, func() store {
			s, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
			return closed(t, s, err)
		})
	})
}

// desk is where a processor delivers to.
type desk struct {
	mu        sync.Mutex
	delivered map[string]int
	changed   chan struct{}
}

// decide says what the invoice of an order says.
func (d *desk) decide(c inbox.Snapshot) (saga.Change, error) {
	var body struct{ Total int }
	err := json.Unmarshal(c.Body, &body)
	return saga.Change{Input: body.Total}, err
}

func (d *desk) apply(_ context.Context, c saga.Change) error {
	o, _ := intake.ParseObject(c.ID.Work)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delivered[o.ID], _ = c.Input.(int)
	select {
	case d.changed <- struct{}{}:
	default:
	}
	return nil
}

func (d *desk) has(want map[string]int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Equal(d.delivered, want)
}

// I-11, on every store: with not a single webhook, sweeps alone bring the last state of every order
// home, though they are killed again and again and two processes sweep.
func TestSweepsAloneBringEverythingHome(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store) {
		t.Helper()
		b := newBench(t)
		b.now = time.Now().Add(-24 * time.Hour).UTC().Truncate(time.Millisecond)
		b.config.Page = 20
		want := map[string]int{}
		for round := range 6 {
			b.config.Store = open()
			for i := range 60 {
				id := fmt.Sprint((i * 7 * (round + 1)) % 150)
				want[id] = b.put(id, round+1, 0).total
				b.now = b.now.Add(time.Second)
			}
			b.now = b.now.Add(time.Minute)
			b.kill(round)
			if _, err := b.sweep().Changed(t.Context()); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		b.kill(-1)
		b.ok(b.changed())
		d := &desk{delivered: map[string]int{}, changed: make(chan struct{}, 1)}
		b.hear(d, open(), want)
	})
}

// hear runs a processor until everything is delivered.
func (b *bench) hear(d *desk, s store, want map[string]int) {
	b.Helper()
	fetch := func(_ context.Context, o intake.Object) (inbox.Fetched, error) {
		object := b.orders[o.ID].object(b.step) // nobody changes them any more
		return inbox.Fetched{Version: object.Version, Body: object.Body}, nil
	}
	h, err := inbox.New(s, []*inbox.Source{{
		Name: "shop", Saga: "order-to-invoice", Fetch: fetch, Decide: d.decide, Apply: d.apply, Limits: inbox.Limits{PerSecond: 1000},
	}}, &inbox.Options{Poll: 20 * time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var hearing sync.WaitGroup
	hearing.Go(func() { _ = h.Run(ctx) }) // it returns nil
	defer hearing.Wait()
	defer stop()
	limit := time.After(2 * time.Minute)
	for !d.has(want) {
		select {
		case <-d.changed:
		case <-limit:
			b.Fatalf("delivered %v, want %v", d.delivered, want)
		}
	}
}

// A full listing, on every store: what it sees is the source, whoever goes on with it, and nothing
// else is left.
func TestListOnStores(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store) {
		t.Helper()
		b := divided(t)
		b.config.Workers = 1
		for kill := 3; ; kill += 5 {
			b.config.Store = open()
			b.kill(kill)
			r, err := b.sweep().List(t.Context(), scan.SourceSide)
			if err == nil {
				b.ok(r)
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		b.kill(-1)
		delete(b.orders, "17")
		b.put("5x", 2, 0)
		r := b.list()
		if b.ok(r); r.Listed.Complete.Rows != 100 || r.Listed.Before != 100 {
			t.Errorf("complete is %+v", r.Listed)
		}
		var ids []string
		for row, err := range sightings(t.Context(), open(), scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Limit: 13}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, row.ID)
		}
		if want := slices.Sorted(maps.Keys(b.orders)); !slices.Equal(ids, want) {
			t.Errorf("there are %v, want %v", ids, want)
		}
	})
}
