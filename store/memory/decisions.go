package memory

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
)

// Decide stores decisions, "each in place of an earlier one on its key, and puts each on record as an act".
func (db *DB) Decide(ctx context.Context, job string, ds []plan.Decision) error {
	return db.do(ctx, func(now time.Time) error {
		acts := make([]ledger.Control, len(ds))
		for i := range ds {
			d := &ds[i]
			err := d.Validate()
			if err == nil {
				acts[i] = ledger.Control{Kind: ledger.DeedDecide, Name: d.Finding.Key, Actor: d.By.Name, Reason: d.By.Reason, At: now}
				acts[i].Body, err = d.Act(job)
			}
			if err != nil {
				return err
			}
		}
		if db.planned.decided[job] == nil {
			db.planned.decided[job] = map[string]*plan.Decision{}
		}
		for i, d := range ds {
			d.Finding = copyFinding(d.Finding)
			d.At, d.Outcome, d.Error = now, plan.Pending, ""
			db.planned.decided[job][d.Finding.Key] = &d
			db.act(acts[i])
		}
		return nil
	}, "decide on findings of %s", job)
}

// Decisions returns decisions of a job "in the order of the bytes of their keys".
func (db *DB) Decisions(ctx context.Context, q plan.DecisionQuery) ([]plan.Decision, error) {
	return in(ctx, db, func(time.Time) ([]plan.Decision, error) {
		limit := cmp.Or(max(q.Limit, 0), pageSize)
		var ds []plan.Decision
		of := db.planned.decided[q.Job]
		for _, key := range slices.Sorted(maps.Keys(of)) {
			d := *of[key]
			if key <= q.After || len(q.Keys) > 0 && !slices.Contains(q.Keys, key) || q.Open && !(d.Acts() && d.Outcome == plan.Pending) || len(ds) == limit {
				continue
			}
			d.Finding = copyFinding(d.Finding)
			ds = append(ds, d)
		}
		return ds, nil
	}, "list decisions")
}

// Settled notes what became of decisions, "by key and At".
func (db *DB) Settled(ctx context.Context, job string, ds []plan.Decision) error {
	return db.do(ctx, func(now time.Time) error {
		for i := range ds {
			if d := db.planned.decided[job][ds[i].Finding.Key]; d != nil && d.At.Equal(ds[i].At) {
				d.Outcome, d.Error, d.Ended = ds[i].Outcome, ds[i].Error, now
			}
		}
		return nil
	}, "note what became of decisions of %s", job)
}

// Found returns "what comparisons left to people about the work of that name".
func (db *DB) Found(ctx context.Context, work string) (intake.Found, error) {
	return in(ctx, db, func(now time.Time) (of intake.Found, err error) {
		for _, decided := range db.planned.decided {
			if d := decided[work]; d != nil && d.Verdict == plan.Accept && !d.Acts() {
				of.Accept(d.Finding.SourceRevision, d.Until)
			}
		}
		for job, found := range db.planned.drifts {
			f, plans := found[work], db.finished(func(p *planState) bool { return p.Job == job })
			if f == nil || f.asked == 0 || !f.Last.After(now.Add(-plan.HoldFor)) || len(plans) == 0 {
				continue
			}
			latest := slices.MaxFunc(plans, func(a, b *planState) int { return cmp.Compare(a.Number, b.Number) })
			if latest.HoldsNothingReason == "" && latest.Number >= f.asked && !db.lets(f) {
				of.Leave(intake.Undecided{Job: job, Class: string(f.Class)})
			}
		}
		return of, nil
	}, "what was found about %s", work)
}

// lets reports whether what was decided on a difference lets what waits for it go on.
func (db *DB) lets(f *remembered) bool {
	d := db.planned.decided[f.Job][f.Key]
	switch {
	case d == nil || !reflect.DeepEqual(d.Finding, f.Finding):
		return false
	case d.Outcome == plan.Pending && (d.Verdict == plan.Ours || d.Verdict == plan.Remake):
		return true
	default:
		return !d.At.Before(f.Last) && (d.Outcome == plan.Applied || d.Outcome == plan.Pending && !d.Acts() && d.Verdict != plan.Reopen)
	}
}

// decidedOn reports whether a person has decided on a difference since it was found last, and nothing has become of that that did not do.
func (db *DB) decidedOn(drift *plan.Drift) bool {
	d := db.planned.decided[drift.Job][drift.Key]
	return d != nil && d.Verdict != plan.Reopen && !d.At.Before(drift.Last) && reflect.DeepEqual(d.Finding, drift.Finding) && (d.Outcome == plan.Pending || d.Outcome == plan.Applied)
}
