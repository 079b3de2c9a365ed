package repair

import (
	"context"

	"github.com/amends-dev/amends/reconcile/drift"
)

// canaries does the first few actions of every kind of which there are many, and reads back what came of them. Where
// that is not as it should be, nothing more of that kind is done.
func (a *applying) canaries(ctx context.Context) error {
	for _, t := range a.plan.Tallies {
		if !t.Do.Acts() || t.Count <= int64(a.bounds.CanaryFrom) || a.withheld[t.Risk] {
			continue
		}
		if err := a.canary(ctx, kind{t.Class, t.Do}); err != nil {
			return err
		}
		if a.ended() {
			return nil
		}
	}
	return nil
}

// canary does the first actions of one kind. One that is not so any more proves nothing, and the next takes its turn.
func (a *applying) canary(ctx context.Context, k kind) error {
	var proof []string
	for after := ""; len(proof) < a.bounds.Canary && !a.ended(); {
		rows, err := a.plans.Findings(ctx, drift.FindingQuery{Number: a.plan.Number, Class: k.class, Acting: true, After: after, Limit: pageSize})
		if err != nil || len(rows) == 0 {
			return err
		}
		var first []drift.Row
		for _, row := range rows {
			if len(first)+len(proof) == a.bounds.Canary {
				break
			}
			after = row.Key
			if row.Do == k.do && !a.withheld[row.Risk()] { // one kind may be of two risks
				first = append(first, row)
			}
		}
		if err := a.run(ctx, first); err != nil {
			return err
		}
		for i := range first {
			a.counted[first[i].Key] = first[i].Outcome != drift.Pending
			if first[i].Outcome == drift.Applied {
				proof = append(proof, first[i].Key)
			}
		}
	}
	for _, key := range proof {
		wrong, err := a.readBack(ctx, key)
		if err != nil {
			return err
		}
		if wrong != "" {
			a.stopped[k] = wrong
			return nil
		}
	}
	return nil
}
