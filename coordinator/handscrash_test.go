package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// handed is one course of the canonical saga in which a person acts by hand.
type handed struct {
	name string
	step string // that goes wrong, until the person has mended what makes it
	f    fault
	// says is what the person does about a work that stands so; nil error also when there is
	// nothing to do.
	says func(op *coordinator.Operator, st *machine.State) error
	kind machine.Kind // of the record that must be in the chain
	// made is how many of a step are at their destination in the end.
	made map[string]int
}

var handeds = []handed{
	{
		"pause and resume", "invoice", fault{unsent: true},
		func(op *coordinator.Operator, st *machine.State) error {
			switch {
			case st.Status == saga.Paused:
				return op.Resume(context.Background(), st.ID, anna)
			case st.Step("invoice") != nil && st.Note == "": // it was not paused yet
				return op.Pause(context.Background(), st.ID, anna)
			default:
				return nil
			}
		},
		machine.KindPaused, map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1},
	},
	{
		"retry", "receipt", fault{refuse: true},
		func(op *coordinator.Operator, st *machine.State) error {
			if st.Reason == saga.ReasonAfterPivot {
				return op.Retry(context.Background(), st.ID, anna)
			}
			return nil
		},
		machine.KindRetried, map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1},
	},
	{
		"skip", "receipt", fault{refuse: true},
		func(op *coordinator.Operator, st *machine.State) error {
			if st.Reason == saga.ReasonAfterPivot {
				return op.Skip(context.Background(), st.ID, "", nil, anna)
			}
			return nil
		},
		machine.KindSkipped, map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 0},
	},
	{
		"rerun", "mark", fault{refuse: true},
		func(op *coordinator.Operator, st *machine.State) error {
			if st.Status == saga.Compensated {
				_, err := op.Rerun(context.Background(), st.ID, coordinator.OfRun(st.Revision), anna)
				return err
			}
			return nil
		},
		machine.KindRevised, map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1},
	},
}

// Whatever dies at whichever call or request while a person pauses, resumes, retries, skips or runs
// again: the work ends as it does when nothing dies, nothing is made twice, and the act is in its
// history.
func TestEveryBoundaryOfAHand(t *testing.T) {
	t.Parallel()
	for _, h := range handeds {
		for _, b := range blows {
			t.Run(h.name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				n := 1
				for hit := true; hit; n++ {
					synctest.Test(t, func(t *testing.T) {
						l := memory.New(nil)
						var mended atomic.Bool
						w := &world{plan: func(a arrival) fault {
							if a.step == h.step && a.dir == saga.Forward && !mended.Load() {
								return h.f
							}
							return fault{}
						}}
						tr := &trial{t: t, w: w, again: func() ledger.Ledger { return l }, gone: func(ledger.Ledger) {}}
						hit = tr.byHand(&h, b, n, &mended)
					})
					if t.Failed() {
						t.Fatalf("at number %d", n)
					}
				}
				t.Logf("%d boundaries", n-2)
			})
		}
	}
}

// byHand tells the course once, with the blow at its number. It reports whether the blow fell.
func (tr *trial) byHand(h *handed, b blow, n int, mended *atomic.Bool) (hit bool) {
	const work = "o1"
	for first := true; ; first = false {
		cfg := config{}
		struck := func(*process) bool { return false }
		if first {
			struck = b.strike(n, &cfg)
		}
		l := tr.again()
		tr.w.watch(l)
		p := boot(tr.t, l, tr.w, cfg)
		tr.start(p, work)
		tr.guide(p, h, work, mended)
		finished := !p.isDead()
		if err := p.halt(); err != nil && !struck(p) {
			tr.t.Error(err)
		}
		hit = hit || first && struck(p)
		if !finished {
			continue
		}
		tr.w.pending.Wait()
		for _, why := range tr.w.illegal {
			tr.t.Errorf("%s", why)
		}
		tr.handAudit(l, h, work)
		ledgertest.MustCheck(tr.t, l)
		return hit
	}
}

// guide lets the person act until the work is completed or the process is dead.
func (tr *trial) guide(p *process, h *handed, work string, mended *atomic.Bool) {
	until := time.Now().Add(10 * time.Minute)
	// 249: no process polls at that moment, so what the person sees is still so when the word is posted
	for op := coordinator.NewOperator(p.store); !p.isDead(); <-time.After(249 * time.Millisecond) {
		if time.Now().After(until) {
			tr.t.Fatalf("%s did not come to its end: %+v", work, maybe(p.store, work))
		}
		st := maybe(p.store, work)
		if st == nil {
			continue
		}
		if st.Status == saga.Completed {
			return
		}
		if st.Reason == saga.ReasonInDoubt {
			tr.person(p, st)
			continue
		}
		mended.Store(mended.Load() || st.Status == saga.Paused || !st.Status.Live())
		if err := h.says(op, st); err != nil && !overtaken(err) {
			tr.t.Fatalf("%s, in %s: %v", h.name, st.Status, err)
		}
	}
}

// overtaken reports whether the work had moved on when the person spoke.
func overtaken(err error) bool {
	return slices.ContainsFunc([]error{
		coordinator.ErrAtRest, coordinator.ErrNotPaused, coordinator.ErrUnderWay, coordinator.ErrNotInReview, coordinator.ErrFinished,
		coordinator.ErrNotEnded, coordinator.ErrChangesNothing,
	}, func(e error) bool { return errors.Is(err, e) })
}

// handAudit checks how the course ended.
func (tr *trial) handAudit(l ledger.Catalogue, h *handed, work string) {
	rs, err := l.History(tr.t.Context(), idOf(work))
	if err != nil || !slices.ContainsFunc(rs, func(r machine.Record) bool {
		return r.Kind == h.kind && (len(r.Signals) == 1 || r.Kind == machine.KindRevised)
	}) {
		tr.t.Errorf("nothing is on record of what was done by hand (%s): %v", h.kind, err)
	}
	for step, n := range h.made {
		ref, alive := work, 0
		if step == "customer" {
			ref = "c-" + work
		}
		for _, e := range tr.w.made(step, ref) {
			if !e.undone {
				alive++
			}
		}
		if alive != n {
			tr.t.Errorf("%d of %s are at their destination, want %d", alive, step, n)
		}
	}
	if n := len(tr.w.made("receipt", work)); n > h.made["receipt"] {
		tr.t.Errorf("%d mails", n)
	}
}
