package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/plan"
)

// Remember "makes the drift of the plan's job what fs says for the keys of part".
func (db *DB) Remember(ctx context.Context, ref plan.Ref, part plan.Part, fs []plan.Finding) error {
	job := ref.Job
	if err := part.Hold(fs); err != nil {
		return fmt.Errorf("remember the drift of %s: %w", job, err)
	}
	return db.do(ctx, func(now time.Time) error {
		before, after := db.planned.drifts[job], map[string]*remembered{}
		for key, r := range before {
			if !part.Has(key) {
				after[key] = r
			}
		}
		for _, f := range fs {
			if f.Class == plan.InSync {
				continue
			}
			r := &remembered{plan.Drift{Job: job, Finding: copyFinding(f), First: now, Last: now, Times: 1}, ref, 0}
			if f.Hold() == plan.Holds {
				r.asked = ref.Number
			}
			if old := before[f.Key]; old != nil && f.Hold() != plan.Lets && old.asked > 0 {
				r.asked = old.asked
			}
			if old := before[f.Key]; old != nil && old.Class == f.Class {
				r.First, r.Times = old.First, old.Times+1
				if old.plan == ref { // "telling the same part of the same plan twice counts once"
					r.Times = old.Times
				}
			}
			after[f.Key] = r
		}
		db.planned.drifts[job] = after
		return nil
	}, "remember the drift of %s", job)
}

// Drifts returns drift, "that which was found first at first; then by job and key".
func (db *DB) Drifts(ctx context.Context, q plan.DriftQuery) ([]plan.Drift, error) {
	return in(ctx, db, func(time.Time) ([]plan.Drift, error) {
		var found []plan.Drift
		for _, rows := range db.planned.drifts {
			for _, r := range rows {
				if d := &r.Drift; (q.Job == "" || d.Job == q.Job) && (q.Key == "" || d.Key == q.Key) && (q.Class == "" || d.Class == q.Class) &&
					d.Times >= q.Times && !(q.Open && db.decidedOn(d)) && (q.After == nil || compareDrifts(*d, *q.After) > 0) {
					found = append(found, *d)
				}
			}
		}
		slices.SortFunc(found, compareDrifts)
		limit := cmp.Or(max(q.Limit, 0), pageSize)
		found = found[:min(limit, len(found))]
		for i := range found {
			found[i].Finding = copyFinding(found[i].Finding)
		}
		return found, nil
	}, "list drift")
}

func compareDrifts(a, b plan.Drift) int {
	return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Key, b.Key))
}
