package reconcile_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/saga"
)

// The ledger and the inbox are lost: what documents show of the count before is gone on from, so that no key is used for another content.
func TestNumbersGoOnBehindALoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		h.unversioned = true
		h.changes(0, 2, false)
		for n := range 2 {
			h.docs = append(h.docs, &invoice{ID: fmt.Sprintf("inv_%d", n+1), Key: keyNamed(fmt.Sprint(n)), Total: "10", Written: "10", Revision: "3"})
		}
		p, stop := h.process()
		defer stop()
		if rep, err := p.Rebuild(t.Context(), time.Now(), anna); err != nil || rep.Applied != 2 {
			t.Fatalf("%+v, %v", rep, err)
		}
		h.orders["1"].Total = "11"
		h.webhooks(0, 2)
		pass(time.Minute)
		for id, want := range map[string]string{"0": "4", "1": "4"} {
			if k := p.known(id); k == nil || k.Status != saga.Completed || k.Revision != want {
				t.Errorf("order %s: %+v, want it at %s", id, k, want)
			}
		}
		if h.docs[1].Total != "11" || h.docs[1].Revision != "4" || len(h.docs) != 2 {
			t.Errorf("%+v", h.docs[1])
		}
	})
}

// Orders have no version: the inbox numbers their states, and a comparison goes by that. What the books have is adopted, by a comparison or a rebuild; what is
// missing is started, what has changed is changed and what is cancelled is withdrawn, though no webhook told; and what is heard after that is news again. No
// order has two invoices or two mails.
func TestASourceWithoutVersions(t *testing.T) {
	t.Parallel()
	for _, rebuilds := range []bool{false, true} {
		t.Run(fmt.Sprintf("rebuilt=%t", rebuilds), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHeard(t)
				h.unversioned = true
				h.changes(0, 70, false)
				for n := range 8 { // an old script made these
					h.docs = append(h.docs, &invoice{ID: fmt.Sprintf("inv_%d", n+1), Key: keyNamed(fmt.Sprint(n)), Total: "10", Written: "10"})
				}
				p, stop := h.process()
				defer stop()
				compared := func(when string, want int64) {
					t.Helper()
					rep, err := p.PlanAndApply(t.Context(), true)
					if err != nil || rep.Applied != want || rep.NeedsReview+rep.Failed+rep.NotAttempted > 0 {
						t.Errorf("%s: %+v, %v; want %d applied", when, rep, err, want)
					}
					pass(time.Minute)
				}
				says := func(when string, id int, total string, status saga.Status) {
					t.Helper()
					key, k := keyNamed(fmt.Sprint(id)), p.known(fmt.Sprint(id))
					live := h.live(key)
					if k == nil || k.Status != status || total == "" && len(live) > 0 || total != "" && (len(live) != 1 || live[0].Total != total) {
						t.Errorf("%s: order %d: %+v, %d invoices", when, id, k, len(live))
					}
				}
				missing := int64(62)
				if rebuilds {
					if rep, err := p.Rebuild(t.Context(), time.Now(), anna); err != nil || rep.Applied != 8 {
						t.Errorf("rebuilt: %+v, %v", rep, err)
					}
				} else {
					missing += 8
				}
				compared("the first day", missing)
				compared("nothing since", 0)
				h.orders["1"].Total, h.orders["20"].Total, h.orders["30"].Cancelled = "11", "12", true
				compared("no webhook told", 3)
				says("compared", 1, "11", saga.Completed)
				says("compared", 20, "12", saga.Completed)
				says("compared", 30, "", saga.Compensated)
				h.orders["1"].Total, h.orders["2"].Total = "21", "22"
				h.webhooks(1, 3)
				pass(time.Minute)
				says("heard", 1, "21", saga.Completed)
				says("heard", 2, "22", saga.Completed)
				compared("after the webhooks", 0)
				for n := range 70 {
					if mails := h.mails[keyNamed(fmt.Sprint(n))]; n < 8 && mails != 0 || n >= 8 && mails != 1 {
						t.Errorf("order %d: %d mails", n, mails)
					}
				}
				if len(h.docs) != 70 {
					t.Errorf("there are %d invoices of 70 orders", len(h.docs))
				}
			})
		})
	}
}
