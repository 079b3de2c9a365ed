package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/store/memory"
)

// finding is what the newest plan says about an order; zero when it says nothing.
func (p *process) finding(id string) plan.Row {
	p.t.Helper()
	latest, err := p.plans.Latest(p.t.Context(), "orders")
	if err != nil {
		p.t.Fatal(err)
	}
	for row, err := range plan.Each(p.t.Context(), p.plans, plan.FindingQuery{Plan: latest.Ref()}) {
		if err != nil {
			p.t.Fatal(err)
		}
		if row.Key == keyNamed(id) {
			return row
		}
	}
	return plan.Row{}
}

// Fields: a newer version that changed nothing of ours is no news. A document that somebody has
// edited is diverged then, and for a person, and not stale, which would write over what they wrote.
// News are news.
func TestNewerVersionsThatSayTheSame(t *testing.T) {
	t.Parallel()
	for name, heard := range map[string]bool{"heard": true, "not heard": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, l := newSagaWorld(), memory.New(nil)
				p := w.boot(t, l, memory.New(nil), false).begin()
				for _, id := range []string{"marked", "changed", "well"} {
					w.sold(id)
					p.hears(id)
				}
				pass(time.Minute)
				w.live(keyNamed("marked"))[0].Total = "0.99"
				w.orders["marked"] = &order{Version: 2, Total: "10"} // our own mark, say
				w.orders["changed"] = &order{Version: 2, Total: "12"}
				if heard {
					p.hears("marked")
				}
				pass(time.Minute)
				r, err := p.PlanAndApply(t.Context(), true)
				if err != nil || r.Applied != 1 {
					t.Errorf("%+v, %v", r, err)
				}
				if f := p.finding("marked"); f.Class != plan.Diverged || f.Action != plan.Ask {
					t.Errorf("an edited document: %s, %s (%s)", f.Class, f.Action, f.Reason)
				}
				if f := p.finding("changed"); f.Class != plan.Stale || f.Action != plan.Revise {
					t.Errorf("news: %s, %s (%s)", f.Class, f.Action, f.Reason)
				}
				pass(time.Minute)
				if edited, revised := w.live(keyNamed("marked"))[0].Total, w.live(keyNamed("changed"))[0].Total; edited != "0.99" || revised != "12" {
					t.Errorf("the edited one says %s, the other %s", edited, revised)
				}
				p.halt()
			})
		})
	}
}

// Fields say what was applied last: after a newer version with news they are the new ones.
func TestFieldsAreOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newSagaWorld(), memory.New(nil)
		p := w.boot(t, l, memory.New(nil), false).begin()
		w.sold("1")
		for n, total := range []string{"10", "12", "12"} {
			w.orders["1"] = &order{Version: int64(n + 1), Total: total}
			p.hears("1")
			pass(time.Minute)
			if k := p.known("1"); k.Fields["total"] != total {
				t.Errorf("version %d: %+v", n+1, k)
			}
		}
		p.halt()
	})
}
