package reconcile_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// between calls do once, when one system was listed from end to end and nobody has asked the other
// one yet, whichever is the first.
func (w *world) between(do func()) func(*settings) {
	return func(c *settings) {
		many(c)
		c.Policy.Recreate = true
		var mu sync.Mutex
		listed, done := "", false
		turn := func(side string) {
			mu.Lock()
			defer mu.Unlock()
			if listed != "" && listed != side && !done {
				done = true
				do()
			}
			listed = side
		}
		all, marked := c.sweep.Source.All, c.sweep.Destination.Marked
		c.sweep.Source.All = func(ctx context.Context, q scan.Query) (scan.Page, error) {
			turn("source")
			return all(ctx, q)
		}
		c.sweep.Destination.Marked = func(ctx context.Context, q scan.Query) (scan.Documents, error) {
			turn("destination")
			return marked(ctx, q)
		}
	}
}

// The source is listed before the destination, and the ledger is read last: in the order in
// which a saga makes them true. So a work that comes to its end during the run is plainly in sync,
// and costs nobody a question. The other way round every such work would be without a document as
// far as the listings go, and what follows from that is done by itself (a start; here the policy
// makes it anew). What this order may get wrong is an order that was sold and invoiced between the
// two listings: a document without an object. From that nothing follows by itself; see the next
// test.
func TestSourceIsListedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		w.slow = time.Minute
		w.sold(keyOf(500))
		asked := 0
		w.onLook = func(string) { asked++ }
		j := w.job(t, w.between(func() { w.pass(2 * time.Minute) }))
		if err := w.deliver(t.Context(), w.hint(keyOf(500))); err != nil {
			t.Fatal(err)
		}
		r := j.mustPlan()
		if len(w.live(keyOf(500))) != 1 {
			t.Fatal("the work has not come to its end; the test proves nothing")
		}
		if asked != 0 || len(j.rows()) != 0 || r.Planned != 0 {
			t.Errorf("%d questions; %+v; %+v", asked, j.rows(), r)
		}
	})
}

// An order that was sold and invoiced between the two listings has a document, and no object as
// far as the listings go. It is looked at, and is not remembered as an orphan.
func TestSoldBetweenTheListings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		j := w.job(t, w.between(func() { w.done(keyOf(500)) }))
		r := j.mustPlan()
		if row := j.row(keyOf(500)); row.Class != "" || r.Planned+r.NeedsReview != 0 {
			t.Errorf("%+v; %+v", row, r)
		}
		if ds := j.orphans(); len(ds) != 0 {
			t.Errorf("remembered: %+v", ds)
		}
	})
}

// The grace begins with a look that found nothing, not with a listing. An order that came
// between the listings, and could not be looked at then, is not proven to be gone by the first run
// that asks for it in vain.
func TestGraceBeginsWithALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		w.getFails[keyOf(500)] = errors.New("503")
		j := w.job(t, w.between(func() { w.done(keyOf(500)) }))
		j.mustRun()
		w.pass(25 * time.Hour)
		clear(w.getFails)
		delete(w.orders, keyOf(500)) // only now
		for _, step := range []struct {
			after time.Duration
			do    plan.Verb
		}{{0, plan.Nothing}, {23 * time.Hour, plan.Nothing}, {2 * time.Hour, plan.Ask}} {
			w.pass(step.after)
			j.mustRun()
			if row := j.row(keyOf(500)); row.Class != plan.Orphan || row.Action != step.do {
				t.Errorf("after %s: %s, %s (%s)", step.after, row.Class, row.Action, row.Reason)
			}
		}
	})
}

// A night on which nobody could look does not begin the grace of an orphan anew.
func TestGraceOutlivesABadNight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		w.done(keyOf(500))
		delete(w.orders, keyOf(500))
		j := w.job(t, many)
		j.mustRun()
		w.pass(20 * time.Hour)
		w.getFails[keyOf(500)] = errors.New("503")
		j.mustRun()
		w.pass(5 * time.Hour)
		clear(w.getFails)
		j.mustRun()
		if row := j.row(keyOf(500)); row.Class != plan.Orphan || row.Action != plan.Ask {
			t.Errorf("%s, %s (%s)", row.Class, row.Action, row.Reason)
		}
	})
}

// orphans are those that the job remembers.
func (j *job) orphans() []plan.Drift {
	j.t.Helper()
	ds, err := j.store.Drifts(j.t.Context(), plan.DriftQuery{Job: "orders", Class: plan.Orphan})
	if err != nil {
		j.t.Fatal(err)
	}
	return ds
}

// hint is what a Processor hands on about an order.
func (w *world) hint(key string) inbox.Snapshot {
	o := w.object(key)
	return inbox.Snapshot{
		Object: inbox.Object{Source: "shop", Type: "order", ID: o.ID}, Version: o.Version, Revision: o.Version.Revision(), Body: o.Body,
	}
}
