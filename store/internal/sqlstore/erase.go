package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
)

// What names a work that is erased, beside its records: each statement takes a list of [number, saga, work, what it is called from then on].
var (
	eraseStatements = []string{
		`INSERT INTO amends_erased (name, saga, instance)
			SELECT value ->> 3, value ->> 1, CAST(value ->> 0 AS bigint) FROM {elements:1} AS e WHERE true ON CONFLICT DO NOTHING`,
		`DELETE FROM amends_tags WHERE tag = '` + ledger.ToErase + `' AND instance IN (SELECT CAST(value ->> 0 AS bigint) FROM {elements:1} AS e)`,
		`DELETE FROM amends_awaits WHERE (saga, work_id) IN (SELECT value ->> 1, value ->> 2 FROM {elements:1} AS e)`,
		`UPDATE amends_uses AS u SET work_id = e.value ->> 3 FROM {elements:1} AS e WHERE u.saga = e.value ->> 1 AND u.work_id = e.value ->> 2`,
		`UPDATE amends_messages AS m SET body = NULL, key = e.value ->> 3 FROM {elements:1} AS e JOIN amends_uses AS u ON u.saga = e.value ->> 1 AND u.work_id = e.value ->> 3
			WHERE m.name = u.name AND m.id = u.id`,
		`UPDATE amends_duplicates AS d SET work_id = e.value ->> 3 FROM {elements:1} AS e WHERE d.saga = e.value ->> 1 AND d.work_id = e.value ->> 2`,
		// The row stays: processes wait until they have read the newest version that there is.
		`UPDATE amends_controls AS c SET name = (e.value ->> 1) || ' ' || (e.value ->> 3), reason = NULL FROM {elements:1} AS e
			WHERE c.kind = 'hold' AND c.body IS NULL AND c.name = (e.value ->> 1) || ' ' || (e.value ->> 2)`,
		`DELETE FROM amends_requests WHERE EXISTS (SELECT 1 FROM {elements:1} AS e WHERE replace(answer, e.value ->> 2, '') <> answer)`,
		`DELETE FROM amends_drifts WHERE key IN (SELECT value ->> 2 FROM {elements:1} AS e)`,
		`DELETE FROM amends_decisions WHERE ended_at IS NOT NULL AND key IN (SELECT value ->> 2 FROM {elements:1} AS e)`,
		`DELETE FROM amends_observations WHERE key IN (SELECT value ->> 2 FROM {elements:1} AS e)`,
	}

	namingActs = `SELECT a.number, a.name, a.body, a.reason FROM amends_audit AS a
		WHERE replace(a.name || ' ' || coalesce(a.body, '') || ' ' || coalesce(a.reason, ''), $1, '') <> a.name || ' ' || coalesce(a.body, '') || ' ' || coalesce(a.reason, '')`

	eraseAct = `UPDATE amends_audit SET name = $2, body = $3, reason = $4 WHERE number = $1`

	namedErased = `SELECT instance FROM amends_erased WHERE named ORDER BY name, saga`

	unname = `UPDATE amends_instances AS h SET work_id = x.name FROM amends_erased AS x
		WHERE x.named AND x.instance IN {numbers:1} AND h.ref = x.instance AND h.saga = x.saga`

	unnamed = `UPDATE amends_erased SET named = false WHERE named AND instance IN {numbers:1}`

	waits = `SELECT p.*, i.ref IS NULL OR NOT ` + Hears + ` AS gone FROM (
			SELECT name, key, saga, work_id, step, step_key FROM amends_awaits
			WHERE (name, key, saga, work_id, step, step_key) > ($1, $2, $3, $4, $5, $6) ORDER BY name, key, saga, work_id, step, step_key LIMIT $7) AS p
		LEFT JOIN amends_instances AS i ON i.work_id = p.work_id AND i.saga = p.saga ORDER BY p.name, p.key, p.saga, p.work_id, p.step, p.step_key`

	forgetWaits = `DELETE FROM amends_awaits WHERE (name, key, saga, work_id, step, step_key) IN (
		SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM {elements:1} AS e)`

	eraseLater = `INSERT INTO amends_tags (tag, instance) SELECT '` + ledger.ToErase + `', n.value FROM {numbers:1} AS n WHERE true ON CONFLICT DO NOTHING`
)

// CountedWork is under what work a duplicate is counted, an element of [Dialect.Count].
const CountedWork = `CASE WHEN EXISTS (SELECT 1 FROM amends_erased AS x WHERE x.name = value ->> 4 AND x.saga = value ->> 0) THEN value ->> 4 ELSE value ->> 1 END`

// Hide is what is left of a name that was erased.
func (s *chains) Hide(name string) string { return ledger.Hidden(s.db.Secret, name) }

// erase erases, wherever it stands, what names the works of a list, in the transaction that q is.
func (s *chains) erase(ctx context.Context, q Queries, list [][]any) error {
	if len(list) == 0 {
		return nil
	}
	for _, text := range eraseStatements {
		if err := s.with(ctx, q, text, list); err != nil {
			return err
		}
	}
	for _, e := range list {
		id := saga.ID{}
		id.Saga, _ = e[1].(string)
		id.Work, _ = e[2].(string)
		var acts []ledger.Act
		err := rows.Select(ctx, q, rows.Into(&acts, func(a *ledger.Act) []rows.Field {
			return []rows.Field{{"number", &a.Number}, {"name", &a.Name}, {"body", &a.Body}, {"reason", &a.Reason}}
		}), namingActs, id.Work)
		if err != nil {
			return err
		}
		for i := range acts {
			if a := &acts[i]; a.Erase(id) {
				if _, err := q.ExecContext(ctx, eraseAct, a.Number, a.Name, Null(string(a.Body)), Null(a.Reason)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Transactions that are open while works lose their ids are waited for so often, and so long in between.
const (
	openLooks = 20
	openPause = 100 * time.Millisecond
)

// Unname has works that were erased lose their work ids.
func (s *chains) Unname(ctx context.Context) (waiting int, err error) {
	var numbers []int64
	err = s.ask(ctx, &numbers, namedErased)
	if err == nil && len(numbers) > 0 && s.db.Open != "" {
		waiting, err = s.outwait(ctx, len(numbers))
	}
	if err == nil && len(numbers) > 0 && waiting == 0 {
		err = s.db.Whole(Again(ctx), func(ctx context.Context, q Queries) error {
			if err := s.with(ctx, q, unname, numbers); err != nil {
				return err
			}
			return s.with(ctx, q, unnamed, numbers)
		})
	}
	return waiting, s.failed(ctx, err, "take the ids of works that were erased")
}

// outwait waits for the transactions that are open now. It answers n where some still are.
func (s *chains) outwait(ctx context.Context, n int) (int, error) {
	var open []string
	err := s.ask(ctx, &open, s.db.Open)
	for look := 0; err == nil && len(open) > 0; look++ {
		if look == openLooks {
			return n, nil
		}
		select {
		case <-time.After(openPause):
		case <-ctx.Done():
			return n, ctx.Err()
		}
		var now []string
		err = s.ask(ctx, &now, s.db.Open)
		open = slices.DeleteFunc(open, func(t string) bool { return !slices.Contains(now, t) })
	}
	return 0, err
}

func (s *chains) ask(ctx context.Context, into any, query string) error {
	return s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error { return sqlx.SelectContext(ctx, q, into, query) })
}

// waitsPage is how many waits are looked at in one statement.
const waitsPage = 1000

// ForgetWaits walks all waits, and removes those of works of which no records are left.
func (s *chains) ForgetWaits(ctx context.Context) (n int, err error) {
	for behind := [6]string{}; err == nil; {
		var page []struct {
			Name, Key, Saga string
			WorkID          string `db:"work_id"`
			Step            string
			StepKey         string `db:"step_key"`
			Gone            bool
		}
		var gone [][6]string
		err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
			page = nil
			return sqlx.SelectContext(ctx, q, &page, waits, behind[0], behind[1], behind[2], behind[3], behind[4], behind[5], waitsPage)
		})
		for _, w := range page {
			if behind = [6]string{w.Name, w.Key, w.Saga, w.WorkID, w.Step, w.StepKey}; w.Gone {
				gone = append(gone, behind)
			}
		}
		if err == nil && len(gone) > 0 {
			n += len(gone)
			err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error { return s.with(ctx, q, forgetWaits, gone) })
		}
		if len(page) < waitsPage {
			break
		}
	}
	return n, s.failed(ctx, err, "forget what waits for works that are gone")
}

// EraseLater marks works.
func (s *chains) EraseLater(ctx context.Context, numbers []int64) error {
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error { return s.with(ctx, q, eraseLater, numbers) })
	return s.failed(ctx, err, "mark %d works", len(numbers))
}
