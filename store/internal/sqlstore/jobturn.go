package sqlstore

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
)

// jobs implements [schedule.Store] and [schedule.Reader].
//
// A turn is one transaction that begins with the lock on the job's row. Everything else in it
// belongs to that job, but for the chain of acts, which is locked last: so no two turns can wait for
// each other in a circle. The clock is read behind the lock: a turn that waited for it long does not decide by an old time. Constraints say
// the rules once more, whatever a program does: one run for each instant of a job, one run of a job
// at work, an end that has a result.
type jobs struct{ db *Dialect }

// Turn hands out the agenda of a job whose row is locked.
func (s *jobs) Turn(ctx context.Context, job string, decide func(now time.Time, a *schedule.Agenda) error) error {
	var refused error
	err := s.db.Write(ctx, func(ctx context.Context, q Queries) error {
		at := turn{jobs: s, writer: writer{Dialect: s.db, q: q}}
		if err := at.load(ctx, rows.JobName(job)); err != nil {
			return err
		}
		if refused = decide(at.now, &at.agenda); refused != nil {
			return ErrRefused // Write shares no transaction: this one is rolled back
		}
		return at.store(ctx)
	})
	if refused != nil {
		return refused
	}
	return wrap(s.db.Explain(ctx, err), "turn at job %q", job)
}

// turn is one transaction on the row of one job.
type turn struct {
	*jobs
	writer

	agenda schedule.Agenda
	state  schedule.JobState // as the database has it
	open   []schedule.RunRow // as the database has them
}

func (t *turn) load(ctx context.Context, job string) error {
	found, err := t.lock(ctx, job)
	if err == nil && len(found) == 0 {
		if _, err = t.q.ExecContext(ctx, t.db.Bind(`INSERT INTO amends_jobs (name) VALUES (?) ON CONFLICT DO NOTHING`), job); err == nil {
			found, err = t.lock(ctx, job)
		}
	}
	if err != nil {
		return err
	}
	if t.now, err = t.db.Now(ctx, t.q); err != nil {
		return err
	}
	t.state = found[0]
	var halts []schedule.JobState
	if err := t.choose(ctx, rows.Jobs(&halts), `SELECT name, `+rows.JobColumns+` FROM amends_jobs WHERE name = ''`); err != nil {
		return err
	}
	for i := range halts {
		t.agenda.Halt = halts[i].Paused
	}
	if err := t.choose(ctx, rows.Runs(&t.open), `SELECT number, `+rows.RunColumns+` FROM amends_runs WHERE job = ? AND result IS NULL ORDER BY number`+t.db.Lock, job); err != nil {
		return err
	}
	t.agenda.Open, t.agenda.State = slices.Clone(t.open), t.state
	return nil
}

func (t *turn) lock(ctx context.Context, job string) (found []schedule.JobState, err error) {
	err = t.choose(ctx, rows.Jobs(&found), `SELECT name, `+rows.JobColumns+` FROM amends_jobs WHERE name = ?`+t.db.Lock, job)
	return found, err
}

// store writes what the callback changed.
func (t *turn) store(ctx context.Context) error {
	a := &t.agenda
	if a.State.Name = t.state.Name; a.State != t.state {
		if _, err := t.do(ctx, `UPDATE amends_jobs SET (`+rows.JobColumns+`) = (`+marks(rows.JobColumns)+`) WHERE name = ?`,
			append(rows.JobValues(&a.State, t.moment), a.State.Name)...); err != nil {
			return err
		}
	}
	// A job is held once at most, by an index: leases that end are written before those that begin.
	for _, held := range []bool{false, true} {
		for i := range t.open {
			r := &a.Open[i]
			if r.Number, r.Job, r.Instant = t.open[i].Number, t.open[i].Job, t.open[i].Instant; r.Running() != held || *r == t.open[i] {
				continue
			}
			if _, err := t.do(ctx, `UPDATE amends_runs SET (`+rows.RunColumns+`) = (`+marks(rows.RunColumns)+`) WHERE job = ? AND number = ?`,
				append(rows.RunValues(r, t.moment), r.Job, r.Number)...); err != nil {
				return err
			}
		}
	}
	for i := range a.New {
		if err := t.insert(ctx, &a.New[i]); err != nil {
			return err
		}
	}
	if a.Forget.IsZero() {
		return nil
	}
	if _, err := t.do(ctx, `DELETE FROM amends_runs WHERE job = ? AND ended_at < ?`, a.State.Name, t.moment(a.Forget)); err != nil {
		return err
	}
	_, err := t.do(ctx, `DELETE FROM amends_decisions AS d WHERE d.job = ? AND CASE WHEN d.verdict IN (?, ?) THEN d.until_at WHEN d.to_do = 1 THEN d.ended_at ELSE d.decided_at END < ?
		AND NOT EXISTS (SELECT 1 FROM amends_drifts AS f WHERE f.job = d.job AND f.key = d.key)`, rows.Name(a.State.Name), string(plan.Accept), string(plan.Hide), t.moment(a.Forget))
	return err
}

// insert records a run and numbers it, but for one whose instant is known. The number stands in the
// job's row, which is locked, so that none is given twice, though runs are forgotten.
func (t *turn) insert(ctx context.Context, r *schedule.RunRow) error {
	r.Job, r.Number = t.state.Name, 0
	var number []int64
	err := t.choose(ctx, &number, `INSERT INTO amends_runs (number, `+rows.RunColumns+`)
		SELECT last_run + 1, `+marks(rows.RunColumns)+` FROM amends_jobs WHERE name = ?
		ON CONFLICT (job, scheduled_for) DO NOTHING RETURNING number`, append(rows.RunValues(r, t.moment), r.Job)...)
	if err != nil || len(number) == 0 {
		return err
	}
	r.Number = number[0]
	if _, err := t.do(ctx, `UPDATE amends_jobs SET last_run = ? WHERE name = ?`, r.Number, r.Job); err != nil || !r.ByHand() {
		return err
	}
	text := func(s string) string { kept, _ := rows.Text(s).(string); return kept }
	asked := deed(ledger.DeedRun, r.Job, saga.Actor{Name: text(r.By), Reason: text(r.Why)})
	asked.Body, asked.At = json.RawMessage(text(r.Ask)), r.Created
	return t.db.act(ctx, t.q, asked)
}

// moment is a time as a parameter, NULL for none and for what no calendar knows.
func (s *jobs) moment(at time.Time) any {
	if y := at.UTC().Year(); at.IsZero() || y < 1 || y > 9999 {
		return nil
	}
	return s.db.Moment(at)
}

// marks are as many question marks as there are columns.
func marks(columns string) string { return "?" + strings.Repeat(", ?", strings.Count(columns, ",")) }
