package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/valid"
)

// weigh tells what was withdrawn of a source lately. Where it counts, no other transaction counts
// until this one ends: both change the row of the source. So it comes before the entry is locked.
func (d *Dialect) weigh(ctx context.Context, q Queries, source string, id saga.ID, b *intake.Bound) (t intake.Tally, err error) {
	get := func(dest any, query string, args ...any) error {
		return sqlx.GetContext(ctx, q, dest, d.Bind(query), args...)
	}
	err = get(&t.Undoes, `SELECT status <> ? OR received > consumed FROM amends_instances WHERE work_id = ? AND saga = ?`, string(saga.Compensated), id.Work, id.Saga)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil || !t.Undoes {
		return t, err
	}
	source = rows.Object(intake.Object{Source: source}).Source
	now, err := d.takeTurn(ctx, q, source)
	var decided Moment
	if err == nil {
		err = get(&decided, `SELECT max(at) FROM amends_audit WHERE kind IN (?, ?) AND name = ? AND at <= ?`, intake.ActRelease, intake.ActDrop, source, d.Moment(now))
	}
	if err != nil {
		return t, err
	}
	since := d.Moment(intake.Latest(now.Add(-b.Window), decided.Time()))
	err = get(&t, `SELECT true AS undoes, EXISTS (SELECT 1 FROM amends_objects WHERE source = ? AND held_seq IS NOT NULL) AS held,
		(SELECT count(*) FROM amends_objects WHERE source = ? AND withdrawn_at > ? AND withdrawn_at <= ?) AS withdrawn`, source, source, since, d.Moment(now))
	if others := b.Others(t.Withdrawn); err == nil && others > 0 {
		err = get(&t.Changed, `SELECT count(*) FROM (SELECT 1 AS one FROM amends_objects WHERE source = ? AND changed_at > ? AND changed_at <= ? LIMIT ?) AS others`,
			source, since, d.Moment(now), others)
	}
	return t, err
}

// takeTurn has no other transaction count the withdrawals of a source, or end their hold, and returns the time behind
// that: what those before stored is not later.
func (d *Dialect) takeTurn(ctx context.Context, q Queries, source string) (now time.Time, err error) {
	_, err = q.ExecContext(ctx, d.Bind(`INSERT INTO amends_withdrawals (source, weighed_at) VALUES (?, `+d.Today+`)
		ON CONFLICT (source) DO UPDATE SET weighed_at = excluded.weighed_at`), source)
	if err == nil {
		now, err = d.Now(ctx, q)
	}
	return now, err
}

// Holdings returns of which sources withdrawals are held.
func (s *inboxRole) Holdings(ctx context.Context) (all []intake.Holding, err error) {
	err = s.db.get(ctx, &all, `SELECT source, count(*) AS count FROM amends_objects WHERE held_seq IS NOT NULL GROUP BY source ORDER BY source`)
	return orNone(all, wrap(err, "count what is held"))
}

// EndHold releases or drops the withdrawals of a source that are held.
func (s *inboxRole) EndHold(ctx context.Context, source, act string, by saga.Actor) (n int64, err error) {
	done := "let_through_seq"
	if act == intake.ActDrop {
		done = "delivered_seq"
	}
	key := rows.Names("", rows.KeyColumns)
	if err = valid.Look(source, by); err == nil {
		err = s.db.write(ctx, func(ctx context.Context, q Queries) error {
			now, err := s.db.takeTurn(ctx, q, source)
			if err != nil {
				return err
			}
			at := s.db.Moment(now)
			// They are locked in the order of all that lock several.
			held, err := affected(q.ExecContext(ctx, s.db.Bind(`UPDATE amends_objects SET `+done+` = held_seq, held_seq = NULL, due_at = ?, updated_at = ? WHERE (`+key+`) IN (
				SELECT `+key+` FROM amends_objects WHERE source = ? AND held_seq IS NOT NULL ORDER BY `+key+s.db.Lock+`)`), at, at, source))
			if n = int64(held); err != nil || n == 0 {
				return err
			}
			ended := deed(ledger.ControlKind(act), source, by)
			ended.At = now
			return s.db.act(ctx, q, ended)
		})
	}
	return orNone(n, wrap(err, "%s what is held of %s", act, source))
}
