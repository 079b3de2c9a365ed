package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// edits changes at the books what was made for an order.
func (h *heard) edits(n int, total string) {
	defer h.lock()()
	for _, d := range h.docs {
		if d.Key == keyNamed(fmt.Sprint(n)) && !d.Void {
			d.Total = total
		}
	}
}

// sells has the shop change orders, and tell of it.
func (h *heard) sells(total string, ns ...int) {
	h.t.Helper()
	for _, n := range ns {
		h.changes(n, n+1, false)
		unlock := h.lock()
		h.orders[fmt.Sprint(n)].Total = total
		unlock()
		h.webhooks(n, n+1)
	}
	pass(2 * time.Minute)
}

// says holds what stands in the books for an order.
func (h *heard) says(n int, want string) {
	h.t.Helper()
	defer h.lock()()
	var got []string
	for _, d := range h.docs {
		if d.Key == keyNamed(fmt.Sprint(n)) && !d.Void {
			got = append(got, d.Total)
		}
	}
	if strings.Join(got, ", ") != want {
		h.t.Errorf("for order %d the books have %q, want %q", n, got, want)
	}
}

// compares has the job compare and repair, and holds what is left of keys.
func (h *heard) compares(p *process, left map[int]plan.Class) {
	h.t.Helper()
	if _, err := p.CarryOutDecisions(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if _, err := p.PlanAndApply(h.t.Context(), true); err != nil {
		h.t.Fatal(err)
	}
	pass(2 * time.Minute)
	ds, err := h.db.Drifts(h.t.Context(), plan.DriftQuery{})
	if err != nil || len(ds) != len(left) {
		h.t.Fatalf("it found %+v, %v; want %v", ds, err, left)
	}
	for n, class := range left {
		ds, err := h.db.Drifts(h.t.Context(), plan.DriftQuery{Key: keyNamed(fmt.Sprint(n))})
		if err != nil || len(ds) != 1 || ds[0].Class != class || ds[0].Action != plan.Ask {
			h.t.Fatalf("of order %d it found %+v, %v; want %s", n, ds, err, class)
		}
	}
}

func (h *heard) decides(n int, v plan.Verdict) {
	h.t.Helper()
	ds, err := h.db.Drifts(h.t.Context(), plan.DriftQuery{Key: keyNamed(fmt.Sprint(n))})
	if err != nil || len(ds) != 1 {
		h.t.Fatal(ds, err)
	}
	d := plan.Decision{Finding: ds[0].Finding, Verdict: v, By: anna}
	if v == plan.Hide {
		d.Until = time.Now().Add(time.Hour)
	}
	if err := h.db.Decide(h.t.Context(), "orders", []plan.Decision{d}); err != nil {
		h.t.Fatal(err)
	}
	pass(2 * time.Minute)
}

// intake/D1 to D3: what a comparison left to a person is not written over by what comes from the shop meanwhile, nor by the next comparison, until they have
// decided; and then it is as they said. What was left of nothing is not held back.
func TestNewerVersionsWaitForDecisions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		p, stop := h.process()
		defer stop()
		h.sells("10", 1, 2, 3, 4, 5, 6, 7, 8)
		for _, n := range []int{1, 2, 3, 4, 5} {
			h.edits(n, "9")
		}
		unlock := h.lock() // somebody deletes one
		for _, d := range h.docs {
			d.Void = d.Void || d.Key == keyNamed("6")
		}
		unlock()
		found := map[int]plan.Class{1: plan.Diverged, 2: plan.Diverged, 3: plan.Diverged, 4: plan.Diverged, 5: plan.Diverged, 6: plan.PhantomDone}
		h.compares(p, found)

		h.sells("11", 1, 2, 3, 5, 6, 7)
		h.says(7, "11") // of which nothing was found
		for _, n := range []int{1, 2, 3, 5} {
			h.says(n, "9")
		}
		h.says(6, "")
		e, err := h.db.Entry(t.Context(), h.change("1").Object)
		if err != nil || e.Attempts != 0 || e.Blocked != "" || !strings.Contains(e.LastError, "orders") || !strings.Contains(e.LastError, "diverged") {
			t.Errorf("what waits says %+v, %v", e, err)
		}
		h.changes(4, 5, true) // a cancel does not wait
		h.webhooks(4, 5)
		pass(2 * time.Minute)
		h.says(4, "")

		for n := range found {
			if found[n] = plan.Stale; n == 6 {
				found[n] = plan.PhantomDone
			}
		}
		delete(found, 4)
		h.compares(p, found)
		h.compares(p, found) // however often it is found
		h.says(1, "9")

		h.decides(1, plan.Ours)
		h.decides(2, plan.Accept)
		h.decides(5, plan.Hide)
		h.decides(6, plan.Accept)
		h.sells("9", 3) // the shop is corrected instead
		h.compares(p, nil)
		for n, want := range []string{1: "11", 2: "9", 3: "9", 4: "", 5: "11", 6: "", 7: "11", 8: "10"} {
			if n > 0 {
				h.says(n, want)
			}
		}
		h.compares(p, nil)
		h.sells("12", 2, 3, 6) // what was accepted was so until the order changed
		h.says(2, "12")
		h.says(3, "12")
		h.says(6, "12")
		h.compares(p, nil)
		if err := p.Undo(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("8")}, "invoice", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		h.says(8, "")
		h.compares(p, map[int]plan.Class{8: plan.Missing}) // a person has undone it: it is not gone by itself
		h.sells("12", 8)                                   // and the corrected order waits for nothing
		h.says(8, "12")
		h.compares(p, nil)
		if w, err := p.Show(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("2")}); err != nil || w.Status != saga.Completed {
			t.Errorf("%+v, %v", w, err)
		}
	})
}

// intake/D1: what waits goes on waiting while the next comparison is made, also where that finds it in another way, or cannot look.
func TestAFindingHoldsThroughTheNextComparison(t *testing.T) {
	t.Parallel()
	db := memory.New(nil)
	found := func(class plan.Class, do plan.Verb, why string) plan.Ref {
		t.Helper()
		ref, err := db.Draft(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		f := plan.Finding{Key: "o1", Class: class, Action: do, Reason: why, Documents: []string{"inv_1"}}
		if err := db.Remember(t.Context(), ref, plan.Part{}, []plan.Finding{f}); err != nil {
			t.Fatal(err)
		}
		return ref
	}
	holds := func(want bool) {
		t.Helper()
		if of, err := db.Found(t.Context(), "o1"); err != nil || (of.Open != nil) != want {
			t.Errorf("%+v, %v: want that it waits: %t", of, err, want)
		}
	}
	ends := func(ref plan.Ref) {
		t.Helper()
		if _, err := db.Finish(t.Context(), ref, &plan.Plan{ID: "p", Job: "orders"}); err != nil {
			t.Fatal(err)
		}
	}
	first := found(plan.Diverged, plan.Ask, "changed there")
	holds(false) // it may be one of thousands
	ends(first)
	holds(true)
	second := found(plan.Stale, plan.Ask, plan.ChangedThere+"the source has 7")
	holds(true)
	ends(second)
	found(plan.Diverged, plan.Nothing, plan.LookFailed+"503")
	holds(true)
	ends(found(plan.Stale, plan.Ask, "an earlier run did what there is to do"))
	holds(false) // a newer version helps
	ends(found(plan.Diverged, plan.Ask, plan.AsApplied+"6, and the source says something else"))
	holds(false) // nothing of a person's would be written over: what the gate heard within the same second goes on
}

// intake/D4: a comparison that leaves more to people than it may change by itself, because of a mistake of ours, holds nothing back.
func TestTooManyFindingsHoldNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		h.most = reconcile.Bound{Count: 1000, Percent: 20}
		p, stop := h.process()
		defer stop()
		left := map[int]plan.Class{}
		for n := range 60 {
			h.sells("10", n)
		}
		for n := range 24 {
			h.edits(n, "9")
			left[n] = plan.Diverged
		}
		h.compares(p, left)
		h.sells("11", 0)
		h.says(0, "11")
		stored, err := h.db.Latest(t.Context(), "orders")
		if err != nil || !strings.Contains(stored.HoldsNothingReason, "24 differences") || !strings.Contains(strings.Join(stored.Words(), " "), "do not wait") {
			t.Errorf("the plan says %q, %v", stored.Words(), err)
		}
		for n := 12; n < 24; n++ { // most of it is put right
			h.edits(n, "10")
			delete(left, n)
		}
		delete(left, 0)
		h.compares(p, left)
		h.sells("11", 1)
		h.says(1, "9")
	})
}
