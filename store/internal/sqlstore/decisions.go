package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/intake"
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
	return wrap(err, "decide on findings of %s", job)
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
	return orNone(ds, wrap(err, "list decisions"))
}

// Found returns what comparisons left to people about a work. A finding of a draft alone does not count: how many there are is not known
// yet.
func (s *plans) Found(ctx context.Context, work string) (of intake.Found, err error) {
	type found struct {
		intake.Undecided

		on    plan.Finding // of an accept
		until time.Time
	}
	var all []found
	fields := func(f *found) []rows.Field {
		return []rows.Field{{"job", &f.Job}, {"class", &f.Class}, {"finding", (*keyless)(&f.on)}, {"until_at", &f.until}}
	}
	key := rows.Name(work)
	if err := s.db.get(ctx, rows.Into(&all, fields), foundText, key, key, s.db.Moment(time.Now().Add(-plan.HoldFor))); err != nil {
		return of, fmt.Errorf("what was found about %s: %w", work, err)
	}
	for i := range all {
		if f := &all[i]; f.Class == string(plan.Accept) {
			of.Accept(f.on.SourceRevision, f.until)
		} else {
			of.Leave(f.Undecided)
		}
	}
	return of, nil
}

// foundText selects what was accepted, and what is open. Of a plan only what stands between its own quotes is matched: those in texts are
// escaped.
const foundText = `SELECT job, verdict AS class, finding, until_at FROM amends_decisions WHERE key = ? AND verdict = 'accept' AND to_do = 0 UNION ALL
	SELECT f.job, f.class, '{}', NULL FROM amends_drifts AS f WHERE f.key = ? AND f.asked > 0 AND f.last_at > ?
	AND EXISTS (SELECT 1 FROM amends_plans AS p WHERE p.job = f.job AND p.state = 'ready' AND p.number >= f.asked AND p.plan NOT LIKE '%"holdsNothingReason":%'
		AND NOT EXISTS (SELECT 1 FROM amends_plans AS l WHERE l.job = f.job AND l.state = 'ready' AND l.number > p.number))
	AND NOT EXISTS (SELECT 1 FROM amends_decisions AS d WHERE d.job = f.job AND d.key = f.key AND d.finding = f.finding
		AND (d.outcome IS NULL AND d.verdict IN ('ours', 'again')
			OR d.decided_at >= f.last_at AND (d.outcome = 'applied' OR d.outcome IS NULL AND d.to_do = 0 AND d.verdict <> 'reopen')))`

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
	return wrap(err, "note what became of decisions of %s", job)
}
