package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/saga"
)

var (
	// rememberErased has a start find the works of a list of [number, saga, work, what it is called from then on].
	rememberErased = `INSERT INTO amends_erased (name, saga, instance)
		SELECT value ->> 3, value ->> 1, CAST(value ->> 0 AS bigint) FROM {elements:1} AS e WHERE true
		ON CONFLICT (name, saga) DO UPDATE SET named = true`

	// eraseStatements erase what names them beside their records. What has no index for it is looked for before, see [chains.naming].
	eraseStatements = []string{
		`INSERT INTO amends_duplicates AS d (saga, work_id, source, counter, count, first_at, last_at)
			SELECT o.saga, e.value ->> 3, o.source, o.counter, o.count, o.first_at, o.last_at
			FROM {elements:1} AS e JOIN amends_duplicates AS o ON o.saga = e.value ->> 1 AND o.work_id = e.value ->> 2 WHERE true
			ON CONFLICT (saga, work_id, source, counter) DO UPDATE SET count =
				CASE WHEN excluded.counter = 0 THEN d.count + excluded.count WHEN excluded.count > d.count THEN excluded.count ELSE d.count END`,
		`DELETE FROM amends_duplicates WHERE (saga, work_id) IN (SELECT value ->> 1, value ->> 2 FROM {elements:1} AS e)`,
		// A hold that was lifted keeps its row, for processes wait until they have read the newest version that there is; one that was set meanwhile holds
		// its key. It takes the place of an older one.
		`DELETE FROM amends_controls WHERE kind = 'hold' AND name IN (SELECT (e.value ->> 1) || ' ' || (e.value ->> 3) FROM {elements:1} AS e
			JOIN amends_controls AS o ON o.kind = 'hold' AND o.name = (e.value ->> 1) || ' ' || (e.value ->> 2))`,
		`UPDATE amends_controls AS c SET name = (e.value ->> 1) || ' ' || (e.value ->> 3), reason = CASE WHEN c.body IS NOT NULL THEN reason END FROM {elements:1} AS e
			WHERE c.kind = 'hold' AND c.name = (e.value ->> 1) || ' ' || (e.value ->> 2)`,
		// A decision on a difference that is still there may be on the instance of another saga under the same id.
		`DELETE FROM amends_decisions AS d WHERE (d.to_do = 0 OR d.ended_at IS NOT NULL) AND d.key IN (SELECT value ->> 2 FROM {elements:1} AS e)
			AND NOT EXISTS (SELECT 1 FROM amends_drifts AS f JOIN amends_instances AS i ON i.work_id = f.key WHERE f.job = d.job AND f.key = d.key
				AND NOT EXISTS (SELECT 1 FROM amends_erased AS x WHERE x.instance = i.ref))`,
	}

	waitsOf = `SELECT name, key, saga, work_id, step, step_key FROM amends_awaits WHERE (saga, work_id) IN (SELECT value ->> 1, value ->> 2 FROM {elements:1} AS e)`

	// usesOfWorks are also those of a first pass: its message may have been waited for by another then.
	usesOfWorks = `SELECT u.name, u.id, u.saga, e.value ->> 3, e.value ->> 2 FROM {elements:1} AS e JOIN amends_uses AS u ON u.saga = e.value ->> 1 AND u.work_id = e.value ->> 2 UNION ALL
		SELECT u.name, u.id, u.saga, e.value ->> 3, e.value ->> 2 FROM {elements:1} AS e JOIN amends_uses AS u ON u.saga = e.value ->> 1 AND u.work_id = e.value ->> 3`

	hideUses = `UPDATE amends_uses AS u SET work_id = e.value ->> 3, step_key = e.value ->> 3 FROM {elements:1} AS e WHERE u.name = e.value ->> 0 AND u.id = e.value ->> 1 AND u.saga = e.value ->> 2`

	// eraseMessages leaves what another waits for, or may: one of another saga that goes on under the same id.
	eraseMessages = `UPDATE amends_messages AS m SET body = NULL, key = e.value ->> 3 FROM {elements:1} AS e
		WHERE m.name = e.value ->> 0 AND m.id = e.value ->> 1 AND NOT EXISTS (SELECT 1 FROM amends_awaits AS a WHERE a.name = m.name AND a.key = m.key)
			AND NOT EXISTS (SELECT 1 FROM amends_instances AS i WHERE i.work_id = e.value ->> 4 AND i.saga <> e.value ->> 2 AND i.status NOT IN ('completed', 'compensated'))`

	// answersOn are answers that have the work id as a text of its own, as JSON writes it, or JSON within JSON: a document is kept to the byte.
	answersOn = `SELECT r.key FROM amends_requests AS r WHERE EXISTS (SELECT 1 FROM {elements:1} AS e
		WHERE replace(replace(r.answer, e.value ->> 4, ''), e.value ->> 5, '') <> r.answer)`

	forgetAnswers = `DELETE FROM amends_requests WHERE key IN (SELECT value ->> 0 FROM {elements:1} AS e)`

	namingActs = `SELECT a.number FROM amends_audit AS a WHERE EXISTS (SELECT 1 FROM {elements:1} AS e
		WHERE replace(replace(a.name || ' ' || coalesce(a.body, '') || ' ' || coalesce(a.reason, ''), e.value ->> 2, ''), e.value ->> 6, '')
			<> a.name || ' ' || coalesce(a.body, '') || ' ' || coalesce(a.reason, ''))`

	// namingTexts are the texts of a column that name works, and eraseTexts takes them out.
	namingTexts = `SELECT DISTINCT t.%[2]s FROM %[1]s AS t WHERE EXISTS (SELECT 1 FROM {elements:1} AS e WHERE replace(t.%[2]s, e.value ->> 2, '') <> t.%[2]s)`
	eraseTexts  = `UPDATE %[1]s SET %[2]s = 'erased' WHERE %[2]s IN (SELECT value ->> 0 FROM {elements:1} AS e)`

	thisAct = `SELECT number, name, body, reason FROM amends_audit WHERE number = $1`

	eraseAct = `UPDATE amends_audit SET name = $2, body = $3, reason = $4 WHERE number = $1`

	namedErased = `SELECT x.instance, x.saga, h.work_id, x.name FROM amends_erased AS x JOIN amends_instances AS h ON h.ref = x.instance WHERE x.named ORDER BY x.name, x.saga`

	unname = `UPDATE amends_instances AS h SET work_id = x.name FROM amends_erased AS x
		WHERE x.named AND x.instance IN {numbers:1} AND h.ref = x.instance AND h.saga = x.saga`

	unnamed = `UPDATE amends_erased SET named = false WHERE named AND instance IN {numbers:1}`

	waits = `SELECT p.*, i.ref IS NULL OR NOT ` + Hears + ` AS gone FROM (
			SELECT name, key, saga, work_id, step, step_key FROM amends_awaits
			WHERE (name, key, saga, work_id, step, step_key) > ($1, $2, $3, $4, $5, $6) ORDER BY name, key, saga, work_id, step, step_key LIMIT $7) AS p
		LEFT JOIN amends_instances AS i ON i.work_id = p.work_id AND i.saga = p.saga ORDER BY p.name, p.key, p.saga, p.work_id, p.step, p.step_key`

	forgetWaits = `DELETE FROM amends_awaits WHERE (name, key, saga, work_id, step, step_key) IN (
		SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM {elements:1} AS e)
		AND NOT EXISTS (SELECT 1 FROM amends_instances AS i WHERE i.work_id = amends_awaits.work_id AND i.saga = amends_awaits.saga AND ` + Hears + `)`

	eraseLater = `INSERT INTO amends_tags (tag, instance) SELECT '` + ledger.ToErase + `', n.value FROM {numbers:1} AS n WHERE true ON CONFLICT DO NOTHING`
)

// CountedWork is under what work a duplicate is counted, an element of [Dialect.Count].
const CountedWork = `CASE WHEN EXISTS (SELECT 1 FROM amends_erased AS x WHERE x.name = value ->> 4 AND x.saga = value ->> 0) THEN value ->> 4 ELSE value ->> 1 END`

// Hide is what is left of a name that was erased.
func (s *chains) Hide(name string) string { return ledger.Hidden(s.db.Secret, name) }

// erasedWork is one whose row has its id still.
type erasedWork struct {
	Instance int64
	Saga     string
	WorkID   string `db:"work_id"`
	Name     string
}

// said are the columns, by table, of what people and jobs say besides in acts, in the order in which a turn of a job locks them.
var said = [][2]string{
	{"amends_controls", "reason"}, {"amends_approvals", "reason"}, {"amends_jobs", "paused_reason"}, {"amends_jobs", "approved_reason"},
	{"amends_runs", "requested_reason"}, {"amends_runs", "note"}, {"amends_runs", "error"}, {"amends_decisions", "reason"},
}

// naming is what names works, and has no index by which that is found.
type naming struct {
	waits   [][6]string
	uses    [][5]string
	answers [][1]string
	texts   map[[2]string][][1]string // by column
	acts    []int64
}

// naming looks for it where it holds up no writer.
func (s *chains) naming(ctx context.Context, list [][7]any, works []erasedWork) (n naming, err error) {
	n.texts = make(map[[2]string][][1]string)
	for _, of := range said {
		err = errors.Join(err, s.look(ctx, fmt.Sprintf(namingTexts, of[0], of[1]), list, func(rows *sqlx.Rows) error {
			var text string
			err := rows.Scan(&text)
			if slices.ContainsFunc(works, func(w erasedWork) bool { return ledger.NamesWork(text, saga.ID{Saga: w.Saga, Work: w.WorkID}) }) {
				n.texts[of] = append(n.texts[of], [1]string{text})
			}
			return err
		}))
	}
	for query, row := range map[string]func(*sqlx.Rows) error{
		waitsOf: func(rows *sqlx.Rows) error {
			var w [6]string
			err := rows.Scan(&w[0], &w[1], &w[2], &w[3], &w[4], &w[5])
			n.waits = append(n.waits, w)
			return err
		},
		usesOfWorks: func(rows *sqlx.Rows) error {
			var u [5]string
			err := rows.Scan(&u[0], &u[1], &u[2], &u[3], &u[4])
			n.uses = append(n.uses, u)
			return err
		},
		answersOn: func(rows *sqlx.Rows) error {
			var key string
			err := rows.Scan(&key)
			n.answers = append(n.answers, [1]string{key})
			return err
		},
		namingActs: func(rows *sqlx.Rows) error {
			var number int64
			err := rows.Scan(&number)
			n.acts = append(n.acts, number)
			return err
		},
	} {
		if err = errors.Join(err, s.look(ctx, query, list, row)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// erase erases, wherever it stands, what names works. It may be done again.
func (s *chains) erase(ctx context.Context, works []erasedWork) error {
	list := make([][7]any, len(works))
	for i, w := range works {
		text, _ := json.Marshal(w.WorkID)       //nolint:errchkjson // texts always encode
		within, _ := json.Marshal(string(text)) //nolint:errchkjson // and so do they
		list[i] = [7]any{w.Instance, w.Saga, w.WorkID, w.Name, string(text), string(within[1 : len(within)-1]), string(text[1 : len(text)-1])}
	}
	n, err := s.naming(ctx, list, works)
	if err != nil {
		return err
	}
	return s.db.Whole(Again(ctx), func(ctx context.Context, q Queries) error {
		for _, step := range []struct {
			text string
			n    int
			list any
		}{
			{forgetWaits, len(n.waits), n.waits}, {hideUses, len(n.uses), n.uses}, {eraseMessages, len(n.uses), n.uses}, {forgetAnswers, len(n.answers), n.answers},
		} {
			if step.n > 0 {
				if err := s.with(ctx, q, step.text, step.list); err != nil {
					return err
				}
			}
		}
		for _, of := range said {
			texts := n.texts[of]
			if len(texts) == 0 {
				continue
			}
			if err := s.with(ctx, q, fmt.Sprintf(eraseTexts, of[0], of[1]), texts); err != nil {
				return err
			}
		}
		for _, text := range eraseStatements {
			if err := s.with(ctx, q, text, list); err != nil {
				return err
			}
		}
		return s.eraseActs(ctx, q, n.acts, works)
	})
}

// eraseActs erases the texts of acts that name works.
func (s *chains) eraseActs(ctx context.Context, q Queries, numbers []int64, works []erasedWork) error {
	for _, number := range numbers {
		a, changed := ledger.Act{}, false
		var body, reason sql.NullString
		if err := q.QueryRowxContext(ctx, thisAct+s.db.Lock, number).Scan(&a.Number, &a.Name, &body, &reason); err != nil {
			return err
		}
		a.Body, a.Reason = json.RawMessage(body.String), reason.String
		for _, w := range works {
			changed = a.Erase(saga.ID{Saga: w.Saga, Work: w.WorkID}) || changed
		}
		if changed {
			if _, err := q.ExecContext(ctx, eraseAct, a.Number, a.Name, Null(string(a.Body)), Null(a.Reason)); err != nil {
				return err
			}
		}
	}
	return nil
}

// look reads what a query over a list finds.
func (s *chains) look(ctx context.Context, query string, list any, row func(*sqlx.Rows) error) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return s.db.Read(ctx, func(ctx context.Context, q Queries) (err error) {
		rows, err := q.QueryxContext(ctx, s.db.Text(query), string(b))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			if err := row(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// Transactions that are open while works lose their ids are waited for so often, and so long in between.
const (
	openLooks = 20
	openPause = 100 * time.Millisecond
)

// unnamedAtOnce is how many works are erased, and lose their ids, in one transaction.
const unnamedAtOnce = 20

// Unname has works that were erased lose their work ids: at once in what names them, in their own rows when no older transaction is open, and
// then in what names them once more, because such a transaction may have put them back.
func (s *chains) Unname(ctx context.Context) (waiting int, err error) {
	var works []erasedWork
	err = s.ask(ctx, &works, namedErased)
	if err == nil && s.db.Open != "" && len(works) > 0 {
		for some := range slices.Chunk(works, unnamedAtOnce) {
			if err == nil {
				err = s.erase(ctx, some)
			}
		}
		if err == nil {
			waiting, err = s.outwait(ctx, len(works))
		}
	}
	if waiting > 0 {
		works = nil
	}
	for some := range slices.Chunk(works, unnamedAtOnce) {
		if err == nil {
			err = s.erase(ctx, some)
		}
		var numbers []int64
		for _, w := range some {
			numbers = append(numbers, w.Instance)
		}
		if err == nil {
			err = s.db.Whole(Again(ctx), func(ctx context.Context, q Queries) error {
				if err := s.with(ctx, q, unname, numbers); err != nil {
					return err
				}
				return s.with(ctx, q, unnamed, numbers)
			})
		}
	}
	return waiting, s.failed(ctx, err, "erase the ids of works")
}

// outwait waits for the transactions that are open now. It answers n where some still are.
func (s *chains) outwait(ctx context.Context, n int) (int, error) {
	var open []string
	err := s.ask(ctx, &open, s.db.Open)
	for look := 0; err == nil && len(open) > 0; look++ {
		if look == openLooks {
			return n, nil
		}
		if err := nap.For(ctx, openPause); err != nil {
			return n, err
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

// messagesPage is how many messages that have expired go in one statement.
const messagesPage = 1000

// ForgetWaits walks all waits, and removes those of works of which no records are left. It forgets messages and answers to requests, too, that nothing
// else forgets where no other comes.
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
	for gone := int64(messagesPage); err == nil && gone == messagesPage; {
		err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
			r, err := q.ExecContext(ctx, s.db.Text(expired+strconv.Itoa(messagesPage)+`)`), s.db.Clock())
			if err == nil {
				gone, err = r.RowsAffected()
			}
			return err
		})
	}
	if err == nil {
		err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error { return s.dropRequests(ctx, q) })
	}
	return n, s.failed(ctx, err, "forget what waits for works that are gone, and what has expired")
}

// EraseLater marks works.
func (s *chains) EraseLater(ctx context.Context, numbers []int64) error {
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error { return s.with(ctx, q, eraseLater, numbers) })
	return s.failed(ctx, err, "mark %d works", len(numbers))
}
