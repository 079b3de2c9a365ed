package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// runs are the jobs that are known and their runs, in the order in which they were recorded.
type runs struct {
	jobs map[string]schedule.JobState
	rows []schedule.RunRow
	last map[string]int64 // by job, the number of its newest run
}

var (
	_ schedule.Store  = (*DB)(nil)
	_ schedule.Reader = (*DB)(nil)
)

// Turn hands out "the agenda of a job", whose row is locked because everything is.
func (db *DB) Turn(ctx context.Context, job string, decide func(time.Time, *schedule.Agenda) error) error {
	return db.do(ctx, func(now time.Time) error {
		a := schedule.Agenda{State: db.runs.jobs[job], Halt: db.runs.jobs[schedule.Everything].Paused}
		a.State.Name = job
		var open []int // where they lie
		for i, r := range db.runs.rows {
			if r.Job == job && r.Open() {
				a.Open, open = append(a.Open, r), append(open, i)
			}
		}
		if err := decide(now, &a); err != nil {
			return ownError{err} // "as it is, and nothing is stored"
		}
		a.State.Name = job
		db.runs.jobs[job] = a.State
		for n, i := range open {
			was := &db.runs.rows[i]
			a.Open[n].Number, a.Open[n].Job, a.Open[n].Instant = was.Number, job, was.Instant
			*was = a.Open[n]
		}
		for i := range a.New {
			r := &a.New[i]
			if db.runs.add(job, r); r.Number > 0 && r.ByHand() {
				db.act(ledger.Control{Kind: ledger.DeedRun, Name: job, Body: json.RawMessage(r.Ask), Actor: r.By, Reason: r.Why, At: r.Created})
			}
		}
		db.runs.rows = slices.DeleteFunc(db.runs.rows, func(r schedule.RunRow) bool {
			return r.Job == job && !r.Open() && r.Ended.Before(a.Forget)
		})
		maps.DeleteFunc(db.planned.decided[job], func(key string, d *plan.Decision) bool {
			return d.Over(a.Forget) && db.planned.drifts[job][key] == nil
		})
		return nil
	}, "turn at job %q", job)
}

// add records a run and numbers it, but for one whose "(job, instant) is known".
func (rs *runs) add(job string, r *schedule.RunRow) {
	r.Job, r.Number = job, 0
	if slices.ContainsFunc(rs.rows, func(known schedule.RunRow) bool { return known.Job == job && known.Instant == r.Instant }) {
		return
	}
	if rs.last == nil {
		rs.last = make(map[string]int64)
	}
	rs.last[job]++
	r.Number = rs.last[job]
	rs.rows = append(rs.rows, *r)
}

// Paused returns "the pause that a job is under: its own, else that of everything".
func (db *DB) Paused(ctx context.Context, job string) (schedule.Mark, error) {
	return in(ctx, db, func(time.Time) (schedule.Mark, error) {
		if own := db.runs.jobs[job].Paused; own.Is() {
			return own, nil
		}
		return db.runs.jobs[schedule.Everything].Paused, nil
	}, "is job %q paused", job)
}

// Jobs returns "all jobs in the order of their names".
func (db *DB) Jobs(ctx context.Context) (schedule.Board, error) {
	return in(ctx, db, func(now time.Time) (schedule.Board, error) {
		b := schedule.Board{Now: now, Halt: db.runs.jobs[schedule.Everything].Paused}
		for name, j := range db.runs.jobs {
			if name != schedule.Everything && j.Known() {
				b.Jobs = append(b.Jobs, j)
			}
		}
		slices.SortFunc(b.Jobs, func(a, b schedule.JobState) int { return cmp.Compare(a.Name, b.Name) })
		return b, nil
	}, "list jobs")
}

// Runs returns runs, "the newest first".
func (db *DB) Runs(ctx context.Context, f schedule.RunFilter) ([]schedule.RunRow, error) {
	return in(ctx, db, func(time.Time) ([]schedule.RunRow, error) {
		newer := func(a, b *schedule.RunRow) int {
			if f.Job != "" {
				return cmp.Compare(b.Number, a.Number)
			}
			return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Job, a.Job), cmp.Compare(b.Number, a.Number))
		}
		var found []schedule.RunRow
		for _, r := range db.runs.rows {
			if (f.Job == "" || r.Job == f.Job) && (f.Result == "" || r.Result == f.Result) && (!f.Open || r.Open()) && (f.Before == nil || newer(f.Before, &r) < 0) {
				found = append(found, r)
			}
		}
		slices.SortFunc(found, func(a, b schedule.RunRow) int { return newer(&a, &b) })
		return found[:min(len(found), cmp.Or(f.Limit, pageSize))], nil
	}, "list runs")
}

// Run returns one; "an unknown one matches ErrNotFound".
func (db *DB) Run(ctx context.Context, job string, number int64) (schedule.RunRow, error) {
	return in(ctx, db, func(time.Time) (schedule.RunRow, error) {
		for _, r := range db.runs.rows {
			if r.Job == job && r.Number == number {
				return r, nil
			}
		}
		return schedule.RunRow{}, schedule.ErrNotFound
	}, "run %d of %s", number, job)
}
