package reconcile

import (
	"context"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
)

// inVain begins the words about an action that changed nothing. It is how the next plan knows it
// again.
const inVain = "an earlier run did what there is to do, and nothing came of it: "

// doubt leaves to a person what the last plan did already, if everything it rests on is as it was
// then: to do it every night would look like success. fs are the findings behind a key, in their
// order. Once a version, a document or a field changes, it is done again.
func (p *planning) doubt(ctx context.Context, from string, fs []plan.Finding) error {
	acting := map[string]*plan.Finding{}
	last := ""
	for i := range fs {
		if fs[i].Action.Acts() {
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
		if f := acting[row.Key]; f != nil && vain(f, &row) {
			f.Action, f.Reason = plan.Ask, inVain+f.Reason
			f.Suggestion = program.Command("show", f.Key, "") + "; see that a coordinator runs and that Decide and Apply act on this state of the object, then do it by hand or let the object's version grow"
		}
	}
	return nil
}

// contested leaves to a person what is newer at the source and would be written over what a person is still to decide on, whichever job has
// found that (intake/D1).
func (p *planning) contested(ctx context.Context, fs []plan.Finding) error {
	for i := range fs {
		f := &fs[i]
		if f.Action != plan.Revise || len(f.Documents) == 0 {
			continue
		}
		found, err := p.found(ctx, f.Key)
		if err != nil {
			return err
		}
		if found.Open != nil {
			f.Action, f.Reason = plan.Ask, plan.ChangedThere+f.Reason
			f.Suggestion = "write ours over it, or change the object at the source so that it says what stands"
		}
	}
	return nil
}

// found is what comparisons left to people about a key.
func (r *Reconciler) found(ctx context.Context, key string) (intake.Found, error) {
	if r.hearing == nil {
		return intake.Found{}, nil
	}
	return r.hearing.Found(ctx, key)
}

// vain reports whether a row of the last plan was for the same as what is found now, and was done,
// or is known to be in vain since then.
func vain(now *plan.Finding, row *plan.Row) bool {
	was := row.Finding
	switch {
	case row.Outcome == plan.Applied:
	case was.Action == plan.Ask && strings.HasPrefix(was.Reason, inVain):
		was.Action = now.Action
	default:
		return false
	}
	return rests(now, &was)
}
