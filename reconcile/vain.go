package reconcile

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
)

// inVain begins the words about an action that changed nothing. It is how the next plan knows it
// again.
const inVain = "an earlier run did what there is to do, and nothing came of it: "

// changedThere begins the words about a newer version that would be written over what a person is to decide on.
const changedThere = "it was changed at the destination, of which a person is to decide, and since then at the source: "

// doubt leaves to a person what the last plan did already, if everything it rests on is as it was
// then: to do it every night would look like success. fs are the findings behind a key, in their
// order. Once a version, a document or a field changes, it is done again. It leaves to a person, too, what is newer at the source
// than what the last plan asked a person about and nothing was said of: the newer version would be written over it.
func (p *planning) doubt(ctx context.Context, from string, fs []plan.Finding) error {
	asked := map[string]*plan.Finding{} // what the last plan asked about keys of which the source has a newer version
	acting := map[string]*plan.Finding{}
	last := ""
	for i := range fs {
		if fs[i].Do.Acts() {
			acting[fs[i].Key], last = &fs[i], fs[i].Key
		}
	}
	if len(acting) == 0 || p.last == (plan.Ref{}) {
		return nil
	}
	for row, err := range plan.Each(ctx, p.plans, plan.FindingQuery{Plan: p.last, After: from}) {
		if err != nil {
			return err
		}
		if row.Key > last {
			break
		}
		f := acting[row.Key]
		if f != nil && p.contested(f, &row) {
			asked[f.Key] = &row.Finding
		}
		if f != nil && vain(f, &row) {
			f.Do, f.Why = plan.Ask, inVain+f.Why
			f.Propose = program.Command("show", f.Key, "") + "; see that a coordinator runs and that Decide and Apply act on this state of the object, then do it by hand or let the object's version grow"
		}
	}
	return p.stillAsked(ctx, acting, asked)
}

// contested reports whether a newer version would be written over what the last plan left to a person. A plan that left too much, or was
// refused, holds nothing (intake/D3).
func (p *planning) contested(now *plan.Finding, row *plan.Row) bool {
	was := &row.Finding
	asked := was.Class == plan.Diverged || was.Class == plan.Stale && strings.HasPrefix(was.Why, changedThere)
	return !p.lets && now.Class == plan.Stale && now.Do == plan.Revise && len(now.Documents) > 0 && was.Do == plan.Ask && asked
}

// stillAsked leaves to a person those of which none has said anything.
func (p *planning) stillAsked(ctx context.Context, now, asked map[string]*plan.Finding) error {
	if len(asked) == 0 {
		return nil
	}
	ds, err := p.drifts.Decisions(ctx, plan.DecisionQuery{Job: p.name, Keys: slices.Sorted(maps.Keys(asked)), Limit: len(asked)})
	if err != nil {
		return err
	}
	for i := range ds {
		if d := &ds[i]; d.Verdict != plan.Reopen && d.About(asked[d.Finding.Key]) {
			delete(asked, d.Finding.Key)
		}
	}
	for key := range asked {
		f := now[key]
		f.Do, f.Why = plan.Ask, changedThere+f.Why
		f.Propose = "write ours over it, or change the object at the source so that it says what stands"
	}
	return nil
}

// vain reports whether a row of the last plan was for the same as what is found now, and was done,
// or is known to be in vain since then.
func vain(now *plan.Finding, row *plan.Row) bool {
	was := row.Finding
	switch {
	case row.Outcome == plan.Applied:
	case was.Do == plan.Ask && strings.HasPrefix(was.Why, inVain):
		was.Do = now.Do
	default:
		return false
	}
	return rests(now, &was)
}
