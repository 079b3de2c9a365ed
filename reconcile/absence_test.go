package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// That an object is gone is proven by a whole listing, two questions by id, and an earlier run
// that found the same longer than the grace ago. Until then nothing is said; then a person is
// asked, and nothing is done by itself.
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
			do    plan.Verb
		}{{0, plan.Nothing}, {23 * time.Hour, plan.Nothing}, {2 * time.Hour, plan.Ask}} {
			w.pass(step.after)
			j.mustRun()
			if row := j.row(keyOf(7)); row.Class != plan.Orphan || row.Action != step.do {
				t.Errorf("after %s: %s, %s (%s)", step.after, row.Class, row.Action, row.Reason)
			}
		}
		if len(w.live(keyOf(7))) != 1 || len(w.delivered) > 0 {
			t.Error("something was done about it")
		}
	})
}

// The ledger has no say in it. A work whose adoption was cut off is listed as one that is held
// back, and its object may be gone when the adoption is taken up again.
func TestAbsenceOfWhatWasHalfAdopted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		key := keyOf(7)
		w.works[key].Status, w.cutOff = saga.Paused, map[string]bool{key: true}
		delete(w.orders, key)
		j := w.job(t, many)
		j.mustRun()
		w.pass(25 * time.Hour)
		j.mustRun()
		if row := j.row(key); row.Class != plan.Orphan || row.Action != plan.Ask {
			t.Errorf("%s, %s (%s)", row.Class, row.Action, row.Reason)
		}
	})
}

// What is seen again by then begins anew, and one answer to a question by id outweighs every
// listing.
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
		w.pass(20 * time.Hour)
		w.orders[keyOf(7)] = hidden
		j.mustRun()
		delete(w.orders, keyOf(7))
		w.pass(20 * time.Hour)
		j.mustRun() // 40 hours after the first time, but not in a row
		if row := j.row(keyOf(7)); row.Action != plan.Nothing {
			t.Errorf("absent, there, absent: %s (%s)", row.Action, row.Reason)
		}
		w.pass(25 * time.Hour)
		looks := 0
		w.onLook = func(key string) { // it is only listed late
			if looks++; key == keyOf(7) && looks == 2 {
				defer w.lock()()
				w.orders[key] = hidden
			}
		}
		j.mustRun()
		if row := j.row(keyOf(7)); row.Class != "" || looks != 2 {
			t.Errorf("there when asked for the second time: %s, %s (%s); %d questions", row.Class, row.Action, row.Reason, looks)
		}
	})
}

// Where the source would not show an object, its silence says nothing.
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
		w.pass(48 * time.Hour)
		j.mustRun()
		if row := j.row(keyOf(7)); row.Class != plan.NoSource || row.Action != plan.Nothing {
			t.Errorf("%s, %s (%s)", row.Class, row.Action, row.Reason)
		}
	})
}

// An empty or shrunk source proves nothing about what it does not have, however often it
// is asked.
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
					if r.Planned != 0 || r.NeedsReview != 0 {
						t.Errorf("planned %d, asks about %d", r.Planned, r.NeedsReview)
					}
					w.pass(time.Hour)
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

// What was on its way to be proven is not proven by a listing of a source that shrank
// meanwhile.
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
		w.pass(25 * time.Hour)
		lost := w.orders
		w.orders = map[string]*order{}
		for n := range 50 {
			if n != 7 {
				w.orders[keyOf(n)] = lost[keyOf(n)]
			}
		}
		j.mustRun()
		if row := j.row(keyOf(7)); row.Class != plan.Orphan || row.Action != plan.Nothing {
			t.Errorf("half of the source is away: %s, %s (%s)", row.Class, row.Action, row.Reason)
		}
		w.orders = lost
		j.mustRun()
		if row := j.row(keyOf(7)); row.Action != plan.Ask {
			t.Errorf("the source is back: %s, %s (%s)", row.Class, row.Action, row.Reason)
		}
	})
}
