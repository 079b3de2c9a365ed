package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Decide stores what people decided, each with its act.
func (s *plans) Decide(ctx context.Context, job string, ds []plan.Decision) error {
	acts := make([]ledger.Control, len(ds))
	for i := range ds {
		d := &ds[i]
		err := d.Validate()
		if err == nil {
			acts[i] = deed(ledger.DeedDecide, rows.Name(d.Finding.Key), d.By)
			acts[i].Body, err = d.Act(job)
		}
		if err != nil {
			return fmt.Errorf("decide on findings of %s: %w", job, err)
		}
	}
	err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
		for i := range ds {
			if err := w.decide(ctx, job, &ds[i]); err != nil {
				return err
			}
		}
		for i := range acts { // the chain of acts is locked last
			if err := s.db.act(ctx, w.q, acts[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("decide on findings of %s: %w", job, err)
	}
	return nil
}

func (w writer) decide(ctx context.Context, job string, d *plan.Decision) error {
	f := d.Finding
	f.Key = ""
	finding, err := json.Marshal(&f)
	if err != nil {
		return err
	}
	toDo := 0
	if d.Acts() {
		toDo = 1
	}
	_, err = w.do(ctx, `INSERT INTO amends_decisions (decided_at, until_at, to_do, job, key, verdict, kept, actor, reason, finding) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job, key) DO UPDATE SET decided_at = excluded.decided_at, until_at = excluded.until_at, ended_at = NULL, to_do = excluded.to_do, verdict = excluded.verdict,
			kept = excluded.kept, actor = excluded.actor, reason = excluded.reason, outcome = NULL, error = NULL, finding = excluded.finding`,
		w.at(), w.Moment(d.Until), toDo, rows.Name(job), rows.Name(d.Finding.Key), string(d.Verdict), rows.Text(d.Keep), rows.Text(d.By.Name), rows.Text(d.By.Reason), string(finding))
	return err
}

// decisionFields are a row of amends_decisions.
func decisionFields(d *plan.Decision) []rows.Field {
	return []rows.Field{
		{"decided_at", &d.At}, {"until_at", &d.Until}, {"ended_at", &d.Ended}, {"key", &d.Finding.Key}, {"verdict", (*string)(&d.Verdict)},
		{"kept", &d.Keep}, {"actor", &d.By.Name}, {"reason", &d.By.Reason}, {"outcome", (*string)(&d.Outcome)}, {"error", &d.Error},
		{"finding", (*keyless)(&d.Finding)},
	}
}

// Decisions returns decisions in the order of their jobs and keys.
func (s *plans) Decisions(ctx context.Context, q plan.DecisionQuery) ([]plan.Decision, error) {
	var w where
	w.and("job = ?", rows.Name(q.Job))
	if len(q.Keys) > 0 {
		keys := make([][1]string, len(q.Keys))
		for i, key := range q.Keys {
			keys[i][0] = rows.Name(key)
		}
		list, err := asList(keys)
		if err != nil {
			return nil, fmt.Errorf("list decisions: %w", err)
		}
		w.and("key IN (SELECT e.value ->> 0 FROM "+s.db.Elements+")", list)
	}
	if q.Open {
		w.and("outcome IS NULL AND to_do = 1")
	}
	if q.After != "" {
		w.and("key > ?", rows.Name(q.After))
	}
	var ds []plan.Decision
	err := s.db.get(ctx, rows.Into(&ds, decisionFields), `SELECT decided_at, until_at, ended_at, key, verdict, kept, actor, reason, outcome, error, finding
		FROM amends_decisions`+w.String()+` ORDER BY key LIMIT ?`, append(w.args, limit(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("list decisions: %w", err)
	}
	return ds, nil
}

// Settled notes what became of decisions.
func (s *plans) Settled(ctx context.Context, job string, ds []plan.Decision) error {
	err := s.write(Again(ctx), func(ctx context.Context, w writer) error {
		for i := range ds {
			d := &ds[i]
			_, err := w.do(ctx, `UPDATE amends_decisions SET ended_at = ?, outcome = ?, error = ? WHERE job = ? AND key = ? AND decided_at = ?`,
				w.at(), string(d.Outcome), rows.Text(d.Error), rows.Name(job), rows.Name(d.Finding.Key), w.Moment(d.At))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note what became of decisions of %s: %w", job, err)
	}
	return nil
}
