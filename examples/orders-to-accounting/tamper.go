package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/world"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// found is what the reconciler says about something that people did in the books.
type found struct {
	world.Done
	Class plan.Class `json:"class"` // "": nothing was found
}

// tamper is the last scene: everything is compared, and nothing should be found. Then people lay hands on the books,
// and everything is compared again.
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
	if p.Tampered, err = p.amends.world.Tamper(ctx); err != nil {
		return err
	}
	if err := settle(ctx, p.amends.procs.place); err != nil {
		return err
	}
	if _, _, err := p.reconcile(ctx); err != nil {
		return err
	}
	return p.classify(ctx)
}

// reconcile asks for comparisons of everything until one is whole, and returns what came of it, and how much all of them
// have done: here one request in seven meets a fault, and what could not be looked at is left to the next run.
func (p *play) reconcile(ctx context.Context) (last schedule.Outcome, applied int, err error) {
	for {
		run, err := schedule.Request(ctx, p.records.journal, jobAll, schedule.Ask{By: p.person.by.Name, Why: "the end of the example"})
		if err != nil {
			return last, applied, err
		}
		if run, err = p.ended(ctx, run); err != nil {
			return last, applied, err
		}
		last, applied = run.Outcome, applied+int(run.Applied)
		switch run.Verdict {
		case schedule.OK, schedule.Refused:
			return last, applied, nil
		case schedule.Partial:
		default:
			return last, applied, fmt.Errorf("the comparison %s: %s%s", run.Verdict, run.Error, run.Note)
		}
	}
}

// ended waits for the end of a run.
func (p *play) ended(ctx context.Context, asked schedule.RunRow) (schedule.RunRow, error) {
	for {
		run, err := p.records.journal.Run(ctx, asked.Job, asked.Number)
		if err != nil || !run.Open() {
			return run, err
		}
		if all, err := p.amends.procs.done(); err != nil || all {
			return run, errors.Join(errors.New("the sync ended before the comparison did"), err)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return run, err
		}
	}
}

// silence notes the orders that were deleted in the shop without a word that we still know of: no webhook told it, or
// the ledger that had heard it is lost. That an object is not there proves little, so nothing is undone by itself; it
// is listed for a person.
func (p *play) silence(ctx context.Context) error {
	if !p.sweepsAlone && !p.loseLedger {
		return nil
	}
	drifts, err := p.drifts(ctx)
	for key, class := range drifts {
		if order, ours := strings.CutPrefix(key, mark); ours && class == plan.Orphan && p.amends.config.Deleted(order) {
			p.Silent = append(p.Silent, key)
		}
	}
	slices.Sort(p.Silent)
	return err
}

// drifts is what the latest comparison has found, by keys.
func (p *play) drifts(ctx context.Context) (map[string]plan.Class, error) {
	drifts, err := p.records.journal.Drifts(ctx, plan.DriftQuery{Job: jobAll, Limit: 10_000})
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

// lose is the disaster: every process dies, the ledger is deleted with all that was heard, and what is known has to be
// learned again from the shop and the books.
func (p *play) lose(ctx context.Context) error {
	if err := p.amends.procs.crash(); err != nil {
		return err
	}
	c, err := count(ctx, p.records.ledger)
	if err != nil {
		return err
	}
	if err := settle(ctx, p.amends.procs.place); err != nil { // what was on its way has happened, or never will
		return err
	}
	if err := p.records.lose(ctx); err != nil {
		return err
	}
	if err := p.rebuild(ctx); err != nil {
		return err
	}
	p.Lost = &loss{Works: c.works}
	if p.Lost.Adopted, p.lost, err = adopted(ctx, p.records.ledger); err != nil {
		return err
	}
	p.Lost.Unconfirmed, p.quiet = len(p.lost), time.Time{}
	return nil
}

// loss is what became of the works of a ledger that was deleted.
type loss struct {
	Works       int `json:"works"`       // in the ledger when it was deleted
	Adopted     int `json:"adopted"`     // that the rebuilt one knew at once, from shop and books
	Unconfirmed int `json:"unconfirmed"` // of those, with a receipt of unknown outcome
}

// rebuild runs the process that rebuilds the ledger, to its end. It is killed once on the way.
func (p *play) rebuild(ctx context.Context) error {
	p.amends.procs.place.Lost = time.Now()
	procs := &supervisor{role: "rebuild", place: p.amends.procs.place, log: p.amends.procs.log, once: true}
	if err := procs.start(ctx, 1); err != nil {
		return err
	}
	killAfter := time.Duration(p.amends.random.IntN(400)) * time.Millisecond
	for began := time.Now(); ; {
		if ended, err := procs.done(); err != nil || ended {
			return errors.Join(err, procs.stop())
		}
		if killAfter > 0 && time.Since(began) > killAfter {
			procs.kill(p.amends.random)
			killAfter = 0
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return errors.Join(err, procs.stop())
		}
	}
}

// adopted counts the works of a rebuilt ledger, and names those whose receipt has an
// unknown outcome: it counts as sent.
func adopted(ctx context.Context, l ledger.Catalogue) (works int, unconfirmed []string, err error) {
	c, err := count(ctx, l)
	if err != nil {
		return 0, nil, err
	}
	heads, err := ledger.Heads(ctx, l, ledger.Filter{Saga: sagaName, Unconfirmed: true, Limit: max(c.works, 1)})
	for i := range heads {
		unconfirmed = append(unconfirmed, heads[i].ID.Work)
	}
	return c.works, unconfirmed, err
}
