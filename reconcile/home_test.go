package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// anyWorld draws a world in which the three sides may say anything of a key.
func anyWorld(t *rapid.T) *world {
	w := newWorld()
	for n := range 30 { // well enough that the source does not look shrunk, nor the mapping changed
		w.done(keyOf(1000 + n))
	}
	for n := range rapid.IntRange(0, 12).Draw(t, "keys") {
		w.draw(t, keyOf(n))
	}
	return w
}

// draw lets the three sides say anything of one key.
func (w *world) draw(t *rapid.T, key string) {
	totals := rapid.SampledFrom([]string{"10.00", "12.00"})
	if rapid.IntRange(0, 3).Draw(t, "in the shop") > 0 {
		w.orders[key] = &order{Version: rapid.Int64Range(1, 3).Draw(t, "version"), Total: totals.Draw(t, "total"), Cancelled: rapid.IntRange(0, 3).Draw(t, "cancelled") == 0}
	}
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "documents") {
		d := w.make(key, totals.Draw(t, "document"), strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "shows")))
		d.Void = rapid.IntRange(0, 4).Draw(t, "void") == 0
		d.Locked = rapid.IntRange(0, 4).Draw(t, "locked") == 0
		d.Foreign = rapid.IntRange(0, 4).Draw(t, "foreign") == 0
		d.Intact = rapid.Bool().Draw(t, "intact")
		if rapid.IntRange(0, 4).Draw(t, "no mark of a version") == 0 {
			d.Revision = ""
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "no work") == 0 {
		return
	}
	k := &plan.Known{
		Works: 1, Revision: strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "applied")),
		Status: rapid.SampledFrom([]saga.Status{saga.Completed, saga.Completed, saga.Compensated, saga.Review, saga.Paused, saga.Adopting, saga.Running, saga.Retrying}).Draw(t, "status"),
	}
	if live := w.live(key); len(live) > 0 && rapid.Bool().Draw(t, "made") {
		k.Made = live[0].ID
	}
	k.InDoubt = k.Status == saga.Retrying && rapid.Bool().Draw(t, "in doubt")
	k.Overdue = k.Status.Live() && rapid.Bool().Draw(t, "overdue")
	if k.Status == saga.Review {
		k.Reason = saga.ReasonInDoubt
	}
	w.works[key], w.mails[key] = k, 1
}

// Whatever the three sides say, a second run right after the first one plans nothing,
// unless the first was kept from doing what it planned. And nothing is ever lost: no posted
// document is changed, none is voided but for a cancelled order, no key gets a second document by
// our hand, and nobody gets a second mail.
func TestSecondRunPlansNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(rt)
		policy := plan.Policy{Recreate: rapid.Bool().Draw(rt, "recreate")}
		if rapid.Bool().Draw(rt, "enforce") {
			policy.Fields = map[string]plan.Rule{"total": plan.Enforce}
		}
		w.slow = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Minute}).Draw(rt, "slow")
		workers := rapid.IntRange(1, 4).Draw(rt, "workers")
		before := w.photo()
		var err error
		synctest.Test(t, func(t *testing.T) { err = w.runsTwice(t, policy, workers, before) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// runsTwice runs a job until nothing is left to do.
func (w *world) runsTwice(t *testing.T, policy plan.Policy, workers int, before photo) error {
	t.Helper()
	j := w.job(t, func(c *settings) {
		many(c)
		c.Policy, c.Workers = policy, workers
	})
	first := j.mustRun()
	if first.Failed+first.NotAttempted+first.OverLimit > 0 || first.Applied+first.Superseded != first.Planned {
		return fmt.Errorf("the first run: %+v", first)
	}
	if second := j.mustPlan(); second.Planned != 0 {
		return fmt.Errorf("the second run plans %d: %+v\n%s", second.Planned, j.rows(), before)
	}
	w.pass(time.Hour) // what was slow has come to its end
	if third := j.mustPlan(); third.Planned != 0 {
		return fmt.Errorf("an hour later %d are planned: %+v\n%s", third.Planned, j.rows(), before)
	}
	return before.harmless(w)
}

// photo is what must not get lost.
type photo struct {
	docs  map[string]plan.Document
	live  map[string]int // by key
	mails map[string]int
}

func (p photo) String() string { return fmt.Sprintf("%+v", p.docs) }

func (w *world) photo() photo {
	p := photo{docs: map[string]plan.Document{}, live: map[string]int{}, mails: maps.Clone(w.mails)}
	for _, d := range w.docs {
		p.docs[d.ID] = *d
		p.docs[d.ID] = plan.Document{ID: d.ID, Key: d.Key, Fields: maps.Clone(d.Fields), Void: d.Void, Locked: d.Locked}
		if !d.Void {
			p.live[d.Key]++
		}
	}
	return p
}

// harmless compares the world with what it was.
func (p photo) harmless(w *world) error {
	for _, d := range w.docs {
		was, known := p.docs[d.ID]
		switch o := w.orders[d.Key]; {
		case !known:
		case was.Locked && !was.Void && (d.Void || !maps.Equal(d.Fields, was.Fields)):
			return fmt.Errorf("the posted %s was changed: %+v", d.ID, *d)
		case d.Void && !was.Void && (o == nil || !o.Cancelled):
			return fmt.Errorf("%s was voided, and nobody cancelled it", d.ID)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.orders)) {
		if n := len(w.live(key)); n > max(1, p.live[key]) {
			return fmt.Errorf("%s has %d documents, and had %d", key, n, p.live[key])
		}
		if w.mails[key] > 1 {
			return fmt.Errorf("%d mails about %s", w.mails[key], key)
		}
	}
	return nil
}
