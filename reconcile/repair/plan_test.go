package repair_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/store/memory"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/saga"
)

// mess is a world with a difference of every kind that three sides can have. Most of it is well.
func mess() *world {
	w := newWorld()
	for n := range 60 {
		w.done(keyOf(n))
	}
	w.sold("shop:order:missing")
	w.done("shop:order:lost")
	delete(w.works, "shop:order:lost")
	w.done("shop:order:mismatch")
	delete(w.works, "shop:order:mismatch")
	w.live("shop:order:mismatch")[0].Fields["total"] = "11.00"
	w.done("shop:order:doubt")
	w.works["shop:order:doubt"].Status, w.works["shop:order:doubt"].Reason = saga.Review, saga.ReasonInDoubt
	w.done("shop:order:phantom")
	w.live("shop:order:phantom")[0].Void = true
	w.done("shop:order:stale")
	w.changed("shop:order:stale", "12.00")
	w.done("shop:order:edited")
	w.live("shop:order:edited")[0].Fields["total"] = "9.00"
	w.done("shop:order:posted")
	w.live("shop:order:posted")[0].Locked = true
	w.changed("shop:order:posted", "12.00")
	w.done("shop:order:twice")
	w.make("shop:order:twice", "10.00", "1")
	w.done("shop:order:cancelled")
	w.orders["shop:order:cancelled"] = &order{Version: 2, Total: "10.00", Cancelled: true}
	w.done("shop:order:gone")
	delete(w.orders, "shop:order:gone")
	w.done("shop:order:stuck")
	w.works["shop:order:stuck"].Status, w.works["shop:order:stuck"].Overdue = saga.Running, true
	w.done("shop:order:unreadable")
	w.orders["shop:order:unreadable"].Total = ""
	w.done("shop:order:live")
	w.works["shop:order:live"].Status = saga.Running
	w.changed("shop:order:live", "12.00")
	return w
}

// P1: a plan is data: what was found of each key, what would be done, why, from what to what, and on what it rests.
func TestPlanSaysWhatAndWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := mess().job(t, nil)
		r := j.mustPlan()
		type treatment struct {
			class drift.Class
			do    drift.Verb
		}
		want := map[string]treatment{
			"missing": {drift.Missing, drift.Start}, "lost": {drift.LedgerLost, drift.Adopt}, "mismatch": {drift.AdoptMismatch, drift.Ask},
			"doubt": {drift.InDoubt, drift.Ask}, "phantom": {drift.PhantomDone, drift.Ask}, "stale": {drift.Stale, drift.Revise},
			"edited": {drift.Diverged, drift.Ask}, "posted": {drift.Locked, drift.Ask}, "twice": {drift.Duplicate, drift.Ask},
			"cancelled": {drift.SourceGone, drift.Withdraw}, "gone": {drift.Orphan, drift.Nothing}, "stuck": {drift.Stuck, drift.Resume},
			"unreadable": {drift.Unreadable, drift.Ask},
		}
		for _, row := range j.rows() {
			name := idOf(row.Key)
			if got := (treatment{row.Class, row.Do}); got != want[name] {
				t.Errorf("%s: %s, %s (%s); want %v", name, row.Class, row.Do, row.Why, want[name])
			}
			if row.Why == "" {
				t.Errorf("%s: nothing says why", name)
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("%s was not found", name)
		}
		stale := j.row("shop:order:stale")
		if len(stale.Changes) != 1 || stale.Changes[0] != (drift.Change{Field: "total", Is: "10.00", Want: "12.00"}) || stale.Revision != "2" || stale.Applied != "1" || len(stale.Documents) != 1 {
			t.Errorf("the stale one: %+v", stale.Finding)
		}
		if r.Planned != 5 || r.Person != 7 || r.Seen != 74 || r.Verdict != repair.OK || r.Plan == "" {
			t.Errorf("report: %+v", r)
		}
	})
}

// P2, I-7: planning writes nothing to the source, the destination, the ledger, the inbox or an incremental cursor.
func TestPlanWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := mess()
		w.frozen = errors.New("somebody wrote")
		before := w.snapshot(t)
		j := w.job(t, nil)
		positions := func() (names []string) {
			ps, err := j.store.Positions(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range ps {
				names = append(names, p.Name)
			}
			return names
		}
		j.mustPlan()
		if w.broke || !bytes.Equal(before, w.snapshot(t)) {
			t.Error("planning changed the world")
		}
		if ds, err := j.store.Deliveries(t.Context(), reconcile.DeliveryFilter{}); err != nil || len(ds) > 0 {
			t.Errorf("planning put %d events into the inbox (%v)", len(ds), err)
		}
		for _, name := range positions() {
			if strings.HasSuffix(name, "/changed") {
				t.Errorf("planning moved the cursor of %s", name)
			}
		}
		w.broke = false
		if _, err := j.Run(t.Context()); err != nil || !w.broke { // the wrapper does catch
			t.Errorf("a run wrote nothing, so the test proves nothing (%v)", err)
		}
	})
}

// snapshot is everything that is outside.
func (w *world) snapshot(t *testing.T) []byte {
	t.Helper()
	defer w.lock()()
	s, err := json.Marshal([]any{w.orders, w.docs, w.works, w.mails, w.delivered})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// P6: the same three sides give the same plan, byte for byte, whoever looks and when.
func TestPlansAreEqual(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := func(workers int) (drift.Plan, []drift.Row) {
			j := mess().job(t, func(c *settings) { c.Workers = workers })
			pass(time.Duration(workers) * time.Hour)
			j.mustPlan()
			p, err := j.store.Latest(t.Context(), "orders")
			if err != nil {
				t.Fatal(err)
			}
			return p.Plan, j.rows()
		}
		p, rows := plan(1)
		q, same := plan(7)
		if !reflect.DeepEqual(p, q) || !reflect.DeepEqual(rows, same) {
			t.Errorf("two plans of one world:\n%+v\n%+v", p, q)
		}
	})
}

// U3: that an object is gone is proven by a whole listing, two questions by id, and an earlier run that found the same
// longer than the grace ago. Until then nothing is said; then a person is asked, and nothing is done by itself.
func TestAbsenceIsProvenThrice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		delete(w.orders, keyOf(7))
		j := w.job(t, many)
		for _, step := range []struct {
			after time.Duration
			do    drift.Verb
		}{{0, drift.Nothing}, {23 * time.Hour, drift.Nothing}, {2 * time.Hour, drift.Ask}} {
			pass(step.after)
			j.mustRun()
			if row := j.row(keyOf(7)); row.Class != drift.Orphan || row.Do != step.do {
				t.Errorf("after %s: %s, %s (%s)", step.after, row.Class, row.Do, row.Why)
			}
		}
		if len(w.live(keyOf(7))) != 1 || len(w.delivered) > 0 {
			t.Error("something was done about it")
		}
	})
}

// U3: what is seen again by then begins anew, and one answer to a question by id outweighs every listing.
func TestAbsenceIsDoubted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		hidden := w.orders[keyOf(7)]
		delete(w.orders, keyOf(7))
		j := w.job(t, many)
		j.mustRun()
		pass(20 * time.Hour)
		w.orders[keyOf(7)] = hidden
		j.mustRun()
		delete(w.orders, keyOf(7))
		pass(20 * time.Hour)
		j.mustRun() // 40 hours after the first time, but not in a row
		if row := j.row(keyOf(7)); row.Do != drift.Nothing {
			t.Errorf("absent, there, absent: %s (%s)", row.Do, row.Why)
		}
		pass(25 * time.Hour)
		looks := 0
		w.onLook = func(key string) { // it is only listed late
			if looks++; key == keyOf(7) && looks == 2 {
				defer w.lock()()
				w.orders[key] = hidden
			}
		}
		j.mustRun()
		if row := j.row(keyOf(7)); row.Class != "" || looks != 2 {
			t.Errorf("there when asked for the second time: %s, %s (%s); %d questions", row.Class, row.Do, row.Why, looks)
		}
	})
}

// U4: where the source would not show an object, its silence says nothing.
func TestInvisibleIsNotAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		delete(w.orders, keyOf(7))
		j := w.job(t, func(c *settings) { c.sweep.Source.Visible = func(key string) bool { return key != keyOf(7) } })
		j.mustRun()
		pass(48 * time.Hour)
		j.mustRun()
		if row := j.row(keyOf(7)); row.Class != "" {
			t.Errorf("%s, %s (%s)", row.Class, row.Do, row.Why)
		}
	})
}

// X3, I-9: an empty or shrunk source proves nothing about what it does not have, however often it is asked.
func TestShrunkSourceDestroysNothing(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]int{"empty": 0, "half": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				for n := range 100 {
					w.done(keyOf(n))
				}
				j := w.job(t, many)
				j.mustRun()
				for n := left; n < 100; n++ {
					delete(w.orders, keyOf(n))
				}
				for range 2 {
					r := j.mustRun()
					if r.Planned != 0 || r.Person != 0 {
						t.Errorf("planned %d, asks about %d", r.Planned, r.Person)
					}
					pass(time.Hour)
				}
				for n := range 100 {
					if len(w.live(keyOf(n))) != 1 {
						t.Fatalf("%s lost its document", keyOf(n))
					}
				}
			})
		})
	}
}

// X3: what was on its way to be proven is not proven by a listing of a source that shrank meanwhile.
func TestShrunkSourceProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 100 {
			w.done(keyOf(n))
		}
		j := w.job(t, many)
		delete(w.orders, keyOf(7))
		j.mustRun()
		pass(25 * time.Hour)
		lost := w.orders
		w.orders = map[string]*order{}
		for n := range 50 {
			if n != 7 {
				w.orders[keyOf(n)] = lost[keyOf(n)]
			}
		}
		j.mustRun()
		if row := j.row(keyOf(7)); row.Class != drift.Orphan || row.Do != drift.Nothing {
			t.Errorf("half of the source is away: %s, %s (%s)", row.Class, row.Do, row.Why)
		}
		w.orders = lost
		j.mustRun()
		if row := j.row(keyOf(7)); row.Do != drift.Ask {
			t.Errorf("the source is back: %s, %s (%s)", row.Class, row.Do, row.Why)
		}
	})
}

// X8: when the mapping makes everything look different, the plan is refused with that diagnosis, and nobody is asked
// about ten thousand documents first.
func TestMappingIsDiagnosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 100 {
			w.done(keyOf(n))
		}
		j := w.job(t, nil)
		j.mustRun()
		asked := w.asked
		j = w.jobOver(t, j.store, func(c *settings) {
			c.sweep.Mapping = "2"
			c.Policy.Fields = map[string]drift.Rule{"total": drift.Enforce}
			c.sweep.Source.Want = func(o *sweep.Object) (drift.Truth, error) {
				truth, err := want(o)
				truth.Fields["total"] += " EUR"
				return truth, err
			}
		})
		r := j.mustRun()
		if r.Verdict != repair.Refused || !strings.Contains(r.Words, `"total"`) || !strings.Contains(r.Words, `"1" and is "2"`) {
			t.Errorf("report: %+v", r)
		}
		if len(w.delivered) > 0 || w.asked-asked > 10 {
			t.Errorf("%d delivered, %d calls", len(w.delivered), w.asked-asked)
		}
		if r := j.must(j.Apply(t.Context(), r.Plan)); r.Verdict != repair.Refused || r.Applied > 0 {
			t.Errorf("applied all the same: %+v", r)
		}
	})
}

// A system that cannot be listed today stands as it was listed last: what differs is looked at and repaired all the same,
// and the run is partial.
func TestOlderListingsStand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		w.live(keyOf(1))[0].Fields["total"] = "9.00"
		j := w.job(t, nil)
		j.mustRun()
		j = w.jobOver(t, j.store, func(c *settings) {
			c.Policy.Fields = map[string]drift.Rule{"total": drift.Enforce}
			c.sweep.Source.All = func(context.Context, sweep.Query) (sweep.Page, error) {
				return sweep.Page{}, reconcile.Permanent(errors.New("401"))
			}
		})
		r := j.mustPlan()
		if r.Verdict != repair.Partial || !strings.Contains(r.Words, "401") || r.Planned != 1 {
			t.Errorf("the plan: %+v", r)
		}
		if r = j.mustRun(); r.Verdict != repair.Partial || r.Applied != 1 || !strings.Contains(r.Words, "401") {
			t.Errorf("the run: %+v", r)
		}
	})
}

// What nobody could look at is listed as such; the rest is planned and done, and the run is partial.
func TestLooksThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		w.changed(keyOf(1), "11.00")
		w.changed(keyOf(2), "11.00")
		w.getFails[keyOf(1)] = errors.New("502")
		j := w.job(t, nil)
		r := j.mustRun()
		if row := j.row(keyOf(1)); row.Class != drift.Stale || row.Do != drift.Nothing || !strings.Contains(row.Why, "502") {
			t.Errorf("row: %+v", row)
		}
		if r.Verdict != repair.Partial || r.Failed != 1 || r.Applied != 1 {
			t.Errorf("report: %+v", r)
		}
	})
}

// A source that answers nobody is no source: the run breaks off, and there is no plan.
func TestDeadSourceEndsARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.sold(keyOf(n))
			w.getFails[keyOf(n)] = errors.New("503")
		}
		j := w.job(t, nil)
		r, err := j.Run(t.Context())
		if err == nil || r.Verdict != repair.Failed || !strings.Contains(err.Error(), "503") {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := j.store.Latest(t.Context(), "orders"); !errors.Is(err, drift.ErrNotFound) {
			t.Errorf("there is a plan: %v", err)
		}
	})
}

// A user's function that panics spoils one key, not the run.
func TestPanicsAreOfOneKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		w.changed(keyOf(1), "11.00")
		w.changed(keyOf(2), "11.00")
		j := w.job(t, func(c *settings) {
			find := c.sweep.Destination.Find
			c.sweep.Destination.Find = func(ctx context.Context, key string) ([]drift.Document, error) {
				if key == keyOf(1) {
					panic("nil map")
				}
				return find(ctx, key)
			}
		})
		if r := j.mustRun(); r.Failed != 1 || r.Applied != 1 || !strings.Contains(j.row(keyOf(1)).Why, "nil map") {
			t.Errorf("%+v, %+v", r, j.row(keyOf(1)))
		}
	})
}

// Everything that is wrong with a configuration is said at once.
func TestFaultsAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := repair.New(repair.Config{Grace: -1, Bounds: drift.Bounds{Create: drift.Bound{Count: -1}}})
	for _, what := range []string{"Sweep", "Works", "Deliver", "Effects", "Plans", "Grace", "Create.Count"} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("nothing is said about %s: %v", what, err)
		}
	}
	s, err := sweep.New(sweep.Config{Name: "x", Store: memory.New(nil), Source: sweep.Source{Object: reconcile.Object{Source: "s", Type: "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = repair.New(repair.Config{Sweep: s})
	for _, what := range []string{"Get", "All", "Want", "Marked", "Find"} {
		if err == nil || !strings.Contains(err.Error(), "no "+what) {
			t.Errorf("nothing is said about %s: %v", what, err)
		}
	}
}
