package simulation

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

// "Fetches <= 2 x distinct keys under a hint storm". A thousand hints on each of twenty
// objects within a second, heard by two processes.
func TestHintStorm(t *testing.T) {
	for _, versioned := range []bool{false, true} {
		t.Run(fmt.Sprint("versioned ", versioned), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const keys, hints = 20, 1000
				var mu sync.Mutex
				fetches := map[intake.Object]int{}
				version := intake.At(time.Now().Add(-time.Second), time.Second)
				store := memory.New(nil)
				source := inbox.Source{
					Name: "shop", Saga: "order-to-invoice",
					Fetch: func(ctx context.Context, o intake.Object) (inbox.Fetched, error) {
						mu.Lock()
						fetches[o]++
						mu.Unlock()
						return inbox.Fetched{Version: version, Body: []byte(`{}`)}, pause(ctx, 100*time.Millisecond)
					},
					Decide: func(c inbox.Snapshot) (saga.Change, error) { return saga.Change{Input: c.Body}, nil },
					Apply:  func(context.Context, saga.Change) error { return nil },
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				var processors []*inbox.Processor
				for range 2 {
					one := source // each process has its own
					one.Limits = inbox.Limits{PerSecond: 1000}
					h, err := inbox.New(store, []*inbox.Source{&one}, &inbox.Options{Workers: 64})
					if err != nil {
						t.Fatal(err)
					}
					processors = append(processors, h)
					running.Go(func() { _ = h.Run(ctx) })
				}
				for n := range hints {
					var events []intake.Event
					for k := range keys {
						ev := intake.Event{Object: intake.Object{Source: "shop", Type: "order", ID: fmt.Sprint(k)}, Payload: intake.Thin, Received: time.Now()}
						ev.Dedupe = intake.DigestOf(ev.Object.ID, fmt.Sprint(n))
						if versioned {
							ev.Version = version
						}
						events = append(events, ev)
					}
					if err := store.Accept(t.Context(), events); err != nil {
						t.Fatal(err)
					}
					processors[n%2].Sources()[0].Wake()
					_ = pause(t.Context(), time.Millisecond)
				}
				_ = pause(t.Context(), time.Minute)
				cancel()
				running.Wait()
				var all int
				for _, n := range fetches {
					all += n
				}
				t.Logf("%d hints on %d objects: %d fetches", keys*hints, keys, all)
				if all > 2*keys || all < keys {
					t.Errorf("%d fetches for %d objects", all, keys)
				}
				entries, err := store.Entries(t.Context(), intake.EntryFilter{Owing: true})
				if err != nil || len(entries) > 0 {
					t.Errorf("%d objects are still owed something (%v)", len(entries), err)
				}
			})
		})
	}
}
