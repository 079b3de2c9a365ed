package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// reads counts what is asked of a ledger.
type reads struct {
	ledger.Ledger

	loads, looks atomic.Int64
}

func (r *reads) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	r.loads.Add(1)
	return r.Ledger.Load(ctx, ids)
}

func (r *reads) AtRest(ctx context.Context, ids []saga.ID) ([]saga.ID, error) {
	r.looks.Add(1)
	return r.Ledger.AtRest(ctx, ids)
}

// Callers who wait for what another process does cost their process two statements a
// second, however many they are, and a load each at the beginning and at the end.
func TestWaitingCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, minutes = 2000, 2
		l := memory.New(nil)
		d := oneStep(t, "billing", "", func(context.Context, saga.Call[order]) (thing, error) {
			<-time.After(minutes * time.Minute)
			return thing{ID: "x"}, nil
		})
		holder := several(t, l, config{}, d)
		pass(time.Second)
		holder.starts("billing", callers)
		r := &reads{Ledger: l}
		p := several(t, r, config{}, d)
		pass(time.Second)
		r.loads.Store(0)
		var all sync.WaitGroup
		for n := range callers {
			all.Go(func() {
				s, err := p.Wait(t.Context(), "billing", fmt.Sprintf("w%05d", n))
				if err != nil || s.Status != saga.Completed {
					t.Errorf("%d: %s, %v", n, s.Status, err)
				}
			})
		}
		all.Wait()
		if n := r.loads.Load(); n != 2*callers {
			t.Errorf("%d loads for %d callers, want one at the beginning and one at the end", n, callers)
		}
		if n := r.looks.Load(); n > 2*(minutes*60+2) {
			t.Errorf("%d looks in %d minutes, want two a second", n, minutes)
		}
		looks := r.looks.Load()
		pass(time.Minute)
		if n := r.looks.Load() - looks; n != 0 {
			t.Errorf("%d looks while nothing is waited for", n)
		}
	})
}

// A caller who goes takes nothing from another who waits for the same work.
func TestOneOfTwoCallersGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		d := oneStep(t, "billing", "", func(context.Context, saga.Call[order]) (thing, error) {
			<-time.After(10 * time.Second)
			return thing{ID: "x"}, nil
		})
		holder := several(t, l, config{}, d)
		pass(time.Second)
		holder.starts("billing", 1)
		p := several(t, l, config{}, d)
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := p.Wait(short, "billing", "w00000"); err == nil {
				t.Error("the first waited for longer than its context")
			}
		})
		both.Go(func() {
			if s, err := p.Wait(t.Context(), "billing", "w00000"); err != nil || s.Status != saga.Completed {
				t.Errorf("the second heard %s, %v", s.Status, err)
			}
		})
		both.Wait()
	})
}
