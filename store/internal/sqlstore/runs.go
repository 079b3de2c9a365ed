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
	var found []rows.Job
	err := s.db.get(ctx, &found, `SELECT name, `+rows.JobColumns+` FROM amends_jobs
		WHERE name IN (?, '') AND paused_at IS NOT NULL ORDER BY name DESC LIMIT 1`, rows.JobName(job))
	if err != nil {
		return schedule.Mark{}, fmt.Errorf("is job %q paused: %w", job, err)
	}
	if len(found) == 0 {
		return schedule.Mark{}, nil
	}
	return found[0].State().Paused, nil
}

// Jobs returns all jobs that were described, in the order of their names, and the pause of everything.
func (s *jobs) Jobs(ctx context.Context) (schedule.Board, error) {
	var found []rows.Job
	now, err := s.db.now(ctx)
	if err == nil {
		err = s.db.get(ctx, &found, `SELECT name, `+rows.JobColumns+` FROM amends_jobs ORDER BY name`)
	}
	if err != nil {
		return schedule.Board{}, fmt.Errorf("list jobs: %w", err)
	}
	b := schedule.Board{Now: now.UTC()}
	for i := range found {
		switch s := found[i].State(); {
		case s.Name == schedule.Everything:
			b.Halt = s.Paused
		case s.Known():
			b.Jobs = append(b.Jobs, s)
		}
	}
	return b, nil
}

// Runs returns runs, the newest first.
func (s *jobs) Runs(ctx context.Context, f schedule.Filter) ([]schedule.RunRow, error) {
	where, args := "", []any{}
	and := func(condition string, values ...any) {
		where, args = where+" AND "+condition, append(args, values...)
	}
	if f.Job != "" {
		and("job = ?", rows.JobName(f.Job))
	}
	if f.Verdict != "" {
		and("result = ?", string(f.Verdict))
	}
	if f.Open {
		and("result IS NULL")
	}
	if f.Before > 0 {
		and("number < ?", f.Before)
	}
	found, err := s.runs(ctx, where, append(args, cmp.Or(f.Limit, pageSize)))
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return found, nil
}

// Run returns one.
func (s *jobs) Run(ctx context.Context, number int64) (schedule.RunRow, error) {
	found, err := s.runs(ctx, " AND number = ?", []any{number, 1})
	if err == nil && len(found) == 0 {
		err = schedule.ErrNotFound
	}
	if err != nil {
		return schedule.RunRow{}, fmt.Errorf("run %d: %w", number, err)
	}
	return found[0], nil
}

func (s *jobs) runs(ctx context.Context, where string, args []any) ([]schedule.RunRow, error) {
	var found []rows.Run
	err := s.db.get(ctx, &found, `SELECT number, `+rows.RunColumns+` FROM amends_runs WHERE true`+where+` ORDER BY number DESC LIMIT ?`, args...)
	return rows.Runs(found), err
}
