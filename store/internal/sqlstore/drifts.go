package sqlstore

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Remember makes the drift of a part what fs says.
func (s *plans) Remember(ctx context.Context, plan plan.Ref, part plan.Part, fs []plan.Finding) error {
	err := part.Hold(fs)
	if err == nil {
		err = s.write(Again(ctx), func(ctx context.Context, w writer) error {
			list, _, err := encodeFindings(fs)
			if err != nil {
				return err
			}
			job := rows.Name(plan.Job)
			if err := w.forget(ctx, job, part, list); err != nil {
				return err
			}
			_, err = w.do(ctx, rememberText(w.Elements), job, w.at(), w.at(), plan.Number, list)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("remember the drift of %s: %w", plan.Job, err)
	}
	return nil
}

// forget erases what is not in a list any more.
func (w writer) forget(ctx context.Context, job string, part plan.Part, list string) error {
	var c where
	c.and("job = ?", job)
	if part.From != "" {
		c.and("key > ?", rows.Name(part.From))
	}
	if part.Until != "" {
		c.and("key <= ?", rows.Name(part.Until))
	}
	c.and("key NOT IN (SELECT e.value ->> 0 FROM "+w.Elements+")", list)
	_, err := w.do(ctx, "DELETE FROM amends_drifts"+c.String(), c.args...)
	return err
}

func rememberText(elements string) string {
	return `INSERT INTO amends_drifts AS d (job, first_at, last_at, runs, plan, key, class, finding)
		SELECT ?, ?, ?, 1, ?, e.value ->> 0, e.value ->> 1, e.value ->> 3 FROM ` + elements + ` WHERE true
		ON CONFLICT (job, key) DO UPDATE SET
			first_at = CASE WHEN d.class = excluded.class THEN d.first_at ELSE excluded.first_at END,
			runs = CASE WHEN d.class <> excluded.class THEN 1 WHEN d.plan = excluded.plan THEN d.runs ELSE d.runs + 1 END,
			last_at = excluded.last_at, plan = excluded.plan, class = excluded.class, finding = excluded.finding`
}

// lasting is drift as the table has it.
type lasting struct {
	Job, Key, Finding string
	First             Moment `db:"first_at"`
	Last              Moment `db:"last_at"`
	Times             int    `db:"runs"`
}

func driftsText(w *where) string {
	return `SELECT job, key, finding, first_at, last_at, runs FROM amends_drifts` + w.String() + ` ORDER BY first_at, job, key LIMIT ?`
}

// Drifts returns drift, the oldest first.
func (s *plans) Drifts(ctx context.Context, q plan.DriftQuery) ([]plan.Drift, error) {
	var w where
	w.is("job", rows.Name(q.Job))
	w.is("key", rows.Name(q.Key))
	w.is("class", string(q.Class))
	if q.Times > 1 {
		w.and("runs >= ?", q.Times)
	}
	if a := q.After; a != nil {
		w.and("(first_at, job, key) > (?, ?, ?)", s.db.Moment(a.First), rows.Name(a.Job), rows.Name(a.Key))
	}
	var found []lasting
	err := s.db.get(ctx, &found, driftsText(&w), append(w.args, limit(q.Limit))...)
	ds := make([]plan.Drift, len(found))
	for i := range found {
		r := &found[i]
		ds[i] = plan.Drift{Job: r.Job, First: r.First.Time(), Last: r.Last.Time(), Times: r.Times}
		if err == nil {
			ds[i].Finding, err = readFinding(r.Key, r.Finding)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list drift: %w", err)
	}
	return ds, nil
}
