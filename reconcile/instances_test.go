package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// running is a world with one process at work.
func running(t *testing.T) (*sagaWorld, *memory.DB, *process) {
	t.Helper()
	w, l := newSagaWorld(), memory.New(nil)
	return w, l, w.boot(t, l, memory.New(nil), false).begin()
}

func (w *sagaWorld) sold(id string) { w.orders[id] = &order{Version: 1, Total: "10"} }

// known is what the works say of an order.
func (p *process) known(id string) *plan.Known {
	p.t.Helper()
	k, err := p.Instances().Known(p.t.Context(), keyNamed(id))
	if err != nil {
		p.t.Fatal(err)
	}
	return k
}

// Heads come in the order of the bytes of their keys, in pages that neither skip nor repeat, and
// only those of the saga.
func TestHeadsAreInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, p := running(t)
		var want []string
		for _, id := range []string{"b", "A", "10", "9", "ä", "a"} {
			w.sold(id)
			p.hears(id)
			want = append(want, keyNamed(id))
		}
		slices.Sort(want)
		pass(time.Minute)
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			heads, err := p.Instances().Heads(t.Context(), after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range heads {
				if got = append(got, h.Key); h.Known.Works != 1 || h.Known.Status != saga.Completed || h.Known.Revision != "1" {
					t.Errorf("%s: %+v", h.Key, h.Known)
				}
			}
			if len(heads) < 2 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		p.halt()
	})
}

// What is known of a work: where it stands, what it made, whether it has been told something that
// nobody has heard yet, whether something is in doubt, and whether it should have moved.
func TestKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, p := running(t)
		if k := p.known("1"); k != nil {
			t.Errorf("before anybody heard of it: %+v", k)
		}
		w.sold("1")
		p.hears("1")
		pass(time.Minute)
		if k := p.known("1"); k.Status != saga.Completed || k.Made != "inv_1" || k.Revision != "1" {
			t.Errorf("done: %+v", k)
		}
		w.orders["1"] = &order{Version: 2, Total: "10"}
		p.hears("1")
		pass(time.Minute)
		if k := p.known("1"); k.Status != saga.Completed || k.Revision != "2" {
			t.Errorf("a newer version that says the same: %+v", k)
		}
		p.halt()
		p = w.boot(t, l, memory.New(nil), false) // nobody is at work
		w.orders["1"] = &order{Version: 3, Total: "12"}
		p.hears("1")
		w.sold("2")
		p.hears("2")
		for _, id := range []string{"1", "2"} {
			if k := p.known(id); k.Status != saga.Running || k.Overdue {
				t.Errorf("%s was told something: %+v", id, k)
			}
		}
		pass(16 * time.Minute)
		heads, err := p.Instances().Heads(t.Context(), "", 10)
		if err != nil || len(heads) != 2 || !heads[0].Known.Overdue || !heads[1].Known.Overdue {
			t.Errorf("nobody came: %+v, %v", heads, err)
		}
		if !p.known("1").Overdue || !p.known("2").Overdue {
			t.Error("nobody came, and nothing is overdue")
		}
		w.faults = []string{"cut"}
		p.begin()
		pass(10 * time.Second)
		if k := p.known("2"); !k.InDoubt && !p.known("1").InDoubt {
			t.Errorf("an answer was lost, and nothing is in doubt: %+v, %+v", k, p.known("1"))
		}
		w.orders["1"] = &order{Version: 4, Total: "12", Cancelled: true}
		pass(time.Hour)
		p.hears("1")
		pass(time.Hour)
		if k := p.known("1"); k.Status != saga.Compensated || k.Made != "" {
			t.Errorf("undone: %+v", k)
		}
		p.halt()
	})
}

// An attempt that may take long is not overdue before its deadline.
func TestLongAttemptsAreNotOverdue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newSagaWorld(), memory.New(nil)
		w.slow = 2 * time.Hour
		p := w.boot(t, l, memory.New(nil), false).begin()
		w.sold("1")
		p.hears("1")
		pass(time.Hour)
		if k := p.known("1"); k.Status != saga.Running || k.Overdue {
			t.Errorf("%+v", k)
		}
		pass(2 * time.Hour)
		p.halt()
	})
}

// What is put in review by a rebuild says which step it is about and what stands there, so that a
// person can decide.
func TestQuarantineSaysWhat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, p := running(t)
		for n := range 30 {
			w.sold(fmt.Sprint(n))
			p.hears(fmt.Sprint(n))
		}
		pass(time.Minute)
		p.halt()
		w.live(keyNamed("3"))[0].Total = "0.99"
		w.docs = append(w.docs, &invoice{ID: "inv_again", Key: keyNamed("4"), Total: "10", Written: "10", Revision: "1"})
		p = w.boot(t, memory.New(nil), memory.New(nil), false)
		if r, err := p.Rebuild(t.Context(), time.Time{}, anna); err != nil || r.NeedsReview != 2 || r.Applied != 30 {
			t.Fatalf("%+v, %v", r, err)
		}
		for id, note := range map[string]string{"3": "content does not", "4": "2 of them"} {
			s, err := p.Show(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed(id)})
			if err != nil || s.Status != saga.Review || !strings.Contains(s.Next, `step "invoice"`) || !strings.Contains(s.Note, note) || s.Steps["invoice"].ExternalID == "" {
				t.Errorf("%s: %+v, %v", id, s, err)
			}
		}
	})
}

// A work that is stuck is told to go on, and its history says who wanted it and why.
func TestResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, p := running(t)
		p.halt()
		p = w.boot(t, l, memory.New(nil), false)
		w.sold("1")
		p.hears("1")
		pass(time.Hour)
		r, err := p.PlanAndApply(t.Context(), true)
		if err != nil || r.Applied != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		signals, err := l.Signals(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("1")})
		if err != nil || len(signals) != 1 || signals[0].Kind != machine.SignalWake || signals[0].Actor != "reconcile orders" || !strings.Contains(signals[0].Reason, r.Plan) {
			t.Errorf("%+v, %v", signals, err)
		}
		p.begin()
		pass(time.Minute)
		if k := p.known("1"); k.Status != saga.Completed {
			t.Errorf("%+v", k)
		}
		if err := p.Instances().Resume(t.Context(), keyNamed("2"), anna); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("an unknown work: %v", err)
		}
		p.halt()
	})
}

// What its source is not done with is no difference, whatever stands. That it is done is heard by a comparison, too, where its webhook was lost:
// the instance goes on with what the source says then. What was not begun is begun then.
func TestWhatItsSourceHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, p := running(t)
		w.slow = 10 * time.Second
		w.sold("1")
		p.hears("1")
		pass(time.Second)
		w.orders["1"] = &order{Version: 2, Total: "10", Editing: true} // while its invoice is written
		w.orders["2"] = &order{Version: 1, Total: "20", Editing: true}
		p.hears("1")
		p.hears("2")
		pass(time.Hour)
		if r, err := p.PlanAndApply(t.Context(), true); err != nil || r.Planned+r.NeedsReview > 0 {
			t.Errorf("while both are edited: %+v, %v", r, err)
		}
		if k := p.known("1"); k.Status != saga.Paused || !k.Held || len(w.mails) > 0 || p.known("2") != nil {
			t.Errorf("while both are edited: %+v, mails %v", k, w.mails)
		}
		w.orders["1"] = &order{Version: 3, Total: "11"} // both webhooks are lost
		w.orders["2"] = &order{Version: 2, Total: "22"}
		if r, err := p.PlanAndApply(t.Context(), true); err != nil || r.Applied != 2 {
			t.Errorf("when they are saved: %+v, %v", r, err)
		}
		pass(time.Hour)
		p.halt()
		for id, total := range map[string]string{"1": "11", "2": "22"} {
			if live := w.live(keyNamed(id)); len(live) != 1 || live[0].Total != total || w.mails[keyNamed(id)] != 1 {
				t.Errorf("%s: %+v, %d mails", id, live, w.mails[keyNamed(id)])
			}
		}
	})
}

// With a policy that says so, what somebody has edited is written again, and what somebody has
// deleted is made again: once for each plan, under the number it has, without a second mail.
func TestAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, p := running(t)
		for n := range 30 {
			w.sold(fmt.Sprint(n))
			p.hears(fmt.Sprint(n))
		}
		pass(time.Minute)
		p.halt()
		w.live(keyNamed("3"))[0].Total = "0.99"
		w.live(keyNamed("4"))[0].Void = true
		store := memory.New(nil)
		p = w.bootWith(t, l, store, func(c *wiring) {
			c.Recreate, c.Enforce = true, []string{"total"}
		}).begin()
		r, err := p.PlanAndApply(t.Context(), true)
		if err != nil || r.Applied != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		if r, err = p.Plan(t.Context()); err != nil || r.Planned != 0 {
			t.Errorf("right after: %+v, %v", r, err)
		}
		pass(time.Hour)
		if r, err = p.PlanAndApply(t.Context(), true); err != nil || r.Planned != 0 {
			t.Errorf("an hour later: %+v, %v", r, err)
		}
		for _, id := range []string{"3", "4"} {
			if live := w.live(keyNamed(id)); len(live) != 1 || live[0].Total != "10" || w.mails[keyNamed(id)] != 1 {
				t.Errorf("%s: %+v, %d mails", id, live, w.mails[keyNamed(id)])
			}
		}
		p.halt()
	})
}

// I-11, I-6: whatever happens, whatever webhooks are lost and whoever edits invoices, the runs of a
// reconciler bring everything home that no person has to decide, and then plan nothing.
func TestReconcilerBringsHome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		history := histories().Draw(rt, "history")
		deaf := rapid.Bool().Draw(rt, "no webhook ever comes")
		for i := range history {
			history[i].heard = history[i].heard && !deaf
		}
		var err error
		synctest.Test(t, func(t *testing.T) {
			w, _, p := running(t)
			for n := range 12 {
				w.sold(fmt.Sprintf("well-%02d", n))
			}
			p.live(history)
			err = w.comesHome(p, false)
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// Adoption 7.11: of an order whose work was undone, and that its source still wants, the plan says
// why nothing is done and what helps, and so does the work. What they say is so: a newer version at
// the source, though it says the same, is started by the next run.
func TestUndoneRunsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSagaWorld()
		w.orders["1"] = &order{Version: 1, Total: "10"}
		w.faults = []string{"", "refused"} // the mail
		p := w.boot(t, memory.New(nil), memory.New(nil), false).begin()
		defer p.halt()
		p.hears("1")
		pass(time.Hour)
		if _, err := p.PlanAndApply(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		helps := "amends rerun " + keyNamed("1")
		if text := p.planned(); !strings.Contains(text, "was undone at 1") || !strings.Contains(text, helps) || !strings.Contains(text, "newer than 1") {
			t.Errorf("the plan says %s", text)
		}
		s, err := p.Show(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("1")})
		if err != nil || s.Status != saga.Compensated || !strings.Contains(s.Next, "amends show "+keyNamed("1")) || !strings.Contains(s.Next, "newer version") {
			t.Errorf("the work says %q (%s, %v)", s.Next, s.Status, err)
		}
		w.orders["1"] = &order{Version: 2, Total: "10"}
		if r, err := p.PlanAndApply(t.Context(), true); err != nil || r.Applied != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		pass(time.Hour)
		if k := p.known("1"); k.Status != saga.Completed || k.Revision != "2" || len(w.live(keyNamed("1"))) != 1 {
			t.Errorf("%+v", k)
		}
	})
}

// What a person undid a comparison does not make again because the source has a newer version that says the same, as it has where the undo took
// a mark away: a person is asked. One that says something else runs.
func TestWhatAPersonUndidIsAskedAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSagaWorld()
		w.orders["1"] = &order{Version: 1, Total: "10"}
		p := w.boot(t, memory.New(nil), memory.New(nil), true).begin()
		defer p.halt()
		p.hears("1")
		pass(time.Hour)
		if err := p.Undo(t.Context(), saga.ID{Saga: orderSaga, Work: keyNamed("1")}, "", saga.Actor{Name: "anna", Reason: "not ordered"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if k := p.known("1"); k.Status != saga.Compensated {
			t.Fatalf("%+v", k)
		}
		w.orders["1"] = &order{Version: 2, Total: "10"}
		if r, err := p.PlanAndApply(t.Context(), true); err != nil || r.Applied != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if text := p.planned(); !strings.Contains(text, "at 2, which says the same") {
			t.Errorf("the plan says %s", text)
		}
		pass(time.Hour)
		if k := p.known("1"); k.Status != saga.Compensated || len(w.live(keyNamed("1"))) != 0 {
			t.Errorf("%+v", k)
		}
		w.orders["1"] = &order{Version: 3, Total: "11"}
		if r, err := p.PlanAndApply(t.Context(), true); err != nil || r.Applied != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		pass(time.Hour)
		if k := p.known("1"); k.Status != saga.Completed || len(w.live(keyNamed("1"))) != 1 {
			t.Errorf("%+v", k)
		}
	})
}
