package memory

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

var (
	_ plan.Plans  = (*DB)(nil)
	_ plan.Drifts = (*DB)(nil)
)

// planned keeps plans and drift.
type planned struct {
	last     map[string]int64 // by job, the number of its newest draft
	plans    map[plan.Ref]*planState
	approved map[string]approval
	drifts   map[string]map[string]*remembered // by job and key
	decided  map[string]map[string]*plan.Decision
}

type planState struct {
	plan.Stored
	finished bool
	keys     []string // in order
	rows     map[string]*plan.Row
}

type approval struct {
	by saga.Actor
	at time.Time
}

// remembered is drift with the plan that told it last.
type remembered struct {
	plan.Drift
	plan  plan.Ref
	asked int64 // the first plan in a row for which starts and newer versions wait; 0: they do not
}

func newPlanned() planned {
	return planned{last: map[string]int64{}, plans: map[plan.Ref]*planState{}, approved: map[string]approval{}, drifts: map[string]map[string]*remembered{}, decided: map[string]map[string]*plan.Decision{}}
}

// Draft begins a plan. "What was drafted for that job earlier and never finished is erased".
func (db *DB) Draft(ctx context.Context, job string) (plan.Ref, error) {
	return in(ctx, db, func(time.Time) (plan.Ref, error) {
		maps.DeleteFunc(db.planned.plans, func(_ plan.Ref, p *planState) bool { return p.Job == job && !p.finished })
		db.planned.last[job]++
		p := &planState{rows: map[string]*plan.Row{}}
		p.Number, p.Job = db.planned.last[job], job
		db.planned.plans[p.Ref()] = p
		return p.Ref(), nil
	}, "draft a plan of %s", job)
}

// Find adds findings. "The same key again replaces what was found; one that is in sync takes its
// key out".
func (db *DB) Find(ctx context.Context, draft plan.Ref, fs []plan.Finding) error {
	return db.do(ctx, func(time.Time) error {
		p := db.planned.plans[draft]
		if p == nil || p.finished {
			return plan.ErrNotFound
		}
		for _, f := range fs {
			i, known := slices.BinarySearch(p.keys, f.Key)
			switch {
			case f.Class == plan.InSync && known:
				p.keys = slices.Delete(p.keys, i, i+1)
				delete(p.rows, f.Key)
			case f.Class == plan.InSync:
			default:
				if !known {
					p.keys = slices.Insert(p.keys, i, f.Key)
				}
				p.rows[f.Key] = &plan.Row{Finding: copyFinding(f)}
			}
		}
		return nil
	}, "add %d findings to draft %s", len(fs), draft)
}

// Finish makes the draft a plan. "Of the job's finished plans the newest Kept stay".
func (db *DB) Finish(ctx context.Context, draft plan.Ref, final *plan.Plan) (time.Time, error) {
	return in(ctx, db, func(now time.Time) (time.Time, error) {
		p := db.planned.plans[draft]
		switch {
		case p == nil || p.finished && p.ID != final.ID || p.Job != final.Job:
			return time.Time{}, plan.ErrNotFound
		case p.finished:
			return p.Made, nil
		}
		p.Plan, p.Made, p.finished = copyPlan(final), now, true
		finished := db.finished(func(o *planState) bool { return o.Job == p.Job })
		for _, old := range finished[min(plan.Kept, len(finished)):] {
			delete(db.planned.plans, old.Ref())
		}
		maps.DeleteFunc(db.planned.approved, func(id string, _ approval) bool {
			return len(db.finished(func(o *planState) bool { return o.ID == id })) == 0
		})
		return now, nil
	}, "finish plan %s", draft)
}

// finished returns finished plans, the newest first.
func (db *DB) finished(want func(*planState) bool) []*planState {
	var found []*planState
	for _, p := range db.planned.plans {
		if p.finished && want(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *planState) int {
		return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.Job, a.Job), cmp.Compare(b.Number, a.Number))
	})
	return found
}

// Plan returns a plan by its id or the beginning of one.
func (db *DB) Plan(ctx context.Context, id string) (plan.Stored, error) {
	return in(ctx, db, func(time.Time) (plan.Stored, error) {
		if exact := db.finished(func(p *planState) bool { return p.ID == id }); len(exact) > 0 {
			return db.stored(exact[0]), nil
		}
		found := db.finished(func(p *planState) bool { return id != "" && strings.HasPrefix(p.ID, id) })
		switch {
		case len(found) == 0:
			return plan.Stored{}, plan.ErrNotFound
		case slices.ContainsFunc(found, func(p *planState) bool { return p.ID != found[0].ID }):
			return plan.Stored{}, errors.New("several plans begin so; give more of the id")
		}
		return db.stored(found[0]), nil
	}, "plan %s", id)
}

// Latest returns the newest plan of a job.
func (db *DB) Latest(ctx context.Context, job string) (plan.Stored, error) {
	return in(ctx, db, func(time.Time) (plan.Stored, error) {
		found := db.finished(func(p *planState) bool { return p.Job == job })
		if len(found) == 0 {
			return plan.Stored{}, plan.ErrNotFound
		}
		return db.stored(found[0]), nil
	}, "the latest plan of %s", job)
}

func (db *DB) stored(p *planState) plan.Stored {
	a := db.planned.approved[p.ID]
	return plan.Stored{Plan: copyPlan(&p.Plan), Number: p.Number, Made: p.Made, Approved: a.by, When: a.at}
}

// Findings returns findings "in the order of the bytes of their keys".
func (db *DB) Findings(ctx context.Context, q plan.FindingQuery) ([]plan.Row, error) {
	return in(ctx, db, func(time.Time) ([]plan.Row, error) {
		p := db.planned.plans[q.Plan]
		if p == nil {
			return nil, nil
		}
		limit := cmp.Or(max(q.Limit, 0), pageSize)
		var found []plan.Row
		from, _ := slices.BinarySearch(p.keys, q.After+"\x00") // the first key behind After
		if q.After == "" {
			from = 0
		}
		for _, key := range p.keys[from:] {
			r := p.rows[key]
			if q.Acting && !r.Acting() || q.Class != "" && r.Class != q.Class || q.Outcome != "" && r.Outcome != q.Outcome {
				continue
			}
			if found = append(found, *r); len(found) == limit {
				break
			}
		}
		for i := range found {
			found[i].Finding = copyFinding(found[i].Finding)
		}
		return found, nil
	}, "findings of plan %s", q.Plan)
}

// Approve notes an approval. "The first approval stands".
func (db *DB) Approve(ctx context.Context, id string, by saga.Actor) error {
	return db.do(ctx, func(now time.Time) error {
		switch _, known := db.planned.approved[id]; {
		case by.Name == "":
			return errors.New("the actor has no name")
		case len(db.finished(func(p *planState) bool { return p.ID == id })) == 0:
			return plan.ErrNotFound
		case !known:
			db.planned.approved[id] = approval{by, now}
		}
		return nil
	}, "approve plan %s", id)
}

// Done notes outcomes; "a key that the plan does not have is left out".
func (db *DB) Done(ctx context.Context, of plan.Ref, rows []plan.Row) error {
	return db.do(ctx, func(now time.Time) error {
		p := db.planned.plans[of]
		if p == nil || !p.finished {
			return plan.ErrNotFound
		}
		for i := range rows {
			if r := p.rows[rows[i].Key]; r != nil {
				r.Outcome, r.Error, r.At = rows[i].Outcome, rows[i].Error, now
			}
		}
		return nil
	}, "note what became of plan %s", of)
}

func copyFinding(f plan.Finding) plan.Finding {
	f.Changes, f.Documents = slices.Clone(f.Changes), slices.Clone(f.Documents)
	return f
}

func copyPlan(p *plan.Plan) plan.Plan {
	c := *p
	c.Classes, c.OverLimit, c.Differences.Fields = slices.Clone(p.Classes), slices.Clone(p.OverLimit), slices.Clone(p.Differences.Fields)
	return c
}
