package sqlstore

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/valid"
)

const (
	addWait = `
		INSERT INTO amends_awaits (name, key, saga, work_id, step, step_key, at) VALUES ($2, $3, $4, $5, $6, $7, {now})
		ON CONFLICT DO NOTHING`

	findWaits = `
		SELECT name, key, saga, work_id, step, step_key FROM amends_awaits
		WHERE name = $1 AND key = $2 ORDER BY saga, work_id, step, step_key`

	dropWait = `DELETE FROM amends_awaits WHERE name = $1 AND key = $2 AND saga = $3 AND work_id = $4 AND step = $5 AND step_key = $6`

	// forgetMessage forgets the one whose id is used again, forgetMessages a few others: more than come, so the table is bounded.
	// They are two, for as one they would read the whole table.
	forgetMessage  = `DELETE FROM amends_messages WHERE name = $2 AND id = $3 AND expires_at <= (SELECT {now})`
	forgetMessages = `
		DELETE FROM amends_messages WHERE (name, id) IN (
			SELECT name, id FROM amends_messages WHERE expires_at <= (SELECT {now}) ORDER BY expires_at LIMIT 10)`

	addMessage = `
		INSERT INTO amends_messages (name, id, key, digest, body, at, expires_at, delivered)
		VALUES ($2, $3, $4, $5, $6, {now}, {now} + CAST($7 AS bigint) * {ms}, false)
		ON CONFLICT (name, id) DO NOTHING`

	findMessage = `SELECT at, delivered, digest FROM amends_messages WHERE name = $1 AND id = $2`

	findMessages = `
		SELECT name, id, key, body FROM amends_messages
		WHERE name = $2 AND key = $3 AND NOT delivered AND expires_at > (SELECT {now}) ORDER BY at, id LIMIT 100`

	delivered = `UPDATE amends_messages SET delivered = true, body = NULL WHERE name = $1 AND id = $2 AND NOT delivered`
)

// Await makes waits findable.
func (s *chains) Await(ctx context.Context, waits []ledger.Wait) error {
	for i := range waits {
		if err := valid.Wait(&waits[i]); err != nil {
			return err
		}
	}
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		for _, w := range waits {
			if _, err := q.ExecContext(ctx, s.db.Text(addWait), s.db.Clock(), w.Name, w.Key, w.ID.Saga, w.ID.Work, w.Step, w.StepKey); err != nil {
				return err
			}
		}
		return nil
	})
	return s.failed(ctx, err, "make %d waits findable", len(waits))
}

// Waits returns what was made findable under a name and a key.
func (s *chains) Waits(ctx context.Context, name, key string) (waits []ledger.Wait, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q Queries) error {
		return rows.Select(ctx, q, rows.Into(&waits, func(w *ledger.Wait) []rows.Field {
			return []rows.Field{
				{"name", &w.Name}, {"key", &w.Key}, {"saga", &w.ID.Saga}, {"work_id", &w.ID.Work}, {"step", &w.Step}, {"step_key", &w.StepKey},
			}
		}), findWaits, name, key)
	})
	return waits, s.failed(ctx, err, "look what waits for message %q", name)
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
	err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		if _, err := q.ExecContext(ctx, s.db.Text(forgetMessage), s.db.Clock(), m.Name, m.ID); err != nil {
			return err
		}
		if _, err := q.ExecContext(ctx, s.db.Text(forgetMessages), s.db.Clock()); err != nil {
			return err
		}
		if _, err := q.ExecContext(ctx, s.db.Text(addMessage), s.db.Clock(), m.Name, m.ID, m.Key, digest, m.Body, keep.Milliseconds()); err != nil {
			return err
		}
		var row struct {
			At        Moment
			Delivered bool
			Digest    []byte
		}
		if err := sqlx.GetContext(ctx, q, &row, findMessage, m.Name, m.ID); err != nil {
			return err
		}
		kept = ledger.Kept{At: row.At.Time(), Delivered: row.Delivered, Other: string(row.Digest) != string(digest)}
		return nil
	})
	return kept, s.failed(ctx, err, "keep message %q", m.Name)
}

// MessageDigest tells one message from another that has its name and id.
func MessageDigest(m *program.Message) []byte {
	sum := sha256.Sum256(append([]byte(m.Key+"\x00"), m.Body...))
	return sum[:16]
}

// Messages returns those that are stored and not delivered.
func (s *chains) Messages(ctx context.Context, name, key string) (ms []program.Message, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q Queries) error {
		ms = nil
		return sqlx.SelectContext(ctx, q, &ms, s.db.Text(findMessages), s.db.Clock(), name, key)
	})
	return ms, s.failed(ctx, err, "look for messages %q", name)
}

// Delivered notes that a message has reached what waited for it.
func (s *chains) Delivered(ctx context.Context, name, id string) error {
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		_, err := q.ExecContext(ctx, delivered, name, id)
		return err
	})
	return s.failed(ctx, err, "note that message %q is delivered", name)
}
