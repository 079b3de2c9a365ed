package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// heard is a world whose shop is heard by webhooks and by the listing of what changed, into one
// store.
type heard struct {
	*sagaWorld

	t     *testing.T
	db    *memory.DB
	log   *logtest.Hook
	apply func(context.Context, saga.Change) error // what the inbox calls before the coordinator; nil: nothing
	bound inbox.WithdrawalBound
	most  reconcile.Bound // updates of a run; zero: all
}

func newHeard(t *testing.T) *heard {
	t.Helper()
	return &heard{sagaWorld: newSagaWorld(), t: t, db: memory.New(nil), log: new(logtest.Hook)}
}

// process runs a coordinator, its reconciler and its inbox until stop.
func (h *heard) process() (p *process, stop func()) {
	h.t.Helper()
	log := logrus.New()
	log.SetOutput(h.t.Output())
	log.SetLevel(logrus.ErrorLevel)
	log.AddHook(h.log)
	var in *inbox.Processor
	p = h.bootWith(h.t, h.db, h.db, func(c *wiring) {
		s := h.source()
		all := s.All
		s.Changed = func(ctx context.Context, q scan.Query) (scan.Page, error) {
			p, err := all(ctx, q)
			for i := range p.Objects {
				p.Objects[i].Changed = time.Now()
			}
			return p, err
		}
		c.from(s)
		apply := c.Source.Apply
		c.Source.Withdrawals = h.bound
		if h.most != (reconcile.Bound{}) {
			c.Update = h.most
		}
		c.Source.Apply = func(ctx context.Context, ch saga.Change) error {
			if h.apply != nil {
				if err := h.apply(ctx, ch); err != nil {
					return err
				}
			}
			return apply(ctx, ch)
		}
		var err error
		if in, err = inbox.New(h.db, []*inbox.Source{c.Source}, &inbox.Options{Log: log}); err != nil {
			h.t.Fatal(err)
		}
	})
	p.begin()
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	return p, func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
		p.halt()
	}
}

// change makes orders from one number to another what they are from now on.
func (h *heard) changes(from, to int, cancelled bool) {
	defer h.lock()()
	for n := from; n < to; n++ {
		o := h.orders[fmt.Sprint(n)]
		if o == nil {
			o = &order{Total: "10"}
			h.orders[fmt.Sprint(n)] = o
		}
		o.Version, o.Cancelled = o.Version+1, cancelled
	}
}

// webhooks tell of orders.
func (h *heard) webhooks(from, to int) {
	h.t.Helper()
	for n := from; n < to; n++ {
		c := h.change(fmt.Sprint(n))
		fp, err := intake.Fingerprint(c.Body)
		if err != nil {
			h.t.Fatal(err)
		}
		err = h.db.Accept(h.t.Context(), []intake.Event{{
			Object: c.Object, Payload: intake.Whole, Version: c.Version, Body: c.Body, Fingerprint: fp,
			Dedupe: intake.DigestOf(c.String(), c.Revision), Received: time.Now(),
		}})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *heard) sync(p *process) {
	h.t.Helper()
	if r, err := p.SyncChanges(h.t.Context(), nil); err != nil {
		h.t.Fatalf("%+v, %v", r, err)
	}
}

// stands holds how many invoices are void, and how many withdrawals are held.
func (h *heard) stands(when string, void int, held int64) {
	h.t.Helper()
	n := 0
	unlock := h.lock()
	for _, d := range h.docs {
		if d.Void {
			n++
		}
	}
	unlock()
	all, err := h.db.Holdings(h.t.Context())
	var got int64
	for _, s := range all {
		got += s.Count
	}
	if err != nil || n != void || got != held {
		h.t.Fatalf("%s: %d invoices are void, and %d withdrawals are held (%v); want %d and %d", when, n, got, err, void, held)
	}
}

// ends is a person who ends the hold.
func (h *heard) ends(act string, want int64) {
	h.t.Helper()
	if n, err := h.db.EndHold(h.t.Context(), "shop", act, anna); n != want || err != nil {
		h.t.Fatalf("%s: %d, %v; want %d", act, n, err, want)
	}
}

// intake/B1 to B4: a shop that cancels everything by webhooks is held at its bound, for ever, and its other
// changes go on. A person releases what is held, once; what has been told otherwise meanwhile is
// not withdrawn.
func TestMassCancellationByWebhooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		_, stop := h.process()
		defer stop()
		h.changes(0, 40, false)
		h.webhooks(0, 40)
		pass(2 * time.Hour)
		h.changes(0, 40, true)
		h.webhooks(0, 40)
		pass(time.Minute)
		h.stands("cancelled", 10, 30)
		pass(24 * time.Hour)
		h.stands("a day later", 10, 30)
		if n := len(h.log.AllEntries()); n != 1 || !strings.Contains(h.log.LastEntry().Message, "amends inbox objects --held") {
			t.Errorf("%d lines in the log, the last is %+v; want one for all that are held", n, h.log.LastEntry())
		}
		h.changes(40, 41, false)
		h.webhooks(40, 41)
		held, err := h.db.Entries(t.Context(), intake.EntryFilter{Held: true, Limit: 100})
		if err != nil || len(held) != 30 || !held[0].Due.IsZero() || held[0].Attempts > 0 {
			t.Fatalf("%d entries are held, %v: %+v", len(held), err, held)
		}
		back := held[0].Object.ID
		unlock := h.lock()
		h.orders[back].Version, h.orders[back].Cancelled, h.orders[back].Total = 3, false, "12"
		unlock()
		for _, id := range []string{back, held[1].Object.ID} { // one is told of in a newer state that is none, one again
			n := 0
			_, _ = fmt.Sscan(id, &n)
			if id != back {
				h.changes(n, n+1, true)
			}
			h.webhooks(n, n+1)
		}
		pass(time.Minute)
		h.stands("one is back", 10, 29)
		if live := h.live(keyNamed(back)); len(live) != 1 || live[0].Total != "12" || len(h.live(keyNamed("40"))) != 1 {
			t.Errorf("what is no withdrawal did not go on: %+v, %+v", live, h.live(keyNamed("40")))
		}
		h.ends(intake.ActRelease, 29)
		pass(time.Minute)
		h.stands("released", 39, 0)
		h.ends(intake.ActRelease, 0)
		pass(time.Hour)
		for n := range 40 {
			id, cancels := saga.ID{Saga: orderSaga, Work: keyNamed(fmt.Sprint(n))}, 0
			signals, err := h.db.Signals(t.Context(), id)
			for i := range signals {
				if signals[i].Kind == machine.SignalCancel {
					cancels++
				}
			}
			if want := 1; err != nil || cancels != want && fmt.Sprint(n) != back {
				t.Errorf("%s was withdrawn %d times, %v", id, cancels, err)
			}
		}
		deeds, err := h.db.Deeds(t.Context(), time.Time{}, 0)
		if err != nil || len(deeds) != 1 || deeds[0].Kind != intake.ActRelease || deeds[0].Name != "shop" || deeds[0].Actor != anna.Name || deeds[0].Reason != anna.Reason {
			t.Errorf("on record is %+v, %v", deeds, err)
		}
	})
}

// intake/B1, B4: the same by the listing of what changed. What is dropped counts as told, once, and what the
// shop says later is taken as always.
func TestMassCancellationByChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		p, stop := h.process()
		defer stop()
		h.changes(0, 40, false)
		h.sync(p)
		pass(2 * time.Hour)
		h.changes(0, 40, true)
		h.sync(p)
		pass(time.Minute)
		h.stands("cancelled", 10, 30)
		h.ends(intake.ActDrop, 30)
		pass(time.Minute)
		h.sync(p) // it says the same
		pass(time.Minute)
		h.stands("dropped", 10, 0)
		h.ends(intake.ActDrop, 0)
		h.ends(intake.ActRelease, 0)
		h.changes(0, 40, true)
		h.sync(p)
		pass(time.Minute)
		h.stands("cancelled in a newer version, and a new window began", 20, 20)
	})
}

// intake/B1: the bound holds for all processes and both roads together.
func TestMassCancellationOverTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		p, stop := h.process()
		defer stop()
		_, stopOther := h.process()
		defer stopOther()
		h.changes(0, 60, false)
		h.webhooks(0, 60)
		pass(2 * time.Hour)
		h.changes(0, 60, true)
		h.webhooks(0, 30)
		h.sync(p)
		pass(time.Minute)
		h.stands("cancelled", 10, 50)
		if n := len(h.log.AllEntries()); n != 1 {
			t.Errorf("%d lines in the log, want one", n)
		}
		h.ends(intake.ActRelease, 50)
		pass(time.Minute)
		h.stands("released", 60, 0)
	})
}

// intake/B1: a few are never held, nor are 5 % of many, nor what undoes nothing.
func TestRightfulCancellations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		_, stop := h.process()
		defer stop()
		h.changes(0, 10, false)
		h.webhooks(0, 10)
		pass(2 * time.Hour)
		h.changes(0, 10, true)
		h.webhooks(0, 10)
		pass(2 * time.Hour)
		h.stands("all of a few", 10, 0)
		h.changes(0, 10, true)   // undone by now
		h.changes(10, 100, true) // never started
		h.webhooks(0, 100)
		pass(time.Minute)
		h.stands("what undoes nothing", 10, 0)
		h.changes(100, 500, false)
		h.webhooks(100, 500)
		pass(time.Minute)
		h.changes(100, 120, true)
		h.webhooks(100, 120)
		pass(time.Minute)
		h.stands("20 of 400", 30, 0)
		h.changes(120, 500, true)
		h.webhooks(120, 500)
		pass(time.Minute)
		h.stands("a tenth of 400 and no more", 10+40, 360)
	})
}

// intake/B1: what was counted outlives the process, and a withdrawal that has to be tried again counts once.
// Once the window is over it counts no more.
func TestWithdrawalsAreCountedDurably(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(t)
		var mu sync.Mutex
		tried := map[string]bool{}
		h.apply = func(_ context.Context, ch saga.Change) error {
			mu.Lock()
			defer mu.Unlock()
			if key := ch.ID.Work + "@" + ch.Revision; ch.Want == saga.WantWithdrawn && !tried[key] {
				tried[key] = true
				return errors.New("the ledger is away")
			}
			return nil
		}
		_, stop := h.process()
		h.changes(0, 60, false)
		h.webhooks(0, 60)
		pass(2 * time.Hour)
		h.changes(0, 6, true)
		h.webhooks(0, 6)
		pass(time.Minute)
		h.stands("six", 6, 0)
		stop()
		_, stop = h.process()
		h.changes(6, 10, true)
		h.webhooks(6, 10)
		pass(time.Minute)
		h.stands("ten", 10, 0)
		pass(time.Hour)
		h.changes(10, 20, true)
		h.webhooks(10, 20)
		pass(time.Minute)
		h.stands("ten more, an hour later", 20, 0)
		stop()
		_, stop = h.process()
		defer func() { stop() }()
		h.changes(20, 30, true)
		h.webhooks(20, 30)
		pass(time.Minute)
		h.stands("within the hour", 20, 10)
	})
}

// intake/B1: a source may say other numbers, and that it has no bound.
func TestBoundsOfASource(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		bound inbox.WithdrawalBound
		void  int
	}{
		"unbounded": {inbox.WithdrawalBound{Count: inbox.Unbounded}, 40},
		"three":     {inbox.WithdrawalBound{Count: 3, Percent: 1, Window: time.Minute}, 3},
		"half":      {inbox.WithdrawalBound{Count: 3, Percent: 50, Window: 24 * time.Hour}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHeard(t)
				h.bound = one.bound
				_, stop := h.process()
				defer stop()
				h.changes(0, 40, false)
				h.webhooks(0, 40)
				pass(2 * time.Hour)
				h.changes(0, 40, true)
				h.webhooks(0, 40)
				pass(30 * time.Second)
				h.stands("cancelled", one.void, int64(40-one.void))
			})
		})
	}
	_, err := inbox.New(memory.New(nil), []*inbox.Source{{Name: "shop", Withdrawals: inbox.WithdrawalBound{Count: -2}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "Withdrawals") {
		t.Error(err)
	}
}
