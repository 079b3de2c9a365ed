package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// event is one thing that happens to an order.
type event struct {
	order  string
	what   string // sold, changed, same (a newer version that says the same), cancelled, edited (at the books)
	heard  bool   // the webhook came
	faults []string
	wait   bool // until the coordinator has come to rest
}

func histories() *rapid.Generator[[]event] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
		return event{
			order:  rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "order"),
			what:   rapid.SampledFrom([]string{"sold", "sold", "changed", "same", "cancelled", "edited"}).Draw(t, "what"),
			heard:  rapid.IntRange(0, 3).Draw(t, "unheard") > 0,
			faults: rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "cut", "lost", "refused"}), 0, 3).Draw(t, "faults"),
			wait:   rapid.IntRange(0, 3).Draw(t, "at once") > 0,
		}
	}), 1, 14)
}

// live plays a history. It says which orders somebody has edited the invoice of, since it was
// written last.
func (p *process) live(history []event) {
	w := p.world
	for n, e := range history {
		o := w.orders[e.order]
		unlock := w.lock()
		switch {
		case e.what == "edited":
			for _, d := range w.live(keyNamed(e.order)) {
				d.Total = "0.99"
			}
			e.heard = false
		case o == nil && e.what != "sold":
			e.heard = false
		case o == nil:
			w.orders[e.order] = &order{Version: 1, Total: "10"}
		case e.what == "cancelled":
			w.orders[e.order] = &order{Version: o.Version + 1, Total: o.Total, Cancelled: true}
		case e.what == "changed" || o.Cancelled:
			w.orders[e.order] = &order{Version: o.Version + 1, Total: fmt.Sprint(20 + n)}
		default:
			w.orders[e.order] = &order{Version: o.Version + 1, Total: o.Total}
		}
		w.faults = append(w.faults, e.faults...)
		unlock()
		if e.heard {
			p.hears(e.order)
		}
		if e.wait {
			pass(20 * time.Minute)
		}
	}
	pass(time.Hour)
	defer w.lock()()
	w.faults = nil
}

// After any history, with lost webhooks, lost answers and people who edit
// invoices, the ledger is lost and rebuilt. Where it had come to rest, and the source says no more
// than it had heard, the rebuilt one says the same. Nothing is made or sent by the rebuild, cut off
// anywhere and repeated it gives the same, and the runs that follow bring everything home that no
// person has to decide: one invoice with what the order says, and never a second mail.
func TestRebuildAfterAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		history := histories().Draw(rt, "history")
		mailed := rapid.Bool().Draw(rt, "the mail server knows")
		cut := rapid.IntRange(1, 12).Draw(rt, "cut off at")
		kind := rapid.IntRange(0, 2).Draw(rt, "cut off before, during, after")
		var err error
		synctest.Test(t, func(t *testing.T) {
			w := newSagaWorld()
			for n := range 12 { // so that a few edits do not look like a mapping
				w.orders[fmt.Sprintf("well-%02d", n)] = &order{Version: 1, Total: "10"}
			}
			before := memory.New(nil)
			p := w.boot(t, before, memory.New(nil), mailed).begin()
			for n := range 12 {
				p.hears(fmt.Sprintf("well-%02d", n))
			}
			p.live(history)
			p.halt()
			err = w.rebuilds(t, before, mailed, [2]int{cut, kind})
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// The mail of an order was refused, so that its invoice was voided, and the ledger is
// lost. Where the adapter says that no mail was sent it is believed: the next version of the order
// sends it. Where it says nothing the mail counts as sent.
func TestRebuildBelievesNotDone(t *testing.T) {
	t.Parallel()
	for mailed, want := range map[bool]int{true: 1, false: 0} {
		t.Run(fmt.Sprint("the mail server knows: ", mailed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSagaWorld()
				w.orders["1"] = &order{Version: 1, Total: "10"}
				w.faults = []string{"", "refused"}
				before := memory.New(nil)
				p := w.boot(t, before, memory.New(nil), mailed).begin()
				p.hears("1")
				pass(time.Hour)
				p.halt()
				if live := w.live(keyNamed("1")); len(live) > 0 || !w.voided(keyNamed("1")) || w.mails[keyNamed("1")] > 0 {
					t.Fatalf("it was to be undone before its mail: %+v, %v", live, w.mails)
				}
				w.orders["1"] = &order{Version: 2, Total: "20"}
				if err := w.rebuilds(t, before, mailed, [2]int{1, 0}); err != nil {
					t.Fatal(err)
				}
				if n := w.mails[keyNamed("1")]; n != want || len(w.live(keyNamed("1"))) != 1 {
					t.Errorf("%d mails, want %d; invoices %+v", n, want, w.live(keyNamed("1")))
				}
			})
		})
	}
}

// rebuilds loses the ledger and rebuilds it.
func (w *sagaWorld) rebuilds(t *testing.T, before *memory.DB, mailed bool, cut [2]int) error {
	t.Helper()
	since := time.Now()
	writes := w.writes
	rebuild := func(l ledger.Ledger) (*process, reconcile.Report, error) {
		p := w.boot(t, l, memory.New(nil), mailed)
		r, err := p.Rebuild(t.Context(), since, anna)
		return p, r, err
	}
	whole, broken := memory.New(nil), memory.New(nil)
	p, r, err := rebuild(whole)
	if err != nil || r.Failed > 0 || r.Result != schedule.OK {
		return fmt.Errorf("rebuild: %+v: %w", r, err)
	}
	if err := w.sameAtRest(p, before); err != nil {
		return err
	}
	w.cutOff(t, broken, mailed, since, cut)
	again, r, err := rebuild(broken)
	if err != nil || r.Failed > 0 {
		return fmt.Errorf("rebuild after it was cut off: %+v: %w", r, err)
	}
	want, got := p.dump(whole), again.dump(broken)
	if want != got {
		return fmt.Errorf("cut off at %v and repeated:\n%s\nin peace:\n%s", cut, got, want)
	}
	if _, _, err := rebuild(broken); err != nil || again.dump(broken) != want {
		return fmt.Errorf("once more: %w\n%s\nwas\n%s", err, again.dump(broken), want)
	}
	if w.writes != writes {
		return fmt.Errorf("the rebuild wrote %d times", w.writes-writes)
	}
	ledgertest.MustCheck(t, whole)
	return w.comesHome(w.boot(t, broken, memory.New(nil), mailed).begin(), mailed)
}

// cutOff rebuilds in a process that dies at a call to the ledger.
func (w *sagaWorld) cutOff(t *testing.T, l *memory.DB, mailed bool, since time.Time, cut [2]int) {
	t.Helper()
	fault := []func(int, ...ledgertest.Method) ledgertest.Fault{ledgertest.CrashBefore, ledgertest.CrashDuring, ledgertest.CrashAfter}[cut[1]](cut[0], ledgertest.Append)
	faulty := ledgertest.Faulty(l, fault)
	p := w.boot(t, faulty, memory.New(nil), mailed)
	ctx, die := context.WithCancel(t.Context())
	defer die()
	go func() {
		select {
		case <-faulty.Crashed():
			die()
		case <-ctx.Done():
		}
	}()
	_, _ = p.Rebuild(ctx, since, anna) // it may have died
}

// sameAtRest compares the rebuilt ledger with the one that was lost.
func (w *sagaWorld) sameAtRest(p *process, before *memory.DB) error {
	old := w.boot(p.t, before, memory.New(nil), false)
	for id, o := range w.orders {
		was, err := old.Instances().Known(p.t.Context(), keyNamed(id))
		if err != nil {
			return err
		}
		is, err := p.Instances().Known(p.t.Context(), keyNamed(id))
		if err != nil {
			return err
		}
		if was == nil || !was.Status.Terminal() || was.Revision != fmt.Sprint(o.Version) && was.Status == saga.Completed {
			continue // on its way, or behind its source
		}
		edited := false
		for _, d := range w.live(keyNamed(id)) {
			edited = edited || d.Total != d.Written
		}
		switch {
		case was.Status == saga.Compensated && len(w.live(keyNamed(id))) == 0:
			if o.Cancelled && (is == nil || is.Status != was.Status || is.Made != "") && w.voided(keyNamed(id)) || is != nil && !w.voided(keyNamed(id)) {
				return fmt.Errorf("%s was compensated, and is %+v", id, is)
			}
		case was.Status == saga.Completed && edited:
			if is == nil || is.Status != saga.Review {
				return fmt.Errorf("somebody edited the invoice of %s, and the work is %+v", id, is)
			}
		case was.Status == saga.Completed:
			was.Works = is.Works
			if !reflect.DeepEqual(was, is) {
				return fmt.Errorf("%s was %+v, and is %+v", id, was, is)
			}
		}
	}
	return nil
}

// voided reports whether a document of a key was voided.
func (w *sagaWorld) voided(key string) bool {
	return slices.ContainsFunc(w.docs, func(d *invoice) bool { return d.Key == key && d.Void })
}

// comesHome runs a coordinator and the reconciler, and looks at what there is in the end.
func (w *sagaWorld) comesHome(p *process, mailed bool) error {
	defer p.halt()
	for range 3 {
		pass(time.Hour)
		if r, err := p.PlanAndApply(p.t.Context(), true); err != nil || r.Failed > 0 {
			return fmt.Errorf("a run behind the rebuild: %+v: %w", r, err)
		}
	}
	pass(time.Hour)
	if r, err := p.Plan(p.t.Context()); err != nil || r.Planned > 0 {
		return fmt.Errorf("at the end: %+v (%w): %s", r, err, p.planned())
	}
	for id, o := range w.orders {
		k, err := p.Instances().Known(p.t.Context(), keyNamed(id))
		if err != nil {
			return err
		}
		live := w.live(keyNamed(id))
		switch {
		case w.mails[keyNamed(id)] > 1:
			return fmt.Errorf("%d mails about %s", w.mails[keyNamed(id)], id)
		case len(live) > 1:
			return fmt.Errorf("%s has %d invoices", id, len(live))
		case k != nil && (k.Status == saga.Review || k.Status == saga.Compensated && k.Revision == fmt.Sprint(o.Version)): // a person decides
		case len(live) == 1 && live[0].Total != live[0].Written: // and about what was edited
		case o.Cancelled && len(live) > 0:
			return fmt.Errorf("%s is cancelled, and %+v stands; the work is %+v", id, *live[0], k)
		case !o.Cancelled && (len(live) == 0 || live[0].Total != o.Total):
			return fmt.Errorf("%s says %s, and the invoices are %+v; the work is %+v", id, o.Total, live, k)
		case !o.Cancelled && mailed && w.mails[keyNamed(id)] != 1:
			return fmt.Errorf("the mail server knows, and nobody has sent the mail about %s", id)
		}
	}
	return nil
}

// planned are the findings of the newest plan, in words.
func (p *process) planned() string {
	p.t.Helper()
	latest, err := p.plans.Latest(p.t.Context(), "orders")
	if err != nil {
		p.t.Fatal(err)
	}
	rows, err := p.plans.Findings(p.t.Context(), plan.FindingQuery{Plan: latest.Ref()})
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprintf("%+v", rows)
}

// dump is a ledger without what differs between two that say the same: times and hashes.
func (p *process) dump(l *memory.DB) string {
	p.t.Helper()
	heads, err := ledger.First(p.t.Context(), l, ledger.Filter{Saga: orderSaga, ByWork: true, Limit: 1000})
	if err != nil {
		p.t.Fatal(err)
	}
	var all []byte
	for i := range heads {
		records, err := l.History(p.t.Context(), heads[i].ID)
		if err != nil {
			p.t.Fatal(err)
		}
		st, err := machine.Fold(heads[i].ID, records)
		if err != nil {
			p.t.Fatal(err)
		}
		st.TailHash, st.Started, st.Updated, st.Forgotten, st.Due = machine.Hash{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
		line, err := json.Marshal(st)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(append(all, heads[i].ID.Work+" "...), append(line, '\n')...)
	}
	return string(all)
}

// A mail that could not be told after a rebuild is unconfirmed, and the work is
// completed. A person who finds out says so: a mail that was not sent is sent, once, and one that
// was is on record.
func TestUnconfirmedIsResolved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says  saga.Resolution
		mails int
	}{"it did not happen": {coordinator.DidNotHappen(), 1}, "it happened": {coordinator.Happened("mail-7"), 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSagaWorld()
				w.orders["1"] = &order{Version: 1, Total: "10"}
				w.docs = []*invoice{{ID: "inv_1", Key: keyNamed("1"), Revision: "1", Total: "10", Written: "10"}}
				p := w.boot(t, memory.New(nil), memory.New(nil), false)
				id := saga.ID{Saga: orderSaga, Work: keyNamed("1")}
				if r, err := p.Rebuild(t.Context(), time.Time{}, anna); err != nil || r.Applied != 1 {
					t.Fatalf("%+v, %v", r, err)
				}
				p.begin()
				defer p.halt()
				pass(time.Hour)
				if s, err := p.Show(t.Context(), id); err != nil || s.Status != saga.Completed || !s.Steps["receipt"].Unconfirmed || w.mails[keyNamed("1")] > 0 {
					t.Fatalf("%+v, %v", s, err)
				}
				if err := p.Resolve(t.Context(), id, "receipt", c.says, anna); err != nil {
					t.Fatal(err)
				}
				pass(time.Hour)
				s, err := p.Show(t.Context(), id)
				if err != nil || s.Status != saga.Completed || s.Steps["receipt"].Unconfirmed || s.Steps["receipt"].ExternalID == "" || w.mails[keyNamed("1")] != c.mails {
					t.Errorf("%d mails, %+v, %v", w.mails[keyNamed("1")], s, err)
				}
				if r, err := p.Plan(t.Context()); err != nil || r.Planned+r.NeedsReview > 0 {
					t.Errorf("%+v, %v", r, err)
				}
			})
		})
	}
}
