package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Draft begins a plan of a job, discards the job's unfinished draft, and erases the job's discarded
// plans.
func (s *plans) Draft(ctx context.Context, job string) (plan.Ref, error) {
	draft := plan.Ref{Job: job}
	job = rows.Name(job)
	err := s.write(Again(ctx), func(ctx context.Context, w writer) (err error) {
		if draft.Number, err = w.nextPlan(ctx, job); err != nil {
			return err
		}
		if _, err := w.do(ctx, `UPDATE amends_plans SET state = 'discarded' WHERE job = ? AND state = 'draft'`, job); err != nil {
			return err
		}
		_, err = w.do(ctx, `INSERT INTO amends_plans (job, number, started_at, state) VALUES (?, ?, ?, 'draft')`, job, draft.Number, w.at())
		return err
	})
	if err == nil {
		err = s.erase(ctx, job)
	}
	return orNone(draft, wrap(err, "draft a plan of %s", job))
}

// nextPlan numbers a draft. The number stands in the job's row, so that none is given twice, though
// drafts are erased; two who draft wait for each other there.
func (w writer) nextPlan(ctx context.Context, job string) (int64, error) {
	var number []int64
	err := w.choose(ctx, &number, `INSERT INTO amends_jobs AS j (name, last_plan) VALUES (?, 1)
		ON CONFLICT (name) DO UPDATE SET last_plan = j.last_plan + 1 RETURNING last_plan`, job)
	if err != nil {
		return 0, err
	}
	return number[0], nil
}

// erase takes away what was dropped, in parts.
func (s *plans) erase(ctx context.Context, job string) error {
	var dropped []int64
	if err := s.db.get(ctx, &dropped, `SELECT number FROM amends_plans WHERE job = ? AND state = 'discarded' ORDER BY number`, job); err != nil {
		return err
	}
	for _, number := range dropped {
		for more := true; more; {
			err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
				n, err := w.do(ctx, `DELETE FROM amends_findings WHERE job = ? AND plan = ? AND key IN (
					SELECT key FROM amends_findings WHERE job = ? AND plan = ? ORDER BY key LIMIT ?)`, job, number, job, number, mostFindings)
				if more = n == mostFindings; err != nil || more {
					return err
				}
				_, err = w.do(ctx, `DELETE FROM amends_plans WHERE job = ? AND number = ?`, job, number)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Find adds findings to a draft.
func (s *plans) Find(ctx context.Context, draft plan.Ref, fs []plan.Finding) error {
	err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
		if err := w.held(ctx, draft, "draft"); err != nil {
			return err
		}
		return inBatches(len(fs), func(from, to int) error {
			list, inSync, err := encodeFindings(fs[from:to])
			if err != nil {
				return err
			}
			_, err = w.do(ctx, `INSERT INTO amends_findings (job, plan, key, class, automatic, finding)
				SELECT CAST(? AS text), CAST(? AS bigint), e.value ->> 0, e.value ->> 1, CAST(e.value ->> 2 AS smallint), e.value ->> 3
				FROM `+w.Elements+` WHERE true
				ON CONFLICT (job, plan, key) DO UPDATE SET class = excluded.class, automatic = excluded.automatic, finding = excluded.finding`, rows.Name(draft.Job), draft.Number, list)
			if err != nil || inSync == "[]" {
				return err
			}
			_, err = w.do(ctx, inSyncText(w.Elements), rows.Name(draft.Job), draft.Number, inSync)
			return err
		})
	})
	return wrap(err, "add %d findings to draft %s", len(fs), draft)
}

func inSyncText(elements string) string {
	return `DELETE FROM amends_findings WHERE job = ? AND plan = ? AND key IN (SELECT e.value ->> 0 FROM ` + elements + `)`
}

// Finish makes the draft a plan, and drops what is a plan too many.
func (s *plans) Finish(ctx context.Context, draft plan.Ref, p *plan.Plan) (time.Time, error) {
	stored, err := json.Marshal(p)
	if err == nil && rows.Name(p.Job) != rows.Name(draft.Job) {
		err = plan.ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("finish plan %s: %w", draft, err)
	}
	var finished Moment
	job := rows.Name(draft.Job)
	err = s.write(Again(ctx), func(ctx context.Context, w writer) error {
		var made []Moment
		n, err := w.do(ctx, `UPDATE amends_plans SET state = 'ready', finished_at = ?, id = ?, plan = ? WHERE job = ? AND number = ? AND state = 'draft'`,
			w.at(), p.ID, string(stored), job, draft.Number)
		if err == nil && n > 0 {
			err = w.drop(ctx, job)
		}
		if err != nil {
			return err
		}
		err = w.choose(ctx, &made, `SELECT finished_at FROM amends_plans WHERE job = ? AND number = ? AND state = 'ready' AND id = ?`, job, draft.Number, p.ID)
		finished, err = one(made, err, plan.ErrNotFound)
		return err
	})
	return orNone(finished.Time(), wrap(err, "finish plan %s", draft))
}

// drop leaves the newest plans of a job, and the approvals of plans that are left.
func (w writer) drop(ctx context.Context, job string) error {
	_, err := w.do(ctx, `UPDATE amends_plans SET state = 'discarded' WHERE job = ? AND state = 'ready' AND number NOT IN (
		SELECT number FROM amends_plans WHERE job = ? AND state = 'ready' ORDER BY number DESC LIMIT ?)`, job, job, plan.Kept)
	if err != nil {
		return err
	}
	_, err = w.do(ctx, `DELETE FROM amends_approvals WHERE NOT EXISTS (
		SELECT 1 FROM amends_plans AS p WHERE p.id = amends_approvals.plan_id AND p.state = 'ready')`)
	return err
}

// planFields are a plan with its approval.
func planFields(p *plan.Stored) []rows.Field {
	return []rows.Field{
		{"number", &p.Number}, {"id", &p.ID}, {"plan", jsonText[plan.Plan]{&p.Plan}}, {"finished_at", &p.Made},
		{"approved_at", &p.When}, {"actor", &p.Approved.Name}, {"reason", &p.Approved.Reason},
	}
}

// jsonText is where JSON is read to.
type jsonText[T any] struct{ at *T }

// Scan implements [sql.Scanner].
func (d jsonText[T]) Scan(v any) error {
	var stored Text
	err := stored.Scan(v)
	if err == nil {
		err = json.Unmarshal([]byte(stored), d.at)
	}
	return wrap(err, "it cannot be read")
}

const storedPlans = `SELECT p.number, p.id, p.plan, p.finished_at, a.approved_at, a.actor, a.reason
	FROM amends_plans AS p LEFT JOIN amends_approvals AS a ON a.plan_id = p.id`

var errAmbiguous = errors.New("several plans begin so; give more of the id")

// Plan returns a plan by its id or the beginning of one.
func (s *plans) Plan(ctx context.Context, id string) (plan.Stored, error) {
	p, err := s.named(ctx, id)
	return p, wrap(err, "plan %s", id)
}

func (s *plans) named(ctx context.Context, id string) (plan.Stored, error) {
	if id == "" {
		return plan.Stored{}, plan.ErrNotFound
	}
	var found []plan.Stored
	read := rows.Into(&found, planFields)
	err := s.db.get(ctx, read, storedPlans+` WHERE p.state = 'ready' AND p.id = ? ORDER BY p.finished_at DESC, p.number DESC LIMIT 1`, id)
	if err == nil && len(found) == 0 {
		// The newest of each id that begins so. Ids are hexadecimal: g is behind every digit.
		err = s.db.get(ctx, read, storedPlans+` WHERE p.state = 'ready' AND p.id > ? AND p.id < ? AND NOT EXISTS (
			SELECT 1 FROM amends_plans AS n WHERE n.state = 'ready' AND n.id = p.id AND (n.finished_at, n.job, n.number) > (p.finished_at, p.job, p.number)) LIMIT 2`, id, id+"g")
	}
	if err == nil && len(found) > 1 {
		err = errAmbiguous
	}
	return one(found, err, plan.ErrNotFound)
}

// Latest returns the newest plan of a job.
func (s *plans) Latest(ctx context.Context, job string) (plan.Stored, error) {
	var found []plan.Stored
	err := s.db.get(ctx, rows.Into(&found, planFields), storedPlans+` WHERE p.state = 'ready' AND p.job = ? ORDER BY p.number DESC LIMIT 1`, rows.Name(job))
	p, err := one(found, err, plan.ErrNotFound)
	return p, wrap(err, "the latest plan of %s", job)
}
