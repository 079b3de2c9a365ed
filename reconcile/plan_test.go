package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
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

// A plan is data: what was found of each key, what would be done, why, from what to what, and
// on what it rests.
func TestPlanSaysWhatAndWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := mess().job(t, nil)
		r := j.mustPlan()
		type treatment struct {
			class plan.Class
			do    plan.Verb
		}
		want := map[string]treatment{
			"missing": {plan.Missing, plan.Start}, "lost": {plan.LedgerLost, plan.Adopt}, "mismatch": {plan.AdoptMismatch, plan.Ask},
			"doubt": {plan.InDoubt, plan.Ask}, "phantom": {plan.PhantomDone, plan.Ask}, "stale": {plan.Stale, plan.Revise},
			"edited": {plan.Diverged, plan.Ask}, "posted": {plan.Locked, plan.Ask}, "twice": {plan.Duplicate, plan.Ask},
			"cancelled": {plan.SourceGone, plan.Withdraw}, "gone": {plan.Orphan, plan.Nothing}, "stuck": {plan.Stuck, plan.Resume},
			"unreadable": {plan.Unreadable, plan.Ask},
		}
		for _, row := range j.rows() {
			name := idOf(row.Key)
			if got := (treatment{row.Class, row.Action}); got != want[name] {
				t.Errorf("%s: %s, %s (%s); want %v", name, row.Class, row.Action, row.Reason, want[name])
			}
			if row.Reason == "" {
				t.Errorf("%s: nothing says why", name)
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("%s was not found", name)
		}
		stale := j.row("shop:order:stale")
		if len(stale.Changes) != 1 || stale.Changes[0] != (plan.Change{Field: "total", Actual: "10.00", Desired: "12.00"}) || stale.SourceRevision != "2" || stale.LedgerRevision != "1" || len(stale.Documents) != 1 {
			t.Errorf("the stale one: %+v", stale.Finding)
		}
		if r.Planned != 5 || r.NeedsReview != 7 || r.Seen != 74 || r.Result != schedule.OK || r.Plan == "" {
			t.Errorf("report: %+v", r)
		}
	})
}

// Planning writes nothing to the source, the destination, the ledger, the inbox or an
// incremental cursor.
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
		if ds, err := j.store.Deliveries(t.Context(), intake.DeliveryFilter{}); err != nil || len(ds) > 0 {
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

// The same three sides give the same plan, byte for byte, whoever looks and when.
func TestPlansAreEqual(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := func(workers int) (plan.Plan, []plan.Row) {
			j := mess().job(t, func(c *settings) { c.Workers = workers })
			j.pass(time.Duration(workers) * time.Hour)
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

// When the mapping makes everything look different, the plan is refused with that diagnosis,
// and nobody is asked about ten thousand documents first.
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
			c.Policy.Fields = map[string]plan.Rule{"total": plan.Enforce}
			c.sweep.Source.Want = func(o *scan.Listed) (plan.Truth, error) {
				truth, err := want(o)
				truth.Fields["total"] += " EUR"
				return truth, err
			}
		})
		r := j.mustRun()
		if r.Result != schedule.Refused || !strings.Contains(r.Message, `"total"`) || !strings.Contains(r.Message, `"1" and is "2"`) {
			t.Errorf("report: %+v", r)
		}
		if len(w.delivered) > 0 || w.asked-asked > 10 {
			t.Errorf("%d delivered, %d calls", len(w.delivered), w.asked-asked)
		}
		if r := j.must(j.Apply(t.Context(), r.Plan)); r.Result != schedule.Refused || r.Applied > 0 {
			t.Errorf("applied all the same: %+v", r)
		}
	})
}

// Everything that is wrong with a configuration is said at once.
func TestFaultsAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := reconcile.New(nil, reconcile.Config{Source: &inbox.Source{}, Changed: reconcile.Pages(func(context.Context, scan.Query) (scan.Page, error) { return scan.Page{}, nil })}, &reconcile.Options{Grace: -1, Create: reconcile.Bound{Count: -1}, Enforce: []string{"total"}, Ignore: []string{"total"}})
	for _, what := range []string{"Store", "no Fetch", "no Decide", "no Apply", "no Saga", "no All", "no Begin", "no Marked", "no Find", "Coordinator", "Step", "no Fields", "Grace", "Create.Count", "to be ignored"} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("nothing is said about %s: %v", what, err)
		}
	}
}

// What belongs to no object of the source was compared with nothing: it is counted apart, named, and
// neither in sync nor a difference. It costs no question, however much of it there is.
func TestNoSource(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		alone, named int
		end          saga.Status
	}{
		"none": {}, "one": {1, 1, saga.Completed}, "250": {250, 100, saga.Completed}, "undone ones": {3, 3, saga.Compensated},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			for n := range 23 {
				w.done(keyOf(n))
			}
			for n := range tc.alone { // started by an API of one's own
				w.works[fmt.Sprintf("api:trip:%04d", n)] = &plan.Known{Works: 1, Status: tc.end, Revision: "1"}
			}
			w.works["api:trip:running"] = &plan.Known{Works: 1, Status: saga.Running}
			w.works["shop:order:void"] = &plan.Known{Works: 1, Status: saga.Compensated, Revision: "1"}
			w.make("shop:order:void", "10.00", "1").Void = true // of an order that was deleted, and undone
			j := w.job(t, nil)
			before := w.asked
			r := j.mustRun()
			asked := w.asked - before
			p, err := j.store.Latest(t.Context(), "orders")
			if err != nil {
				t.Fatal(err)
			}
			count := func(c plan.Class) int64 { return p.Count(func(t plan.Tally) bool { return t.Class == c }) }
			if count(plan.InSync) != 25 || count(plan.NoSource) != int64(tc.alone) || p.Drifts() != 0 || p.Counts.Keys != int64(25+tc.alone) {
				t.Errorf("%s: %+v", name, p.Classes)
			}
			rows := j.rows()
			for i, row := range rows {
				if row.Key != fmt.Sprintf("api:trip:%04d", i) || row.Class != plan.NoSource || row.Action != plan.Nothing || row.Reason == "" {
					t.Errorf("%s: %+v", name, row.Finding)
				}
			}
			if len(rows) != tc.named || r.Result != schedule.OK || r.Planned+r.NeedsReview != 0 {
				t.Errorf("%s: %d are named; %+v", name, len(rows), r)
			}
			if asked > 10 {
				t.Errorf("%s: the two systems were asked %d times", name, asked)
			}
			var text bytes.Buffer
			err = plan.WriteText(&text, &p.Plan, func(c plan.Class, n int) (fs []plan.Finding, err error) {
				rows, err := j.store.Findings(t.Context(), plan.FindingQuery{Plan: p.Ref(), Class: c, Limit: n})
				for i := range rows {
					fs = append(fs, rows[i].Finding)
				}
				return fs, err
			})
			if err != nil || strings.Contains(text.String(), "api:trip:0000") != (tc.alone > 0) || strings.Contains(text.String(), "no-source, the first 5 of 250") != (tc.alone == 250) {
				t.Errorf("%s: %v\n%s", name, err, &text)
			}
		})
	}
}

// As many of no source as there are, the plan of two equal worlds is one, and one that turns out on a
// closer look to have none is one of them.
func TestNoSourceOnACloserLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 10 {
			w.done(keyOf(n))
		}
		for n := range 105 {
			w.works[fmt.Sprintf("api:trip:%04d", n)] = &plan.Known{Works: 1, Status: saga.Completed, Revision: "1"}
		}
		w.done("shop:order:gone")
		delete(w.orders, "shop:order:gone")
		w.onLook = func(key string) { // its document is deleted between the listing and the look
			if key == "shop:order:gone" {
				defer w.lock()()
				w.docs = slices.DeleteFunc(w.docs, func(d *plan.Document) bool { return d.Key == key })
			}
		}
		j := w.job(t, nil)
		j.mustPlan()
		p, err := j.store.Latest(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		if n := p.Count(func(t plan.Tally) bool { return t.Class == plan.NoSource }); n != 106 || len(j.rows()) != 100 || p.Drifts() != 0 {
			t.Errorf("%d of no source, %d of them named; %+v", n, len(j.rows()), p.Classes)
		}
		ds, err := j.store.Drifts(t.Context(), plan.DriftQuery{Job: "orders"})
		if err != nil || len(ds) != 0 {
			t.Errorf("they are remembered as drift: %+v, %v", ds, err)
		}
	})
}
