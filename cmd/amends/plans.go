package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/amends-dev/amends/reconcile/drift"
)

// brief is as much of a plan's id as people need.
func brief(id string) string { return id[:min(8, len(id))] }

// planOf reads a plan by its id, or the beginning of one.
func planOf(ctx context.Context, d drift.Plans, id string) (drift.Stored, error) {
	p, err := d.Plan(ctx, id)
	if errors.Is(err, drift.ErrNotFound) {
		return p, &failure{
			exit: exitNotFound, what: fmt.Sprintf("there is no plan %q, or several begin so", id),
			next: fmt.Sprintf("a job keeps its newest %d plans; look with: amends reconcile runs", drift.Kept),
		}
	}
	return p, err
}

// writePlan writes a plan as text or JSON. Equal plans are equal bytes: it tells nothing of when or by whom.
func (a *app) writePlan(ctx context.Context, d drift.Plans, p *drift.Stored) error {
	if a.json {
		return drift.WriteJSON(a.out, &p.Plan, findings(drift.Each(ctx, d, drift.FindingQuery{Plan: p.Ref()})))
	}
	return drift.WriteText(a.out, &p.Plan, func(c drift.Class, n int) ([]drift.Finding, error) {
		rows, err := d.Findings(ctx, drift.FindingQuery{Plan: p.Ref(), Class: c, Limit: n})
		fs := make([]drift.Finding, len(rows))
		for i := range rows {
			fs[i] = rows[i].Finding
		}
		return fs, err
	})
}

// findings are rows without what became of them.
func findings(rows iter.Seq2[drift.Row, error]) iter.Seq2[drift.Finding, error] {
	return func(yield func(drift.Finding, error) bool) {
		for r, err := range rows {
			if !yield(r.Finding, err) {
				return
			}
		}
	}
}

// acts is how many of its findings a plan wants to do something about by itself.
func acts(p *drift.Plan) int64 {
	return p.Count(func(t drift.Tally) bool { return t.Do.Acts() })
}

// asks is how many of its findings are for a person.
func asks(p *drift.Plan) int64 {
	return p.Count(func(t drift.Tally) bool { return t.Do == drift.Ask || t.Do == drift.Halt })
}

// nextOfPlan is what a person can do with a plan.
func (a *app) nextOfPlan(p *drift.Stored) string {
	apply := fmt.Sprintf("amends reconcile apply %s %s --reason WHY%s", quote(p.Job), brief(p.ID), dbFlag(a.db))
	switch {
	case p.Refused != "":
		return "nothing of it can be done, until what it was refused for is mended"
	case acts(&p.Plan) == 0 && asks(&p.Plan) > 0:
		return "nothing of it is done by itself; what is for a person: amends reconcile show " + brief(p.ID) + dbFlag(a.db)
	case acts(&p.Plan) == 0:
		return "there is nothing to do"
	case len(p.Withheld) > 0 && p.Approved.Actor == "":
		return "to do what is within the bounds: " + apply + "; what is over them, too: the same with --approve"
	}
	return "to do it: " + apply
}

// approval says who lifted the bounds for a plan, "" when nobody has.
func approval(p *drift.Stored) string {
	if p.Approved.Actor == "" {
		return ""
	}
	return fmt.Sprintf("by %s at %s: %s", p.Approved.Actor, iso(p.When), p.Approved.Reason)
}

// printRow writes one finding with everything that is known about it.
func (a *app) printRow(r *drift.Row) {
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
func became(r *drift.Row) string {
	words := map[drift.Outcome]string{
		drift.Applied:    "applied",
		drift.Superseded: "superseded: it was not so any more when it was its turn, and nothing was done",
		drift.Failed:     "failed",
		drift.Withheld:   "withheld: it is over a bound",
		drift.ForPerson:  "for a person",
		drift.Pending:    "",
	}[r.Outcome]
	if r.Error != "" {
		words += ": " + r.Error
	}
	if words != "" && !r.At.IsZero() {
		words += ", at " + iso(r.At)
	}
	return words
}
