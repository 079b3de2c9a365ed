package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// old is what a script left in the books: an invoice for each order, but for one in a hundred; one in twenty says another amount, one in a hundred is
// there twice, and of two in a hundred the order is cancelled, or gone.
type old struct {
	*sagaWorld
	t    *testing.T
	rng  *rand.Rand
	db   *memory.DB
	ids  []string
	bare map[string]bool   // orders without an invoice of the script
	says map[string]string // what was accepted, by key
	by   int               // documents that the script made
}

func newOld(t *testing.T, n int, seed uint64) *old {
	t.Helper()
	w := &old{sagaWorld: newSagaWorld(), t: t, rng: rand.New(rand.NewPCG(seed, 1)), db: memory.New(nil), bare: map[string]bool{}, says: map[string]string{}} //nolint:gosec // a seed
	w.stopped = time.Now()
	for i := range n {
		id := fmt.Sprintf("%05d", i)
		w.sold(id)
		w.ids = append(w.ids, id)
		total := w.orders[id].Total
		if i%20 == 1 {
			total = "9"
		}
		switch i % 100 {
		case 2:
			w.bare[id] = true
			continue
		case 3, 53:
			w.script(id, total)
		case 4:
			w.orders[id].Cancelled = true
		case 5:
			delete(w.orders, id)
		}
		w.script(id, total)
	}
	return w
}

func (w *old) script(id, total string) {
	w.by++
	w.docs = append(w.docs, &invoice{ID: fmt.Sprintf("inv_%d", len(w.docs)+1), Key: keyNamed(id), Total: total, Written: "?"})
}

// process is one over what the last one left.
func (w *old) process() *process {
	return w.bootWith(w.t, w.db, w.db, func(c *wiring) {
		c.Destination.Void = func(_ context.Context, d plan.Document) error {
			defer w.lock()()
			for _, mine := range w.docs {
				mine.Void = mine.Void || mine.ID == d.ID
			}
			return nil
		}
		n := int64(len(w.ids))
		c.Create.Count, c.Update.Count, c.Destroy.Count = n, n, n
	}).begin()
}

// day is a day of the shop while it is taken over: comparisons, orders that change and webhooks of it, and a process that is killed.
func (w *old) day(kills int) {
	w.t.Helper()
	for range kills {
		p := w.process()
		ctx, kill := context.WithCancel(w.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = p.PlanAndApply(ctx, true)
			_, _ = p.CarryOutDecisions(ctx)
		}()
		for range 5 {
			id := w.ids[w.rng.IntN(len(w.ids))]
			if w.changes(id) {
				p.hears(id)
			}
			pass(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
		}
		kill()
		<-done
		p.halt()
	}
	p := w.process()
	if _, err := p.CarryOutDecisions(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for range 2 {
		if _, err := p.PlanAndApply(w.t.Context(), true); err != nil {
			w.t.Fatal(err)
		}
		pass(5 * time.Minute)
	}
	w.decide(p)
	pass(25 * time.Hour)
	p.halt()
}

// changes has a customer change an order.
func (w *old) changes(id string) bool {
	defer w.lock()()
	o := w.orders[id]
	if o == nil || o.Cancelled {
		return false
	}
	w.orders[id] = &order{Version: o.Version + 1, Total: fmt.Sprint(10 + w.rng.IntN(90))}
	delete(w.says, keyNamed(id))
	return true
}

// decide is a person who decides on everything that is for one.
func (w *old) decide(p *process) {
	w.t.Helper()
	ctx := w.t.Context()
	drifts, err := w.db.Drifts(ctx, plan.DriftQuery{Job: "orders", Open: true, Limit: 100_000})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range drifts {
		d := plan.Decision{Finding: drifts[i].Finding, By: decider}
		switch f := &d.Finding; {
		case f.Action != plan.Ask:
			continue
		case f.Class == plan.InDoubt: // it was heard of while there were two: the instance asks again when one is void
			w.docs[slices.Index(w.docs, w.live(f.Key)[1])].Void = true
			if err := p.Retry(ctx, saga.ID{Saga: orderSaga, Work: f.Key}, anna); err != nil {
				w.t.Error(err)
			}
			continue
		case f.Class == plan.Duplicate:
			d.Verdict, d.Keep = plan.Keep, f.Documents[0]
		case f.Class == plan.Orphan || f.Class == plan.SourceGone:
			d.Verdict = plan.Void
		case i%2 == 0:
			d.Verdict = plan.Ours
		default:
			d.Verdict = plan.Accept
			w.says[f.Key] = w.live(f.Key)[0].Total
		}
		if err := w.db.Decide(ctx, "orders", []plan.Decision{d}); err != nil {
			w.t.Errorf("%s: %v", d.Finding.Key, err)
		}
	}
	if rep, err := p.CarryOutDecisions(ctx); err != nil || rep.Failed+rep.NotAttempted > 0 {
		w.t.Errorf("what was decided: %+v, %v", rep, err)
	}
}

// The books of an old script are taken over while orders change, webhooks come and the process is killed twenty times: each invoice has an instance, no
// order has two, none is lost, no mail goes out again; what differs, is doubled or has no order is found, decided on, and the comparison afterwards finds
// nothing.
func TestTheBooksOfAnOldScriptAreTakenOver(t *testing.T) {
	t.Parallel()
	n := 300
	if pace.AtNight() {
		n = 10_000
	}
	seed := uint64(time.Now().UnixNano())
	synctest.Test(t, func(t *testing.T) {
		w := newOld(t, n, seed)
		for range 4 {
			w.day(5)
		}
		for range 3 { // of a quiet shop
			w.day(0)
		}
		p := w.process()
		rep, err := p.PlanAndApply(t.Context(), true)
		if err != nil || rep.Planned+rep.NeedsReview+rep.Failed > 0 {
			t.Errorf("seed %d: the comparison afterwards: %+v, %v", seed, rep, err)
		}
		for _, id := range w.ids {
			w.audit(p, seed, id)
		}
		if made := len(w.docs) - w.by; made != len(w.bare) {
			t.Errorf("seed %d: %d invoices were made, and %d orders had none", seed, made, len(w.bare))
		}
		p.halt()
	})
}

func (w *old) audit(p *process, seed uint64, id string) {
	w.t.Helper()
	key, o := keyNamed(id), w.orders[id]
	live, k, mails := w.live(key), p.known(id), w.mails[key]
	if o == nil || o.Cancelled {
		if len(live) > 0 {
			w.t.Errorf("seed %d: %s is cancelled or gone, and %s stands", seed, key, live[0].ID)
		}
		return
	}
	want := o.Total
	if said, accepted := w.says[key]; accepted {
		want = said
	}
	switch {
	case len(live) != 1:
		w.t.Errorf("seed %d: %s has %d invoices", seed, key, len(live))
	case live[0].Total != want:
		w.t.Errorf("seed %d: %s says %s, and should say %s", seed, key, live[0].Total, want)
	case k == nil || k.Status != saga.Completed || k.Made != live[0].ID:
		w.t.Errorf("seed %d: the ledger says of %s: %+v", seed, key, k)
	case w.bare[id] && mails != 1 || !w.bare[id] && mails != 0:
		w.t.Errorf("seed %d: %d mails about %s", seed, mails, key)
	}
}
