package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Draft begins a plan, and erases what nobody needs any more.
func (s *plans) Draft(ctx context.Context, job string) (int64, error) {
	var number []int64
	err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
		if _, err := w.do(ctx, `UPDATE amends_plans SET state = 'discarded' WHERE job = ? AND state = 'draft'`, rows.Name(job)); err != nil {
			return err
		}
		return w.choose(ctx, &number, `INSERT INTO amends_plans (started_at, job, state) VALUES (?, ?, 'draft') RETURNING number`, w.at(), rows.Name(job))
	})
	if err == nil {
		err = s.erase(ctx, rows.Name(job))
	}
	if err != nil {
		return 0, fmt.Errorf("draft a plan of %s: %w", job, err)
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
				n, err := w.do(ctx, `DELETE FROM amends_findings WHERE plan = ? AND key IN (
					SELECT key FROM amends_findings WHERE plan = ? ORDER BY key LIMIT ?)`, number, number, batch)
				if more = n == batch; err != nil || more {
					return err
				}
				_, err = w.do(ctx, `DELETE FROM amends_plans WHERE number = ?`, number)
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
func (s *plans) Find(ctx context.Context, number int64, fs []drift.Finding) error {
	err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
		if err := w.held(ctx, number, "draft"); err != nil {
			return err
		}
		return inBatches(len(fs), func(from, to int) error {
			list, inSync, err := encodeFindings(fs[from:to])
			if err != nil {
				return err
			}
			_, err = w.do(ctx, `INSERT INTO amends_findings (plan, key, class, automatic, finding)
				SELECT CAST(? AS bigint), e.value ->> 0, e.value ->> 1, CAST(e.value ->> 2 AS smallint), e.value ->> 3
				FROM `+w.Elements+` WHERE true
				ON CONFLICT (plan, key) DO UPDATE SET class = excluded.class, automatic = excluded.automatic, finding = excluded.finding`, number, list)
			if err != nil || inSync == "[]" {
				return err
			}
			_, err = w.do(ctx, inSyncText(w.Elements), number, inSync)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("add %d findings to draft %d: %w", len(fs), number, err)
	}
	return nil
}

func inSyncText(elements string) string {
	return `DELETE FROM amends_findings WHERE plan = ? AND key IN (SELECT e.value ->> 0 FROM ` + elements + `)`
}

// Finish makes the draft a plan, and drops what is a plan too many.
func (s *plans) Finish(ctx context.Context, number int64, p *drift.Plan) (time.Time, error) {
	stored, err := json.Marshal(p)
	if err != nil {
		return time.Time{}, fmt.Errorf("finish plan %d: %w", number, err)
	}
	var made []Moment
	err = s.write(Again(ctx), func(ctx context.Context, w writer) error {
		made = nil
		n, err := w.do(ctx, `UPDATE amends_plans SET state = 'ready', finished_at = ?, id = ?, plan = ? WHERE number = ? AND state = 'draft' AND job = ?`,
			w.at(), p.ID, string(stored), number, rows.Name(p.Job))
		if err == nil && n > 0 {
			err = w.drop(ctx, rows.Name(p.Job))
		}
		if err != nil {
			return err
		}
		err = w.choose(ctx, &made, `SELECT finished_at FROM amends_plans WHERE number = ? AND state = 'ready' AND id = ?`, number, p.ID)
		if err == nil && len(made) == 0 {
			err = drift.ErrNotFound
		}
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("finish plan %d: %w", number, err)
	}
	return made[0].Time(), nil
}

// drop leaves the newest plans of a job, and the approvals of plans that are left.
func (w writer) drop(ctx context.Context, job string) error {
	_, err := w.do(ctx, `UPDATE amends_plans SET state = 'discarded' WHERE job = ? AND state = 'ready' AND number NOT IN (
		SELECT number FROM amends_plans WHERE job = ? AND state = 'ready' ORDER BY number DESC LIMIT ?)`, job, job, drift.Kept)
	if err != nil {
		return err
	}
	_, err = w.do(ctx, `DELETE FROM amends_approvals WHERE NOT EXISTS (
		SELECT 1 FROM amends_plans AS p WHERE p.id = amends_approvals.plan_id AND p.state = 'ready')`)
	return err
}

// planRow is a plan with its approval.
type planRow struct {
	Number        int64
	ID, Plan      string
	Made          Moment `db:"finished_at"`
	When          Moment `db:"approved_at"`
	Actor, Reason Text
}

const storedPlans = `SELECT p.number, p.id, p.plan, p.finished_at, a.approved_at, a.actor, a.reason
	FROM amends_plans AS p LEFT JOIN amends_approvals AS a ON a.plan_id = p.id`

func (r *planRow) stored() (drift.Stored, error) {
	p := drift.Stored{
		Number: r.Number, Made: r.Made.Time(), When: r.When.Time(),
		Approved: drift.By{Actor: string(r.Actor), Reason: string(r.Reason)},
	}
	if err := json.Unmarshal([]byte(r.Plan), &p.Plan); err != nil {
		return p, fmt.Errorf("it cannot be read: %w", err)
	}
	return p, nil
}

var errAmbiguous = errors.New("several plans begin so; give more of the id")

// Plan returns a plan by its id or the beginning of one.
func (s *plans) Plan(ctx context.Context, id string) (drift.Stored, error) {
	found, err := s.named(ctx, id)
	if err != nil {
		return drift.Stored{}, fmt.Errorf("plan %s: %w", id, err)
	}
	p, err := found.stored()
	if err != nil {
		return p, fmt.Errorf("plan %s: %w", id, err)
	}
	return p, nil
}

func (s *plans) named(ctx context.Context, id string) (*planRow, error) {
	if id == "" {
		return nil, drift.ErrNotFound
	}
	var found []planRow
	err := s.db.get(ctx, &found, storedPlans+` WHERE p.state = 'ready' AND p.id = ? ORDER BY p.number DESC LIMIT 1`, id)
	if err == nil && len(found) == 0 {
		// The newest of each id that begins so. Ids are hexadecimal: g is behind every digit.
		err = s.db.get(ctx, &found, storedPlans+` WHERE p.state = 'ready' AND p.id > ? AND p.id < ? AND NOT EXISTS (
			SELECT 1 FROM amends_plans AS n WHERE n.state = 'ready' AND n.id = p.id AND n.number > p.number) LIMIT 2`, id, id+"g")
	}
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, drift.ErrNotFound
	case len(found) > 1:
		return nil, errAmbiguous
	}
	return &found[0], nil
}

// Latest returns the newest plan of a job.
func (s *plans) Latest(ctx context.Context, job string) (drift.Stored, error) {
	var found []planRow
	err := s.db.get(ctx, &found, storedPlans+` WHERE p.state = 'ready' AND p.job = ? ORDER BY p.number DESC LIMIT 1`, rows.Name(job))
	if err == nil && len(found) == 0 {
		err = drift.ErrNotFound
	}
	var p drift.Stored
	if err == nil {
		p, err = found[0].stored()
	}
	if err != nil {
		return p, fmt.Errorf("the latest plan of %s: %w", job, err)
	}
	return p, nil
}
