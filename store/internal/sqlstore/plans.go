package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
)

// plans implements [plan.Plans] and [plan.Drifts].
//
// Findings go into the database in batches, each one statement with one parameter: a JSON list. So
// a plan of a million findings is a few hundred statements, and no more than one batch of it is in
// memory.
//
// Nothing large is erased in one transaction. A draft that was never finished, or a plan too many,
// is dropped first, which is one row; from then on no reader sees it and nothing can be added to
// it. Its findings go in parts, before the next draft of the job begins, which also ends what was
// interrupted by a kill.
type plans struct{ db *Dialect }

// mostFindings is how many findings are in one statement.
const mostFindings = 2000

// write runs fn in a transaction, and tells it the database's clock.
func (s *plans) write(ctx context.Context, fn func(ctx context.Context, q writer) error) error {
	now, err := s.db.now(ctx)
	if err != nil {
		return err
	}
	return s.db.write(ctx, func(ctx context.Context, q Queries) error { return fn(ctx, writer{s.db, q, now}) })
}

// writer is one transaction.
type writer struct {
	*Dialect

	q   Queries
	now time.Time
}

// at is now as a parameter.
func (w writer) at() any { return w.Moment(w.now) }

// do runs a statement and returns how many rows it changed.
func (w writer) do(ctx context.Context, query string, args ...any) (int, error) {
	return affected(w.q.ExecContext(ctx, w.Bind(query), args...))
}

// choose reads all rows of a query within the transaction.
func (w writer) choose(ctx context.Context, dest any, query string, args ...any) error {
	return w.Dialect.choose(ctx, w.q, dest, query, args...)
}

// Approve notes an approval.
func (s *plans) Approve(ctx context.Context, id string, by saga.Actor) error {
	if by.Name == "" {
		return errors.New("approve plan " + id + ": the actor has no name")
	}
	err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
		var known []int64
		err := w.choose(ctx, &known, `SELECT number FROM amends_plans WHERE state = 'ready' AND id = ? LIMIT 1`+w.Share, id)
		if _, err = one(known, err, plan.ErrNotFound); err != nil {
			return err
		}
		_, err = w.do(ctx, `INSERT INTO amends_approvals (approved_at, plan_id, actor, reason) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			w.at(), id, rows.Text(by.Name), rows.Text(by.Reason))
		return err
	})
	return wrap(err, "approve plan %s", id)
}

// Findings returns findings of a plan or draft in the order of their keys.
func (s *plans) Findings(ctx context.Context, q plan.FindingQuery) ([]plan.Row, error) {
	var w where
	w.and("job = ? AND plan = ?", rows.Name(q.Plan.Job), q.Plan.Number)
	if q.After != "" {
		w.and("key > ?", rows.Name(q.After))
	}
	if q.Acting {
		w.and(acting)
	}
	w.is("class", string(q.Class))
	w.is("outcome", string(q.Outcome))
	var found []plan.Row
	read := rows.Into(&found, func(r *plan.Row) []rows.Field {
		return []rows.Field{
			{"key", &r.Key}, {"outcome", (*string)(&r.Outcome)}, {"error", &r.Error}, {"outcome_at", &r.At}, {"finding", (*keyless)(&r.Finding)},
		}
	})
	err := s.db.get(ctx, read, `SELECT key, outcome, error, outcome_at, finding FROM amends_findings`+w.String()+` ORDER BY key LIMIT ?`,
		append(w.args, limit(q.Limit))...)
	return orNone(found, wrap(err, "findings of plan %s", q.Plan))
}

// acting is [plan.Row.Acting]. Who asks goes through the plan once, page by page, so it has no
// index.
const acting = `automatic = 1 AND (outcome IS NULL OR outcome = 'over-limit')`

func limit(n int) int { return cmp.Or(max(n, 0), pageSize) }

// Done notes what became of actions.
func (s *plans) Done(ctx context.Context, plan plan.Ref, rs []plan.Row) error {
	err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
		if err := w.held(ctx, plan, "ready"); err != nil {
			return err
		}
		return inBatches(len(rs), func(from, to int) error {
			list, err := outcomes(plan, rs[from:to])
			if err != nil {
				return err
			}
			_, err = w.do(ctx, doneText(w.Elements), w.at(), list)
			return err
		})
	})
	return wrap(err, "note what became of plan %s", plan)
}

// doneText notes outcomes. The plan's name is in the list, too: were it a parameter, SQLite would
// go through the whole plan for each element, instead of the other way round.
func doneText(elements string) string {
	return `UPDATE amends_findings SET outcome = e.value ->> 3, error = e.value ->> 4, outcome_at = ?
		FROM ` + elements + ` WHERE job = e.value ->> 0 AND plan = CAST(e.value ->> 1 AS bigint) AND key = e.value ->> 2`
}

// held locks a plan in a state; there is none, or it is in another: [plan.ErrNotFound].
func (w writer) held(ctx context.Context, ref plan.Ref, state string) error {
	var known []int64
	err := w.choose(ctx, &known, `SELECT number FROM amends_plans WHERE job = ? AND number = ? AND state = ?`+w.Share, rows.Name(ref.Job), ref.Number, state)
	_, err = one(known, err, plan.ErrNotFound)
	return err
}

func inBatches(n int, do func(from, to int) error) error {
	for from := 0; from < n; from += mostFindings {
		if err := do(from, min(from+mostFindings, n)); err != nil {
			return err
		}
	}
	return nil
}
