package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/amends-dev/amends/internal/plan"
)

// brief is as much of a plan's id as people need.
func brief(id string) string { return id[:min(8, len(id))] }

// planOf reads a plan by its id, or the beginning of one.
func planOf(ctx context.Context, d plan.Plans, id string) (plan.Stored, error) {
	p, err := d.Plan(ctx, id)
	if errors.Is(err, plan.ErrNotFound) {
		return p, &failure{
			exit: exitNotFound, what: fmt.Sprintf("there is no plan %q, or several begin so", id),
			next: fmt.Sprintf("a job keeps its newest %d plans; look with: amends reconcile runs", plan.Kept),
		}
	}
	return p, err
}

// writePlan writes a plan as text or JSON. Equal plans are equal bytes: it tells nothing of when or
// by whom.
func (a *app) writePlan(ctx context.Context, d plan.Plans, p *plan.Stored) error {
	if a.json {
		return plan.WriteJSON(&escaping{w: a.out}, API, &p.Plan, findings(plan.Each(ctx, d, plan.FindingQuery{Plan: p.Ref()})))
	}
	return plan.WriteText(a.out, &p.Plan, func(c plan.Class, n int) ([]plan.Finding, error) {
		rows, err := d.Findings(ctx, plan.FindingQuery{Plan: p.Ref(), Class: c, Limit: n})
		fs := make([]plan.Finding, len(rows))
		for i := range rows {
			fs[i] = rows[i].Finding
		}
		return fs, err
	})
}

// findings are rows without what became of them.
func findings(rows iter.Seq2[plan.Row, error]) iter.Seq2[plan.Finding, error] {
	return func(yield func(plan.Finding, error) bool) {
		for r, err := range rows {
			if !yield(r.Finding, err) {
				return
			}
		}
	}
}

// acts is how many of its findings a plan wants to do something about by itself.
func acts(p *plan.Plan) int64 {
	return p.Count(func(t plan.Tally) bool { return t.Do.Acts() })
}

// asks is how many of its findings are for a person.
func asks(p *plan.Plan) int64 {
	return p.Count(func(t plan.Tally) bool { return t.Do == plan.Ask || t.Do == plan.Halt })
}

// nextOfPlan is what a person can do with a plan.
func (a *app) nextOfPlan(p *plan.Stored) string {
	apply := fmt.Sprintf("amends reconcile apply %s %s --reason WHY%s", quote(p.Job), brief(p.ID), dbFlag(a.db))
	switch {
	case p.Refused != "":
		return "nothing of it can be done, until what it was refused for is mended"
	case acts(&p.Plan) == 0 && asks(&p.Plan) > 0:
		return "nothing of it is done by itself; what is for a person: amends reconcile show " + brief(p.ID) + dbFlag(a.db)
	case acts(&p.Plan) == 0:
		return "there is nothing to do"
	case len(p.Withheld) > 0 && p.Approved.Name == "":
		return "to do what is within the bounds: " + apply + "; what is over them, too: the same with --approve"
	}
	return "to do it: " + apply
}

// approval describes who lifted the bounds for a plan, when and why. It is "" while they stand.
func approval(p *plan.Stored) string {
	if p.Approved.Name == "" {
		return ""
	}
	return fmt.Sprintf("by %s at %s: %s", p.Approved.Name, iso(p.When), p.Approved.Reason)
}

// printRow writes one finding with everything that is known about it.
func (a *app) printRow(r *plan.Row) {
	a.paragraph("", r.Key)
	a.paragraph("  ", fmt.Sprintf("%s, %s: %s", r.Class, r.Do, r.Why))
	if len(r.Documents) > 0 {
		a.paragraph("  ", "documents: "+strings.Join(r.Documents, ", "))
	}
	if r.Revision != "" || r.Applied != "" {
		a.paragraph("  ", fmt.Sprintf("version: %s at the source, %s in the ledger", orNone(r.Revision), orNone(r.Applied)))
	}
	for _, c := range r.Changes {
		a.paragraph("  - ", c.Field+": "+c.Is)
		a.paragraph("  + ", c.Field+": "+c.Want)
	}
	if r.Propose != "" {
		a.paragraph("  > ", r.Propose)
	}
	if words := became(r); words != "" {
		a.paragraph("  ", words)
	}
}

func orNone(revision string) string {
	if revision == "" {
		return "none"
	}
	return revision
}

// became says what became of a finding, "" for nothing yet.
func became(r *plan.Row) string {
	words := map[plan.Outcome]string{
		plan.Applied:    "applied",
		plan.Superseded: "superseded: it was not so any more when it was its turn, and nothing was done",
		plan.Failed:     "failed",
		plan.Withheld:   "withheld: it is over a bound",
		plan.ForPerson:  "for a person",
		plan.Pending:    "",
	}[r.Outcome]
	if r.Error != "" {
		words += ": " + r.Error
	}
	if words != "" && !r.At.IsZero() {
		words += ", at " + iso(r.At)
	}
	return words
}
