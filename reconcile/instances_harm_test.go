package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// sale has thirty orders invoiced, by a process whose ledger is lost.
func (w *sagaWorld) sale(t *testing.T) {
	t.Helper()
	p := w.boot(t, memory.New(nil), memory.New(nil), false).begin()
	for i := range 30 {
		w.orders[fmt.Sprint(i)] = &order{Version: 1, Total: "10"}
		p.hears(fmt.Sprint(i))
	}
	pass(time.Minute)
	p.halt()
}

// lives lets the coordinator run behind a rebuild, and every order be heard of once more (what the
// restarted incremental sweep does), and holds the invoices and mails against one of each.
func (w *sagaWorld) lives(t *testing.T, p *process) {
	t.Helper()
	p.begin()
	for id := range w.orders {
		p.hears(id)
	}
	pass(time.Hour)
	p.halt()
	for id := range w.orders {
		if n, m := len(w.live(keyNamed(id))), w.mails[keyNamed(id)]; n > 1 || m > 1 {
			t.Errorf("order %s: %d invoices, %d mails", id, n, m)
		}
	}
}

// One miss is no proof, in a rebuild either: what is not adopted is made again by the next word
// about it.
func TestRebuildBelievesOneMiss(t *testing.T) {
	for _, side := range []string{"source", "destination"} {
		t.Run(side, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSagaWorld()
				w.sale(t)
				missed := 0
				source, destination := w.source(), w.destination()
				get, find := source.Get, destination.Find
				if side == "source" {
					source.Get = func(ctx context.Context, id string) (*scan.Listed, error) {
						if id == "3" && missed == 0 {
							missed++
							return nil, nil
						}
						return get(ctx, id)
					}
				} else {
					destination.Find = func(ctx context.Context, key string) ([]plan.Document, error) {
						if key == keyNamed("3") && missed == 0 {
							missed++
							return nil, nil
						}
						return find(ctx, key)
					}
				}
				store := memory.New(nil)
				p := w.bootWith(t, memory.New(nil), store, func(c *wiring) {
					c.from(source)
					c.Destination = reconcile.DestinationOf(destination)
				})
				r, err := p.Rebuild(t.Context(), time.Time{}, anna)
				t.Logf("rebuild: %+v, %v", r, err)
				w.lives(t, p)
			})
		})
	}
}

// A destination that lists nothing (another tenant, an error that reads as an empty page) while the
// source wants thirty.
func TestRebuildFromAnEmptyDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSagaWorld()
		w.sale(t)
		store := memory.New(nil)
		destination := w.destination()
		destination.Marked = func(context.Context, scan.Query) (scan.Documents, error) { return scan.Documents{}, nil }
		p := w.bootWith(t, memory.New(nil), store, func(c *wiring) {
			c.Destination = reconcile.DestinationOf(destination)
		})
		r, err := p.Rebuild(t.Context(), time.Time{}, anna)
		t.Logf("rebuild: %+v, %v", r, err)
		w.lives(t, p)
	})
}

// Where neither a listing nor a question finds anything that is ours there is nothing to rebuild
// from: the wrong account, more likely than not. Nothing is recorded, and the sweeps do not begin
// anew.
func TestRebuildFromNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSagaWorld()
		w.sale(t)
		store := memory.New(nil)
		destination := w.destination()
		destination.Marked = func(context.Context, scan.Query) (scan.Documents, error) { return scan.Documents{}, nil }
		destination.Find = func(context.Context, string) ([]plan.Document, error) { return nil, nil }
		l := memory.New(nil)
		p := w.bootWith(t, l, store, func(c *wiring) {
			c.Destination = reconcile.DestinationOf(destination)
		})
		r, err := p.Rebuild(t.Context(), time.Time{}, anna)
		if err != nil || r.Result != schedule.Refused || r.Planned != 0 || !strings.Contains(r.Message, "nothing to rebuild from") {
			t.Errorf("%+v, %v", r, err)
		}
		if heads, err := ledger.First(t.Context(), l, ledger.Filter{}); err != nil || len(heads) > 0 {
			t.Errorf("the ledger has %d works, %v", len(heads), err)
		}
	})
}

// An object that Want cannot read and whose document stands is left out of the ledger, and started
// by the next word.
func TestRebuildLeavesTheUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSagaWorld()
		w.sale(t)
		store := memory.New(nil)
		p := w.bootWith(t, memory.New(nil), store, func(c *wiring) {
			c.Source.Decide = func(o inbox.Snapshot) (saga.Change, error) {
				if o.ID == "3" {
					return saga.Change{}, errors.New("a currency that is not mapped")
				}
				return decide(o)
			}
		})
		r, err := p.Rebuild(t.Context(), time.Time{}, anna)
		t.Logf("rebuild: %+v, %v", r, err)
		w.lives(t, p)
	})
}

// A rebuild that could not look at a key is not at its end, and may not begin the sweeps anew.
func TestPartialRebuildRestartsTheSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSagaWorld()
		w.sale(t)
		store := memory.New(nil)
		source, destination := w.source(), w.destination()
		all := source.All
		source.Changed = func(ctx context.Context, q scan.Query) (scan.Page, error) {
			p, err := all(ctx, q)
			if !q.Since.IsZero() {
				p = scan.Page{}
			}
			for i := range p.Objects {
				p.Objects[i].Changed = time.Now().Add(-time.Hour)
			}
			return p, err
		}
		find := destination.Find
		destination.Find = func(ctx context.Context, key string) ([]plan.Document, error) {
			if key == keyNamed("3") {
				return nil, errors.New("timeout")
			}
			return find(ctx, key)
		}
		p := w.bootWith(t, memory.New(nil), store, func(c *wiring) {
			c.from(source)
			c.Destination = reconcile.DestinationOf(destination)
		})
		// the ledger was restored from a backup; the cursor was not lost
		if _, err := p.SyncChanges(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		before, _ := store.Position(t.Context(), "orders/changed")
		r, err := p.Rebuild(t.Context(), time.Time{}, anna)
		after, _ := store.Position(t.Context(), "orders/changed")
		if r.Failed != 1 || before.Serial != after.Serial {
			t.Errorf("rebuild: %+v, %v; the cursor was at %s and is at %s", r, err, before.State, after.State)
		}
	})
}

// A work that was run again is rebuilt at the sub-revision it had; else its keys are used a
// second time.
func TestRebuildForgetsSubRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, p := running(t)
		for n := range 30 {
			w.sold(fmt.Sprint(n))
			p.hears(fmt.Sprint(n))
		}
		pass(time.Minute)
		if _, err := p.Rerun(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("3")}, "r", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		was := p.known("3")
		old, _ := p.Show(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("3")})
		p.halt()
		p = w.boot(t, memory.New(nil), memory.New(nil), false)
		if r, err := p.Rebuild(t.Context(), time.Time{}, anna); err != nil || r.Applied != 30 {
			t.Fatalf("%+v, %v", r, err)
		}
		if is := p.known("3"); is.Revision != was.Revision {
			t.Errorf("it was at %s, and is rebuilt at %s", was.Revision, is.Revision)
		}
		p.begin()
		if _, err := p.Rerun(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("3")}, "another request", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		now, _ := p.Show(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("3")})
		p.halt()
		if a, b := old.Steps["invoice"].Key, now.Steps["invoice"].Key; a == b {
			t.Errorf("two runs of the step have the key %s", a)
		}
	})
}

// What a person has to decide (quarantine) is not undone by the source's word.
func TestQuarantineAndWithdrawal(t *testing.T) {
	for _, news := range []string{"cancelled", "changed"} {
		t.Run(news, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSagaWorld()
				w.sale(t)
				w.live(keyNamed("3"))[0].Total = "0.99" // a person edited it
				w.docs = append(w.docs, &invoice{ID: "inv_again", Key: keyNamed("4"), Total: "10", Written: "10", Revision: "1"})
				p := w.boot(t, memory.New(nil), memory.New(nil), false)
				if r, err := p.Rebuild(t.Context(), time.Time{}, anna); err != nil || r.NeedsReview != 2 {
					t.Fatalf("%+v, %v", r, err)
				}
				writes := w.writes
				p.begin()
				for _, id := range []string{"3", "4"} {
					w.orders[id] = &order{Version: 2, Total: "12", Cancelled: news == "cancelled"}
					p.hears(id)
				}
				pass(time.Hour)
				for _, id := range []string{"3", "4"} {
					t.Logf("%s: %+v %+v", id, p.known(id), w.live(keyNamed(id)))
				}
				if w.writes != writes {
					t.Errorf("%d writes", w.writes-writes)
				}
				p.halt()
			})
		})
	}
}

// An adoption of a run that was cut off is taken up by the next run, or said as what it is.
func TestAdoptionCutOffInARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSagaWorld()
		w.sale(t)
		l, plans := memory.New(nil), memory.New(nil)
		faulty := ledgertest.Faulty(l, ledgertest.CrashAfter(1, ledgertest.Append))
		p := w.boot(t, faulty, plans, false)
		ctx, die := context.WithCancel(t.Context())
		go func() {
			<-faulty.Crashed()
			die()
		}()
		_, _ = p.PlanAndApply(ctx, true)
		die()
		p = w.boot(t, l, plans, false)
		for range 2 {
			r, err := p.PlanAndApply(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", r)
		}
		for id := range w.orders {
			if k := p.known(id); k == nil || k.Status != saga.Completed {
				t.Errorf("%s is %+v", id, k)
			}
		}
		rows := p.planned()
		t.Log(rows[:min(len(rows), 400)])
	})
}

var _ = inbox.Snapshot{}
