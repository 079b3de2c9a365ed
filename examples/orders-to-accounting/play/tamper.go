package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// found is what the reconciler says about something that people did in the books.
type found struct {
	outside.Done
	Class plan.Class `json:"class"` // "": nothing was found
}

// tamper is the last scene: everything is compared, and nothing should be found. Then people change
// invoices in the books, and everything is compared again.
func (p *play) tamper(ctx context.Context) error {
	if p.deaf {
		return nil // there are no sweeps, so nothing is compared
	}
	for {
		last, applied, err := p.reconcile(ctx)
		if err != nil {
			return err
		}
		p.Repaired += applied
		if p.Reconciled = last; applied == 0 {
			break
		}
		if _, _, err := p.person.review(ctx); err != nil { // and until what was begun has ended
			return err
		}
	}
	if err := p.silence(ctx); err != nil {
		return err
	}
	if !p.tampers {
		return nil
	}
	var err error
	if p.Tampered, err = p.amends.world.Tamper(min(2, p.orders/30)); err != nil {
		return err
	}
	if err := settle(ctx, p.amends.procs.place); err != nil {
		return err
	}
	if _, _, err := p.reconcile(ctx); err != nil {
		return err
	}
	if err := p.classify(ctx); err != nil {
		return err
	}
	return p.decide(ctx)
}

// verdicts is what the operator decides on what people did in the books: nothing of it was agreed with a customer.
var verdicts = map[plan.Class]plan.Verdict{plan.Diverged: plan.Ours, plan.PhantomDone: plan.Remake, plan.Duplicate: plan.Keep}

// decide has the operator decide on each finding about a deed, as amends drift does, until nothing differs any more. What met a fault is found, and decided,
// again.
func (p *play) decide(ctx context.Context) error {
	d := desk.New(p.records, "")
	for range 10 {
		list, err := d.Drifts(ctx, &desk.DriftIn{Job: p.job.All, Times: 1, Limit: desk.Limit{N: 1000}})
		if err != nil {
			return err
		}
		p.Undecided = nil
		for _, f := range list.Items {
			if !slices.ContainsFunc(p.Tampered, func(done outside.Done) bool { return done.Reference == f.Key && classes[done.Deed] != "" }) {
				continue
			}
			p.Undecided = append(p.Undecided, f.Key+": "+string(f.Class))
			v := verdicts[f.Class]
			if v == "" { // its instance is not done with it
				continue
			}
			in := &desk.DecideIn{Verdict: string(v), Key: f.Key, Finding: f.Mark, RequestIn: desk.RequestIn{
				Job: p.job.All, By: desk.By{Actor: p.person.by.Name, Reason: "nothing was agreed with the customer"}, Wait: desk.Patience, NoWait: true,
			}}
			if v == plan.Keep {
				in.Document = f.Documents[0] // the oldest, which the sync made
			}
			if _, err := d.Decide(ctx, in); err != nil {
				return err
			}
			p.Decisions++
		}
		if len(p.Undecided) == 0 {
			return nil
		}
		if err := p.carriedOut(ctx); err != nil {
			return err
		}
		if _, _, err := p.reconcile(ctx); err != nil {
			return err
		}
	}
	return nil
}

// carriedOut waits until something became of every decision, and what was begun for them has ended.
func (p *play) carriedOut(ctx context.Context) error {
	for {
		open, err := p.records.Decisions(ctx, plan.DecisionQuery{Job: p.job.All, Open: true, Limit: 1})
		if err != nil {
			return err
		}
		if len(open) == 0 {
			break
		}
		if _, _, err := p.reconcile(ctx); err != nil { // what met a fault before it was tried is carried out by the next run
			return err
		}
	}
	_, _, err := p.person.review(ctx)
	return err
}

// settle waits until what was sent has happened, visibly, or never will.
func settle(ctx context.Context, at Place) error { return outside.Pause(ctx, at.Answer+at.Settle) }

// reconcile asks for comparisons of everything until one is whole, and returns what came of it, and
// how much all of them have done: here one request in seven meets a fault, and what could not be
// looked at is left to the next run.
func (p *play) reconcile(ctx context.Context) (last schedule.Outcome, applied int, err error) {
	for {
		run, err := schedule.Request(ctx, p.records, p.job.All, "", saga.Actor{Name: p.person.by.Name, Reason: "the end of the example"})
		if err != nil {
			return last, applied, err
		}
		if run, err = p.ended(ctx, run); err != nil {
			return last, applied, err
		}
		last, applied = run.Outcome, applied+int(run.Applied)
		switch run.Result {
		case schedule.OK, schedule.Refused:
			return last, applied, nil
		case schedule.Partial:
		default:
			return last, applied, fmt.Errorf("the comparison %s: %s%s", run.Result, run.Error, run.Note)
		}
	}
}

// ended waits for the end of a run.
func (p *play) ended(ctx context.Context, asked schedule.RunRow) (schedule.RunRow, error) {
	for {
		run, err := p.records.Run(ctx, asked.Job, asked.Number)
		if err != nil || !run.Open() {
			return run, err
		}
		if all, err := p.amends.procs.done(); err != nil || all {
			return run, errors.Join(errors.New("the sync ended before the comparison did"), err)
		}
		if err := outside.Pause(ctx, 100*time.Millisecond); err != nil {
			return run, err
		}
	}
}

// silence notes the orders that were deleted in the shop without a word that we still know of: no
// webhook told it, or the ledger that had heard it is lost. That an object is not there proves
// little, so nothing is undone by itself; it is listed for a person.
func (p *play) silence(ctx context.Context) error {
	if !p.sweepsAlone && !p.loseLedger {
		return nil
	}
	drifts, err := p.drifts(ctx)
	for key, class := range drifts {
		if order, ours := strings.CutPrefix(key, outside.RefPrefix); ours && class == plan.Orphan && p.amends.config.Deleted(order) {
			p.Silent = append(p.Silent, key)
		}
	}
	slices.Sort(p.Silent)
	return err
}

// drifts is what the latest comparison has found, by keys.
func (p *play) drifts(ctx context.Context) (map[string]plan.Class, error) {
	drifts, err := p.records.Drifts(ctx, plan.DriftQuery{Job: p.job.All, Limit: 10_000})
	classes := map[string]plan.Class{}
	for i := range drifts {
		classes[drifts[i].Key] = drifts[i].Class
	}
	return classes, err
}

// classify looks up what was found about each deed, and what was found beside them.
func (p *play) classify(ctx context.Context) error {
	classes, err := p.drifts(ctx)
	if err != nil {
		return err
	}
	for _, done := range p.Tampered {
		p.Found = append(p.Found, found{done, classes[done.Reference]})
		delete(classes, done.Reference)
	}
	for key, class := range classes {
		if !slices.Contains(p.Silent, key) {
			p.Beside = append(p.Beside, key+": "+string(class))
		}
	}
	slices.Sort(p.Beside)
	return nil
}
