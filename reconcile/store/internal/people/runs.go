package people

import (
	"cmp"
	"context"
	"fmt"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/store/internal/rows"
)

var _ schedule.Reader = (*Desk)(nil)

// Paused returns the pause that a job is under.
func (d *Desk) Paused(ctx context.Context, job string) (schedule.Mark, error) {
	var found []rows.Job
	err := d.get(ctx, &found, `SELECT name, `+rows.JobColumns+` FROM amends_jobs
		WHERE name IN (?, '') AND paused IS NOT NULL ORDER BY name DESC LIMIT 1`, []any{rows.JobName(job)})
	if err != nil {
		return schedule.Mark{}, fmt.Errorf("is job %q paused: %w", job, err)
	}
	if len(found) == 0 {
		return schedule.Mark{}, nil
	}
	return found[0].State().Paused, nil
}

// Jobs returns all jobs that were described, in the order of their names, and the pause of everything.
func (d *Desk) Jobs(ctx context.Context) (schedule.Board, error) {
	var found []rows.Job
	now, err := d.db.Now(ctx)
	if err == nil {
		err = d.get(ctx, &found, `SELECT name, `+rows.JobColumns+` FROM amends_jobs ORDER BY name`, nil)
	}
	if err != nil {
		return schedule.Board{}, fmt.Errorf("list jobs: %w", d.db.Explain(ctx, err))
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
func (d *Desk) Runs(ctx context.Context, f schedule.Filter) ([]schedule.RunRow, error) {
	var w where
	if f.Job != "" {
		w.and("job = ?", rows.JobName(f.Job))
	}
	if f.Verdict != "" {
		w.and("verdict = ?", string(f.Verdict))
	}
	if f.Open {
		w.and("verdict IS NULL")
	}
	if f.Before > 0 {
		w.and("number < ?", f.Before)
	}
	found, err := d.runs(ctx, &w, cmp.Or(f.Limit, pageSize))
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return found, nil
}

// Run returns one.
func (d *Desk) Run(ctx context.Context, number int64) (schedule.RunRow, error) {
	var w where
	w.and("number = ?", number)
	found, err := d.runs(ctx, &w, 1)
	if err == nil && len(found) == 0 {
		err = schedule.ErrNotFound
	}
	if err != nil {
		return schedule.RunRow{}, fmt.Errorf("run %d: %w", number, err)
	}
	return found[0], nil
}

func (d *Desk) runs(ctx context.Context, w *where, limit int) ([]schedule.RunRow, error) {
	var found []rows.Run
	err := d.get(ctx, &found, `SELECT number, `+rows.RunColumns+` FROM amends_runs`+w.String()+` ORDER BY number DESC LIMIT ?`, append(w.args, limit))
	return rows.Runs(found), err
}
