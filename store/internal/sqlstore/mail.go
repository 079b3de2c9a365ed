package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/valid"
)

const (
	addWaits = `
		INSERT INTO amends_awaits (name, key, saga, work_id, step, step_key, at)
		SELECT w.value ->> 0, w.value ->> 1, w.value ->> 2, w.value ->> 3, w.value ->> 4, w.value ->> 5, {now} FROM {elements:2} AS w WHERE true
		ON CONFLICT DO NOTHING`

	// findWaits has the names and keys as pairs, which are called works elsewhere.
	findWaits = `
		SELECT a.name, a.key, a.saga, a.work_id, a.step, a.step_key, COALESCE(i.status, '') AS status
		FROM (SELECT DISTINCT saga AS name, work AS key FROM {works:1} AS pairs) AS p CROSS JOIN amends_awaits AS a
		LEFT JOIN amends_instances AS i ON i.saga = a.saga AND i.work_id = a.work_id
		WHERE a.name = p.name AND a.key = p.key ORDER BY a.at, a.saga, a.work_id, a.step, a.step_key`

	// shared reads the index of the waits for messages alone, and of those that share a name and a key the works.
	shared = `
		SELECT a.saga, a.name, a.key
		FROM (SELECT name, key, saga FROM amends_awaits WHERE name <> '' GROUP BY name, key, saga HAVING count(*) > 1) AS s
		JOIN amends_awaits AS a ON a.name = s.name AND a.key = s.key AND a.saga = s.saga
		JOIN amends_instances AS i ON i.saga = a.saga AND i.work_id = a.work_id AND i.status = 'waiting'
		GROUP BY a.name, a.key, a.saga HAVING count(DISTINCT a.work_id) > 1 ORDER BY a.name, a.key, a.saga LIMIT $1`

	dropWait = `DELETE FROM amends_awaits WHERE name = $1 AND key = $2 AND saga = $3 AND work_id = $4 AND step = $5 AND step_key = $6`

	// forgetMessage forgets the one whose id is used again, forgetMessages a few others: more than come, so the table is bounded.
	// They are two, for as one they would read the whole table.
	forgetMessage  = `DELETE FROM amends_messages WHERE name = $2 AND id = $3 AND expires_at <= (SELECT {now})`
	forgetMessages = expired + `10)`
	expired        = `
		DELETE FROM amends_messages WHERE (name, id) IN (
			SELECT name, id FROM amends_messages WHERE expires_at <= (SELECT {now}) ORDER BY expires_at LIMIT `

	addMessage = `
		INSERT INTO amends_messages (name, id, key, digest, body, at, expires_at)
		VALUES ($2, $3, $4, $5, $6, {now}, {now} + CAST($7 AS bigint) * {ms})
		ON CONFLICT (name, id) DO NOTHING`

	findMessage = `SELECT at, digest FROM amends_messages WHERE name = $1 AND id = $2`

	findUses = `SELECT saga, work_id, step, step_key FROM amends_uses WHERE name = $1 AND id = $2 ORDER BY saga`

	findMessages = `
		SELECT m.name, m.id, m.key, m.body FROM amends_messages AS m
		WHERE m.name = $2 AND m.key = $3 AND m.expires_at > (SELECT {now})
		AND NOT EXISTS (SELECT 1 FROM amends_uses AS u WHERE u.name = m.name AND u.id = m.id AND u.saga = $4)
		ORDER BY m.at, m.id LIMIT 100`

	use = `
		INSERT INTO amends_uses (name, id, saga, work_id, step, step_key)
		SELECT name, id, $3, $4, $5, $6 FROM amends_messages WHERE name = $1 AND id = $2 ON CONFLICT DO NOTHING`
)

// Await makes waits findable.
func (s *chains) Await(ctx context.Context, waits []ledger.Wait) error {
	for i := range waits {
		if err := valid.Wait(&waits[i]); err != nil {
			return err
		}
	}
	if len(waits) == 0 {
		return nil
	}
	_, err := s.awaits.ask(ctx, waits)
	return s.failed(ctx, err, "make %d waits findable", len(waits))
}

// await makes the waits of several works findable, in the order of their keys: two processes do not wait for each other in a circle.
func (s *chains) await(ctx context.Context, lists [][]ledger.Wait) ([]struct{}, error) {
	list := WaitList(slices.Concat(lists...))
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		_, err := q.ExecContext(ctx, s.db.Text(addWaits), s.db.Clock(), list)
		return err
	})
	return make([]struct{}, len(lists)), err
}

// WaitList is the list of waits that [AddWaits] and Postgres's statement for records take.
func WaitList(waits []ledger.Wait) string {
	table := make([][6]string, len(waits))
	for i, w := range waits {
		table[i] = [6]string{w.Name, w.Key, w.ID.Saga, w.ID.Work, w.Step, w.StepKey}
	}
	slices.SortFunc(table, func(a, b [6]string) int { return slices.Compare(a[:], b[:]) })
	list, _ := json.Marshal(table) // strings can be encoded
	return string(list)
}

// AddWaits is the statement that makes a list of waits findable: the time, the list.
func AddWaits(words map[string]string) string { return (&Dialect{Words: words}).Text(addWaits) }

// Waits returns what was made findable under a name and a key.
func (s *chains) Waits(ctx context.Context, name, key string) ([]ledger.Wait, error) {
	waits, err := s.waits.ask(ctx, [2]string{name, key})
	return slices.Clone(waits), s.failed(ctx, err, "look what waits for message %q", name) // others may have asked for the same
}

// waitsFor returns what was made findable under each name and key.
func (s *chains) waitsFor(ctx context.Context, keys [][2]string) ([][]ledger.Wait, error) {
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	var waits []ledger.Wait
	var status string
	err = s.db.Ask(ctx, func(ctx context.Context, q Queries) error {
		waits = nil
		return rows.Select(ctx, q, rows.Into(&waits, func(w *ledger.Wait) []rows.Field {
			return []rows.Field{
				{"name", &w.Name}, {"key", &w.Key}, {"saga", &w.ID.Saga}, {"work_id", &w.ID.Work}, {"step", &w.Step}, {"step_key", &w.StepKey},
				{"status", &status},
			}
		}, func(w *ledger.Wait) { w.Ended = saga.Status(status).Terminal() }), s.db.Text(findWaits), string(list))
	})
	by := make(map[[2]string][]ledger.Wait, len(keys))
	for _, w := range waits {
		key := [2]string{w.Name, w.Key}
		by[key] = append(by[key], w)
	}
	all := make([][]ledger.Wait, len(keys))
	for i, key := range keys {
		all[i] = by[key]
	}
	return all, err
}

// Unwait removes waits.
func (s *chains) Unwait(ctx context.Context, waits []ledger.Wait) error {
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		for _, w := range waits {
			if _, err := q.ExecContext(ctx, dropWait, w.Name, w.Key, w.ID.Saga, w.ID.Work, w.Step, w.StepKey); err != nil {
				return err
			}
		}
		return nil
	})
	return s.failed(ctx, err, "remove %d waits", len(waits))
}

// Keep stores a message, and tells what is stored under its name and id.
func (s *chains) Keep(ctx context.Context, m program.Message, keep time.Duration) (kept ledger.Kept, err error) {
	if err := valid.Message(&m); err != nil {
		return kept, err
	}
	digest := MessageDigest(&m)
	if m.Body, err = seal(s.db, "", envelope{}, m.Body, ofMessage(m.Name, m.ID)); err != nil {
		return kept, s.failed(ctx, err, "keep message %q", m.Name)
	}
	err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		if _, err := q.ExecContext(ctx, s.db.Text(forgetMessage), s.db.Clock(), m.Name, m.ID); err != nil {
			return err
		}
		if _, err := q.ExecContext(ctx, s.db.Text(forgetMessages), s.db.Clock()); err != nil {
			return err
		}
		n, err := affected(q.ExecContext(ctx, s.db.Text(addMessage), s.db.Clock(), m.Name, m.ID, m.Key, digest, m.Body, keep.Milliseconds()))
		if err != nil {
			return err
		}
		var row struct {
			At     Moment
			Digest []byte
		}
		if err := sqlx.GetContext(ctx, q, &row, findMessage, m.Name, m.ID); err != nil {
			return err
		}
		kept = ledger.Kept{At: row.At.Time(), Other: string(row.Digest) != string(digest), Again: n == 0}
		return nil
	})
	return kept, s.failed(ctx, err, "keep message %q", m.Name)
}

// MessageDigest tells one message from another that has its name and id.
func MessageDigest(m *program.Message) []byte {
	sum := sha256.Sum256(append([]byte(m.Key+"\x00"), m.Body...))
	return sum[:16]
}

// Messages returns those that are stored and not used in a saga.
func (s *chains) Messages(ctx context.Context, name, key, saga string) (ms []program.Message, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q Queries) error {
		ms = nil
		return sqlx.SelectContext(ctx, q, &ms, s.db.Text(findMessages), s.db.Clock(), name, key, saga)
	})
	opened := ms[:0]
	for _, m := range ms {
		var fault error
		if m.Body, _, fault = open(s.db, m.Body, ofMessage(name, m.ID)); fault == nil {
			opened = append(opened, m)
		} else if !errors.Is(fault, ledger.ErrKeys) { // that one hides no other
			err = errors.Join(err, fault)
		}
	}
	return opened, s.failed(ctx, err, "look for messages %q", name)
}

// Use notes that a wait uses a message, unless another of its saga does.
func (s *chains) Use(ctx context.Context, name, id string, w ledger.Wait) (is bool, err error) {
	err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		if _, err := q.ExecContext(ctx, use, name, id, w.ID.Saga, w.ID.Work, w.Step, w.StepKey); err != nil {
			return err
		}
		uses, err := usesOf(ctx, q, name, id)
		is = !slices.ContainsFunc(uses, func(o ledger.Wait) bool {
			return o.ID.Saga == w.ID.Saga && (o.ID.Work != w.ID.Work || o.Step != w.Step || o.StepKey != w.StepKey)
		})
		return err
	})
	return is, s.failed(ctx, err, "use message %q", name)
}

// Uses returns the waits that use a message.
func (s *chains) Uses(ctx context.Context, name, id string) (uses []ledger.Wait, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q Queries) (err error) {
		uses, err = usesOf(ctx, q, name, id)
		return err
	})
	return uses, s.failed(ctx, err, "look what uses message %q", name)
}

// usesOf are the waits that use a message, in the order of saga.
func usesOf(ctx context.Context, q Queries, name, id string) (uses []ledger.Wait, err error) {
	err = rows.Select(ctx, q, rows.Into(&uses, func(w *ledger.Wait) []rows.Field {
		return []rows.Field{{"saga", &w.ID.Saga}, {"work_id", &w.ID.Work}, {"step", &w.Step}, {"step_key", &w.StepKey}}
	}), findUses, name, id)
	return uses, err
}

// Shared returns a few names and keys by which several works of a saga wait.
func (s *chains) Shared(ctx context.Context) (all []ledger.Shared, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q Queries) error {
		all = nil
		return sqlx.SelectContext(ctx, q, &all, shared, ledger.MaxShared)
	})
	return all, s.failed(ctx, err, "look what waits for one message")
}
