package sqlstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Paused returns the pause that a job is under.
func (s *jobs) Paused(ctx context.Context, job string) (schedule.Mark, error) {
	var found []schedule.JobState
	err := s.db.get(ctx, rows.Jobs(&found), `SELECT name, `+rows.JobColumns+` FROM amends_jobs
		WHERE name IN (?, '') AND paused_at IS NOT NULL ORDER BY name DESC LIMIT 1`, rows.JobName(job))
	if err != nil {
		return schedule.Mark{}, fmt.Errorf("is job %q paused: %w", job, err)
	}
	if len(found) == 0 {
		return schedule.Mark{}, nil
	}
	return found[0].Paused, nil
}

// Jobs returns all jobs that were described, in the order of their names, and the pause of
// everything.
func (s *jobs) Jobs(ctx context.Context) (schedule.Board, error) {
	var found []schedule.JobState
	now, err := s.db.now(ctx)
	if err == nil {
		err = s.db.get(ctx, rows.Jobs(&found), `SELECT name, `+rows.JobColumns+` FROM amends_jobs ORDER BY name`)
	}
	if err != nil {
		return schedule.Board{}, fmt.Errorf("list jobs: %w", err)
	}
	b := schedule.Board{Now: now.UTC()}
	for _, s := range found {
		switch {
		case s.Name == schedule.Everything:
			b.Halt = s.Paused
		case s.Known():
			b.Jobs = append(b.Jobs, s)
		}
	}
	return b, nil
}

// Runs returns runs, the newest first.
func (s *jobs) Runs(ctx context.Context, f schedule.RunFilter) ([]schedule.RunRow, error) {
	text, args := s.runsText(&f)
	var found []schedule.RunRow
	err := s.db.get(ctx, rows.Runs(&found), text, args...)
	return orNone(found, wrap(err, "list runs"))
}

// runsText lists the runs of a job by their numbers, and those of all by the time at which they
// were recorded.
func (s *jobs) runsText(f *schedule.RunFilter) (text string, args []any) {
	var w where
	w.is("job", rows.JobName(f.Job))
	w.is("result", string(f.Result))
	if f.Open {
		w.and("result IS NULL")
	}
	order := "created_at DESC, job DESC, number DESC"
	if f.Job != "" {
		order = "number DESC"
	}
	switch b := f.Before; {
	case b == nil:
	case f.Job != "":
		w.and("number < ?", b.Number)
	default:
		w.and("(created_at, job, number) < (?, ?, ?)", s.db.Moment(b.Created), rows.JobName(b.Job), b.Number)
	}
	return selectRun + w.String() + ` ORDER BY ` + order + ` LIMIT ?`, append(w.args, cmp.Or(f.Limit, pageSize))
}

var selectRun = `SELECT number, ` + rows.RunColumns + ` FROM amends_runs`

// Run returns one.
func (s *jobs) Run(ctx context.Context, job string, number int64) (schedule.RunRow, error) {
	var found []schedule.RunRow
	err := s.db.get(ctx, rows.Runs(&found), selectRun+` WHERE job = ? AND number = ?`, rows.JobName(job), number)
	r, err := one(found, err, schedule.ErrNotFound)
	return r, wrap(err, "run %d of %s", number, job)
}
