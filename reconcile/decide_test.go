package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

var decider = saga.Actor{Name: "anna", Reason: "she looked"}

// void is the world's [Destination.Void].
func (w *world) void(_ context.Context, d plan.Document) error {
	defer w.lock()()
	if err := w.write(); err != nil {
		return err
	}
	for _, mine := range w.docs {
		if mine.ID == d.ID {
			mine.Void = true
		}
	}
	return nil
}

// decide decides on what was found about a key.
func (j *job) decide(key string, v plan.Verdict, change ...func(*plan.Decision)) {
	j.t.Helper()
	ds, err := j.store.Drifts(j.t.Context(), plan.DriftQuery{Job: "orders", Key: key, Limit: 1})
	if err != nil || len(ds) != 1 {
		j.t.Fatalf("%s has no finding: %v, %v", key, ds, err)
	}
	d := plan.Decision{Finding: ds[0].Finding, Verdict: v, By: decider}
	for _, c := range change {
		c(&d)
	}
	if err := j.store.Decide(j.t.Context(), "orders", []plan.Decision{d}); err != nil {
		j.t.Fatal(err)
	}
}

// reopen says that what was decided does not hold any more.
func (j *job) reopen(key string) {
	j.t.Helper()
	d := j.became(key)
	if err := j.store.Decide(j.t.Context(), "orders", []plan.Decision{{Finding: d.Finding, Verdict: plan.Reopen, By: decider}}); err != nil {
		j.t.Fatal(err)
	}
}

func keeping(id string) func(*plan.Decision) { return func(d *plan.Decision) { d.Keep = id } }

// became is what became of a decision.
func (j *job) became(key string) plan.Decision {
	j.t.Helper()
	ds, err := j.store.Decisions(j.t.Context(), plan.DecisionQuery{Job: "orders", Keys: []string{key}})
	if err != nil || len(ds) != 1 {
		j.t.Fatalf("%s was not decided on: %v, %v", key, ds, err)
	}
	return ds[0]
}

// What people do to the books and what an old script left, by what is decided about it. Each is on an order of its own; the first of every pair of
// keys is as it should be, and stays so.
var decisions = []struct {
	name   string
	class  plan.Class
	happen func(w *world, key string)
	decide plan.Verdict
	want   string // what stands in the books then: totals of live documents
	works  saga.Status
}{
	{"an edit is kept", plan.Diverged, func(w *world, key string) { w.done(key); w.live(key)[0].Fields["total"] = "9.00" }, plan.Accept, "9.00", saga.Completed},
	{"an edit is written over", plan.Diverged, func(w *world, key string) { w.done(key); w.live(key)[0].Fields["total"] = "9.00" }, plan.Ours, "10.00", saga.Completed},
	{"deleted on purpose", plan.PhantomDone, func(w *world, key string) { w.done(key); w.live(key)[0].Void = true }, plan.Accept, "", saga.Completed},
	{"deleted by mistake", plan.PhantomDone, func(w *world, key string) { w.done(key); w.live(key)[0].Void = true }, plan.Remake, "10.00", saga.Completed},
	{"an old one that differs is kept", plan.AdoptMismatch, func(w *world, key string) { w.sold(key); w.make(key, "9.00", "").Intact = false }, plan.Accept, "9.00", saga.Completed},
	{"an old one that differs is written over", plan.AdoptMismatch, func(w *world, key string) { w.sold(key); w.make(key, "9.00", "").Intact = false }, plan.Ours, "10.00", saga.Completed},
	{"two old ones", plan.Duplicate, func(w *world, key string) { w.sold(key); w.make(key, "10.00", ""); w.make(key, "10.00", "") }, plan.Keep, "10.00", saga.Completed},
	{"one of ours was copied", plan.Duplicate, func(w *world, key string) { w.done(key); w.make(key, "10.00", "") }, plan.Keep, "10.00", saga.Completed},
	{"an old one of an order that is cancelled", plan.Orphan, func(w *world, key string) { w.sold(key); w.orders[key].Cancelled = true; w.make(key, "10.00", "") }, plan.Void, "", ""},
	{"it is undone, and a document came since", plan.Orphan, func(w *world, key string) {
		w.sold(key)
		w.works[key] = &plan.Known{Works: 1, Status: saga.Compensated, Revision: "1"}
		w.make(key, "10.00", "")
	}, plan.Void, "", saga.Compensated},
	{"posted, and cancelled since", plan.SourceGone, func(w *world, key string) {
		w.done(key)
		w.live(key)[0].Locked = true
		w.orders[key] = &order{Version: 2, Total: "10.00", Cancelled: true}
	}, plan.Accept, "10.00", saga.Completed},
	{"cancelled at the version that was applied", plan.SourceGone, func(w *world, key string) { w.done(key); w.orders[key].Cancelled = true }, plan.Void, "", saga.Compensated},
}

// Every finding is decided by a verdict: what was decided is so in the books then, once, and the comparison behind that finds nothing. What was not decided is
// left alone, and a run that is killed at any of its writes goes on.
func TestEveryFindingIsDecided(t *testing.T) {
	t.Parallel()
	const never = 1000
	for n := range 18 {
		kill := n
		if n == 17 {
			kill = never
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			store := mortal{memory.New(nil), w}
			wired := func(c *settings) { many(c); c.Void = w.void; c.Workers = 4 }
			for i, d := range decisions {
				w.done(keyOf(2 * i))
				d.happen(w, keyOf(2*i+1))
			}
			j := w.jobOver(t, store, wired)
			j.mustRun()
			for i, d := range decisions {
				key := keyOf(2*i + 1)
				if r := j.row(key); r.Class != d.class || !slices.Contains(r.Verdicts(), d.decide) {
					t.Fatalf("%s: found %s, which takes %s", d.name, r.Class, r.Verdicts())
				}
				keep := ""
				if d.decide == plan.Keep {
					keep = w.live(key)[0].ID
				}
				j.decide(key, d.decide, keeping(keep))
			}
			before := len(w.docs)
			ctx, end := context.WithCancel(t.Context())
			w.onWrite = func() error {
				if kill--; kill < 0 {
					w.frozen = errors.New("the process was killed")
					end()
				}
				return w.frozen
			}
			_, err := j.CarryOutDecisions(ctx)
			if lives := w.frozen == nil; lives && err != nil {
				t.Fatal(err)
			}
			end()
			w.frozen, w.onWrite = nil, nil
			j = w.jobOver(t, store, wired)
			j.must(j.CarryOutDecisions(t.Context()))
			j.mustRun()
			for _, r := range j.rows() { // the source still wants one that is undone, and that stays so
				if r.Class == plan.Missing {
					j.decide(r.Key, plan.Accept)
				}
			}
			if rep := j.mustRun(); rep.NeedsReview != 0 || rep.Planned != 0 { // what a kill left is decided, or adopted, by the run before
				t.Errorf("killed at write %d: the comparison behind that: %+v\n%+v", n, rep, j.rows())
			}
			for i, d := range decisions {
				key := keyOf(2*i + 1)
				var totals []string
				for _, doc := range w.live(key) {
					totals = append(totals, doc.Fields["total"])
				}
				if got := strings.Join(totals, ", "); got != d.want {
					t.Errorf("killed at write %d: %s: the books say %q, want %q (%+v)", n, d.name, got, d.want, j.became(key))
				}
				if k := w.works[key]; d.works == "" && k != nil || d.works != "" && (k == nil || k.Status != d.works) {
					t.Errorf("killed at write %d: %s: the instance is %+v", n, d.name, k)
				}
				if b := j.became(key); n == 17 && b.Outcome != plan.Applied && b.Acts() {
					t.Errorf("%s: %+v", d.name, j.became(key))
				}
				if k := w.works[keyOf(2*i)]; k.Revision != "1" || len(w.live(keyOf(2*i))) != 1 || w.mails[keyOf(2*i)] != 1 {
					t.Errorf("killed at write %d: what was as it should be is %+v", n, k)
				}
			}
			if made := len(w.docs) - before; made > 1 {
				t.Errorf("killed at write %d: %d documents were made, and one was deleted by mistake", n, made)
			}
		})
	}
}

// mortal is a store of a process that is killed: from then on it stores nothing.
type mortal struct {
	*memory.DB

	world *world
}

func (m mortal) Settled(ctx context.Context, job string, ds []plan.Decision) error {
	if err := m.world.frozen; err != nil {
		return err
	}
	return m.DB.Settled(ctx, job, ds)
}

// A decision holds for what was shown: where the document or its object changes, or the time is over that was said, the finding is there again; and nothing is
// carried out on what is not so any more. Another decision takes its place.
func TestADecisionIsOnWhatWasShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		edited, hidden, late := keyOf(1), keyOf(2), keyOf(3)
		for _, key := range []string{edited, hidden, late} {
			w.done(key)
			w.live(key)[0].Fields["total"] = "9.00"
		}
		j := w.job(t, many)
		finds := func(what string, keys ...string) {
			t.Helper()
			j.mustRun()
			var found []string
			for _, r := range j.rows() {
				if r.Action == plan.Ask {
					found = append(found, r.Key)
				}
			}
			if !slices.Equal(found, keys) {
				t.Errorf("%s: found %s, want %s", what, found, keys)
			}
		}
		finds("nothing is decided", edited, hidden, late)
		j.decide(edited, plan.Accept)
		j.decide(hidden, plan.Hide, func(d *plan.Decision) { d.Until = time.Now().Add(time.Hour) })
		j.decide(late, plan.Ours)
		w.live(late)[0].Fields["total"] = "8.00"
		if rep := j.must(j.CarryOutDecisions(t.Context())); rep.Superseded != 1 || w.live(late)[0].Fields["total"] != "8.00" {
			t.Errorf("it changed since: %+v, %+v", rep, j.became(late))
		}
		finds("one changed since", late)
		j.decide(late, plan.Ours)
		if rep := j.must(j.CarryOutDecisions(t.Context())); rep.Applied != 1 {
			t.Errorf("decided again: %+v", rep)
		}
		if rep := j.must(j.CarryOutDecisions(t.Context())); rep.Planned != 0 {
			t.Errorf("it was carried out already: %+v", rep)
		}
		finds("all is decided")
		w.pass(time.Hour)
		finds("the time is over", hidden)
		w.live(edited)[0].Fields["total"] = "7.00"
		finds("it is edited again", edited, hidden)
		j.decide(edited, plan.Accept)
		w.changed(edited, "12.00")
		finds("its object has changed", hidden)
		if total := w.live(edited)[0].Fields["total"]; total != "12.00" {
			t.Errorf("a newer version was not written over what was accepted: %s", total)
		}
		w.live(edited)[0].Fields["total"] = "7.00"
		finds("it is edited once more", edited, hidden)
		j.decide(edited, plan.Accept)
		finds("accepted", hidden)
		j.reopen(edited)
		finds("opened again", edited, hidden)
	})
}

// A decision is on its class, too: what has come to be another finding, by another person's word, is left alone though the documents are the same. While its
// instance is at work a decision waits, and one that could not be looked at keeps no other from its turn.
func TestADecisionWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		undone, busy := keyOf(98), keyOf(99)
		for n := range 8 {
			w.done(keyOf(n))
			w.live(keyOf(n))[0].Fields["total"] = "9.00"
		}
		for _, key := range []string{undone, busy} {
			w.done(key)
			w.live(key)[0].Void = true
		}
		j := w.job(t, many)
		j.mustRun()
		for n := range 8 {
			j.decide(keyOf(n), plan.Ours)
			w.getFails[keyOf(n)] = errors.New("500")
		}
		j.decide(undone, plan.Remake)
		j.decide(busy, plan.Remake)
		w.works[undone].Status = saga.Compensated
		w.works[busy].Status = saga.Running
		if rep := j.must(j.CarryOutDecisions(t.Context())); rep.Superseded != 1 || rep.NotAttempted != 9 || len(w.live(undone)) != 0 || j.became(busy).Outcome != plan.Pending {
			t.Errorf("%+v; %+v; %+v", rep, j.became(undone), j.became(busy))
		}
		clear(w.getFails)
		w.works[busy].Status = saga.Completed
		if rep := j.must(j.CarryOutDecisions(t.Context())); rep.Applied != 9 || rep.NotAttempted != 0 || len(w.live(busy)) != 1 {
			t.Errorf("%+v; %+v", rep, j.became(busy))
		}
		if rep := j.must(j.CarryOutDecisions(t.Context())); rep.Planned != 0 {
			t.Errorf("%+v", rep)
		}
	})
}

// Differences that a person has accepted are no mapping that went wrong, however many they are.
func TestWhatIsAcceptedRefusesNoPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 30 {
			w.done(keyOf(n))
		}
		j := w.job(t, many)
		for n := range 12 {
			w.live(keyOf(n))[0].Fields["total"] = "9.00"
		}
		j.mustRun()
		for n := range 12 {
			j.decide(keyOf(n), plan.Accept)
		}
		for n := 12; n < 20; n++ {
			w.live(keyOf(n))[0].Fields["total"] = "9.00"
		}
		w.sold(keyOf(40))
		if rep := j.mustRun(); rep.Applied != 1 || rep.NeedsReview != 8 {
			t.Errorf("%+v", rep)
		}
	})
}
