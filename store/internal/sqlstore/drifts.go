package sqlstore

import (
	"context"

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
			_, err = w.do(ctx, rememberText(w.Elements), job, w.at(), w.at(), plan.Number, plan.Number, list)
			return err
		})
	}
	return wrap(err, "remember the drift of %s", plan.Job)
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
	return `INSERT INTO amends_drifts AS d (job, first_at, last_at, runs, plan, asked, key, class, finding)
		SELECT ?, ?, ?, 1, ?, CASE e.value ->> 4 WHEN 'holds' THEN CAST(? AS bigint) WHEN 'as before' THEN 0 END, e.value ->> 0, e.value ->> 1, e.value ->> 3 FROM ` + elements + ` WHERE true
		ON CONFLICT (job, key) DO UPDATE SET
			asked = CASE WHEN excluded.asked = 0 OR excluded.asked > 0 AND d.asked > 0 THEN d.asked ELSE excluded.asked END,
			first_at = CASE WHEN d.class = excluded.class THEN d.first_at ELSE excluded.first_at END,
			runs = CASE WHEN d.class <> excluded.class THEN 1 WHEN d.plan = excluded.plan THEN d.runs ELSE d.runs + 1 END,
			last_at = excluded.last_at, plan = excluded.plan, class = excluded.class, finding = excluded.finding`
}

// driftFields are a row of amends_drifts.
func driftFields(d *plan.Drift) []rows.Field {
	return []rows.Field{
		{"job", &d.Job}, {"key", &d.Key}, {"finding", (*keyless)(&d.Finding)}, {"first_at", &d.First}, {"last_at", &d.Last}, {"runs", &d.Times},
	}
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
	if q.Open {
		w.and(`NOT EXISTS (SELECT 1 FROM amends_decisions AS d WHERE d.job = amends_drifts.job AND d.key = amends_drifts.key
			AND d.decided_at >= amends_drifts.last_at AND d.finding = amends_drifts.finding AND d.verdict <> 'reopen' AND (d.outcome IS NULL OR d.outcome = 'applied'))`)
	}
	if a := q.After; a != nil {
		w.and("(first_at, job, key) > (?, ?, ?)", s.db.Moment(a.First), rows.Name(a.Job), rows.Name(a.Key))
	}
	var ds []plan.Drift
	err := s.db.get(ctx, rows.Into(&ds, driftFields), driftsText(&w), append(w.args, limit(q.Limit))...)
	return orNone(ds, wrap(err, "list drift"))
}
