package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// ruins is a world that has lost its ledger, with everything that may be left of an order.
func ruins() *world {
	w := newWorld()
	for n := range 60 {
		w.done(keyOf(n))
	}
	w.done("shop:order:older") // a webhook was lost, too
	w.changed("shop:order:older", "12.00")
	w.done("shop:order:edited")
	w.live("shop:order:edited")[0].Fields["total"] = "9.00"
	w.live("shop:order:edited")[0].Intact = false
	w.done("shop:order:twice")
	w.make("shop:order:twice", "10.00", "1")
	w.sold("shop:order:unsold")
	w.done("shop:order:undone")
	w.orders["shop:order:undone"] = &order{Version: 2, Total: "10.00", Cancelled: true}
	w.live("shop:order:undone")[0].Void = true
	w.done("shop:order:cancelled")
	w.orders["shop:order:cancelled"] = &order{Version: 2, Total: "10.00", Cancelled: true}
	w.done("shop:order:repriced") // and then cancelled, and nobody heard of either
	w.orders["shop:order:repriced"] = &order{Version: 3, Total: "4.00", Cancelled: true}
	w.done("shop:order:disputed")
	w.orders["shop:order:disputed"] = &order{Version: 2, Total: "10.00", Cancelled: true}
	w.live("shop:order:disputed")[0].Intact = false
	w.done("shop:order:gone")
	delete(w.orders, "shop:order:gone")
	w.done("shop:order:unreadable")
	w.orders["shop:order:unreadable"].Total = ""
	clear(w.works)
	return w
}

// A rebuild adopts what is exactly as it should be, and what an older version left; it puts
// in review what does not match, and records nothing where nothing stands or nobody can say what
// for. It makes, sends and undoes nothing.
func TestRebuild(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := ruins()
		w.slow = time.Minute // so that what is left to do is not done yet
		docs := w.photo()
		j := w.job(t, nil)
		r := j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		if r.Applied != 68 || r.Failed != 0 || r.NeedsReview != 6 || r.Result != schedule.OK {
			t.Errorf("report: %+v", r)
		}
		want := map[string]struct {
			status   saga.Status
			revision string
		}{
			keyOf(3): {saga.Completed, "1"}, "shop:order:older": {saga.Running, "2"}, "shop:order:edited": {saga.Review, "1"},
			"shop:order:twice": {saga.Review, "1"}, "shop:order:cancelled": {saga.Completed, "1"}, "shop:order:disputed": {saga.Review, "1"}, "shop:order:repriced": {saga.Review, "1"},
			"shop:order:undone": {saga.Compensated, "2"}, "shop:order:unreadable": {saga.Review, "1"},
		}
		for key, known := range want {
			k := w.works[key]
			if k == nil || k.Status != known.status || k.Revision != known.revision {
				t.Errorf("%s: %+v, want %+v", key, k, known)
			}
		}
		for _, name := range []string{"unsold", "gone"} {
			if k := w.works["shop:order:"+name]; k != nil {
				t.Errorf("%s is recorded: %+v", name, k)
			}
		}
		if k := w.works[keyOf(3)]; k.Made != w.live(keyOf(3))[0].ID {
			t.Errorf("adopted as %s", k.Made)
		}
		docs.untouched(t, w)
		w.pass(time.Hour)
		w.slow = 0
		many := w.jobOver(t, j.store, many)
		many.mustRun() // and the next run brings home what is left
		if r := many.mustPlan(); r.Planned != 0 {
			t.Errorf("left: %+v", j.rows())
		}
		if d := w.live("shop:order:older")[0]; d.Fields["total"] != "12.00" || len(w.live("shop:order:unsold")) != 1 || len(w.live("shop:order:cancelled")) != 0 {
			t.Error("not everything came home")
		}
		for key, n := range w.mails {
			if n != 1 && key != "shop:order:unsold" {
				t.Errorf("%d mails about %s", n, key)
			}
		}
	})
}

// untouched fails if anything at the destination has changed.
func (p photo) untouched(t *testing.T, w *world) {
	t.Helper()
	if now := w.photo(); now.String() != p.String() || len(w.delivered) > 0 {
		t.Errorf("the destination was\n%s\nand is\n%s\n%d changes were delivered", p, now, len(w.delivered))
	}
}

// witness sees what is handed to a ledger.
type witness struct {
	fakeLedger

	adopted map[string]coordinator.Adoption
}

func (w *witness) Adopt(ctx context.Context, as []coordinator.Adoption) ([]coordinator.Adopted, error) {
	for _, a := range as {
		w.adopted[a.Work] = a
	}
	return w.fakeLedger.Adopt(ctx, as)
}

// made is a result that knows its id.
type made string

func (m made) ExternalID() string { return string(m) }

// "It was not sent" is believed where the adapter says it, behind a void document,
// too: the adapter is shown which documents count and which are void. And what stands in the way of
// a quarantined work is named by its id, as the result knows it.
func TestWhatCountsAsEvidence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := ruins()
		w.make("shop:order:twice", "10.00", "1").Void = true
		w.make("shop:order:twice", "10.00", "1").Void = true
		w.make(keyOf(3), "10.00", "1").Void = true
		seen := &witness{fakeLedger: fakeLedger{w}, adopted: map[string]coordinator.Adoption{}}
		j := w.job(t, func(c *settings) {
			c.Instances = seen
			c.Effects = func(_ *scan.Listed, live, void []plan.Document) (map[string]reconcile.Effect, error) {
				es := map[string]reconcile.Effect{"receipt": {NotDone: true}}
				if len(void) == 2 {
					delete(es, "receipt")
				}
				for _, d := range live {
					es["invoice"] = reconcile.Effect{Output: made(d.ID)}
				}
				return es, nil
			}
		})
		j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		for key, evident := range map[string]bool{keyOf(2): true, keyOf(3): true, "shop:order:undone": true, "shop:order:edited": true, "shop:order:twice": false} {
			if _, said := seen.adopted[key].Effects["receipt"]; said != evident {
				t.Errorf("%s: %+v", key, seen.adopted[key])
			}
		}
		for _, key := range []string{"shop:order:edited", "shop:order:twice"} {
			if e := seen.adopted[key].Effects["invoice"]; !e.Foreign || e.ExternalID == "" || e.Output != nil {
				t.Errorf("%s: %+v", key, e)
			}
		}
		if e := seen.adopted[keyOf(2)].Effects["invoice"]; e.Foreign || e.Output != made(w.live(keyOf(2))[0].ID) {
			t.Errorf("what fits: %+v", e)
		}
	})
}

// Rebuilding again changes nothing, and a ledger that was not lost is left as it is.
func TestRebuildTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := ruins()
		w.works[keyOf(5)] = &plan.Known{Works: 1, Status: saga.Compensated, Revision: "1"}
		j := w.job(t, nil)
		j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		first := w.snapshot(t)
		r := j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		if string(w.snapshot(t)) != string(first) || r.Applied != 0 || w.works[keyOf(5)].Status != saga.Compensated {
			t.Errorf("the second rebuild: %+v", r)
		}
	})
}

// A rebuild that is cut off anywhere, and repeated, gives the ledger that one in peace gives.
func TestRebuildCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whole := ruins()
		calls := 0
		j := whole.job(t, func(c *settings) {
			c.sweep.Page = 7
			c.sweep.Proceed = func(context.Context) error { calls++; return nil }
		})
		j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		want := whole.snapshot(t)
		for at := 1; at <= calls; at++ {
			w := ruins()
			calls := 0
			died := errors.New("killed")
			j := w.job(t, func(c *settings) {
				c.sweep.Page = 7
				c.sweep.Proceed = func(context.Context) error {
					if calls++; calls == at {
						return died
					}
					return nil
				}
			})
			since := time.Now()
			if _, err := j.Rebuild(t.Context(), since, anna); !errors.Is(err, died) {
				t.Fatalf("cut off at %d: %v", at, err)
			}
			j = w.jobOver(t, j.store, nil)
			j.must(j.Rebuild(t.Context(), since, anna))
			if got := w.snapshot(t); string(got) != string(want) {
				t.Fatalf("cut off at %d of %d:\n%s\nwant\n%s", at, calls, got, want)
			}
		}
	})
}

// A listing that began before everybody was stopped may miss what was made behind it: it is not
// used.
func TestRebuildListsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		calls, died := 0, errors.New("killed")
		j := w.job(t, func(c *settings) {
			c.sweep.Page = 7
			c.sweep.Proceed = func(context.Context) error {
				if calls++; calls == 8 {
					return died
				}
				return nil
			}
		})
		if _, err := j.Plan(t.Context()); !errors.Is(err, died) {
			t.Fatalf("the listing was not cut off: %v", err)
		}
		w.pass(time.Minute)
		w.done(keyOf(40))
		made := len(w.docs) - 1
		w.docs = slices.Insert(w.docs[:made:made], 0, w.docs[made]) // where the books were listed already
		w.docs[0].ID = "inv_00000"
		clear(w.works)
		j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		if w.works[keyOf(40)] == nil {
			t.Error("what was made behind the last listing was not adopted")
		}
	})
}

// A mapping that fits nothing would put every work in review; the rebuild is refused with the
// diagnosis.
func TestRebuildDiagnosesTheMapping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := ruins()
		j := w.job(t, func(c *settings) {
			c.sweep.Source.Want = func(o *scan.Listed) (plan.Truth, error) {
				truth, err := want(o)
				if err == nil {
					truth.Fields["total"] += " EUR"
				}
				return truth, err
			}
		})
		r := j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		if r.Result != schedule.Refused || !strings.Contains(r.Message, `"total"`) || len(w.works) > 0 {
			t.Errorf("%d works; %+v", len(w.works), r)
		}
	})
}

// After a rebuild the incremental sweep begins with everything the source has.
func TestRebuildRestartsTheCursor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		asked := 0
		j := w.job(t, func(c *settings) {
			all := c.sweep.Source.All
			c.sweep.Source.Changed = func(ctx context.Context, q scan.Query) (scan.Page, error) {
				p, err := all(ctx, q)
				if !q.Since.IsZero() {
					p = scan.Page{}
				}
				for i := range p.Objects {
					p.Objects[i].Changed = time.Now().Add(-time.Hour)
				}
				asked += len(p.Objects)
				return p, err
			}
		})
		changed := func() {
			if r, err := j.lists.Changed(t.Context()); err != nil || r.Result != "ok" {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		changed()
		changed()
		if asked != 30 {
			t.Fatalf("%d objects were listed; the test proves nothing", asked)
		}
		j.must(j.Rebuild(t.Context(), time.Time{}, anna))
		if changed(); asked != 60 {
			t.Errorf("%d objects were listed after the rebuild, want all 30", asked-30)
		}
	})
}
