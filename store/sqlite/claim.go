package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// claim gives a session works, in a transaction that began as a writer, so what it reads stays
// true. What it buries stays buried also when the session is dead itself.
func (db *DB) claim(ctx context.Context, c sqlstore.ClaimArgs) (a sqlstore.ClaimAnswer, err error) {
	err = db.writer.share(ctx, func(ctx context.Context, q sqlstore.Queries) error {
		now := db.clock()
		if _, err := q.ExecContext(ctx, buryExpired, now); err != nil {
			return err
		}
		if err := q.QueryRowxContext(ctx, sessionLives, c.Token, now).Scan(&a.Live); err != nil || !a.Live {
			return err
		}
		if err := q.QueryRowxContext(ctx, newestControl).Scan(&a.Controls); err != nil {
			return err
		}
		if _, err := q.ExecContext(ctx, release, now, sqlstore.MaxRelease); err != nil {
			return err
		}
		if err := sqlx.SelectContext(ctx, q, &a.Rows, signalled, c.Token); err != nil {
			return err
		}
		free, err := db.take(ctx, q, c, now)
		a.Rows = append(a.Rows, free...)
		return err
	})
	return a, err
}

// take gives a session what is due.
func (db *DB) take(ctx context.Context, q sqlstore.Queries, c sqlstore.ClaimArgs, now int64) ([]sqlstore.HeadRow, error) {
	var free []struct {
		Ref, Since int64
		Waited     sqlstore.Text
	}
	if err := sqlx.SelectContext(ctx, q, &free, claimable, now, c.Known, c.Limit, c.Fresh, c.Rooms); err != nil || len(free) == 0 {
		return nil, err
	}
	numbers, chosen := make([]int64, len(free)), make(map[int64]int, len(free))
	for i, f := range free {
		numbers[i], chosen[f.Ref] = f.Ref, i
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	if _, err := q.ExecContext(ctx, take, c.Token, string(list)); err != nil {
		return nil, err
	}
	var rows []sqlstore.HeadRow
	if err := sqlx.SelectContext(ctx, q, &rows, taken, string(list)); err != nil {
		return nil, err
	}
	for i := range rows {
		f := free[chosen[int64(rows[i].Number)]]
		rows[i].Waited = f.Waited
		if err := rows[i].Since.Scan(f.Since); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// giveBack releases works that a session holds.
func (db *DB) giveBack(ctx context.Context, token int64, works string) error {
	return db.writer.share(ctx, func(ctx context.Context, q sqlstore.Queries) error {
		_, err := q.ExecContext(ctx, giveBack, db.clock(), token, works)
		return err
	})
}

// post stores a signal and wakes its work.
func (db *DB) post(ctx context.Context, p sqlstore.PostArgs) (a sqlstore.PostAnswer, err error) {
	err = db.writer.share(ctx, func(ctx context.Context, q sqlstore.Queries) error {
		var ref, received int64
		a = sqlstore.PostAnswer{}
		err := q.QueryRowxContext(ctx, findWork, p.ID.Work, p.ID.Saga).Scan(&ref, &received)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if a.Found, a.There = true, true; p.Number != 0 && p.Number != received+1 {
			return q.QueryRowxContext(ctx, signalKnown, ref, p.Key).Scan(&a.There)
		}
		now := db.clock()
		res, err := q.ExecContext(ctx, postSignal, ref, received+1, now, p.Kind, p.Key, p.Actor, p.Reason, p.Doc, p.ByHand)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); n == 0 || err != nil {
			return err
		}
		a.Number = sqlstore.Number(received + 1)
		if err := a.At.Scan(now); err != nil {
			return err
		}
		_, err = q.ExecContext(ctx, countSignal, ref, now)
		return err
	})
	return a, err
}

// identity reads which file this is.
func identity(ctx context.Context, q sqlstore.Queries) (string, error) {
	var id string
	err := q.QueryRowxContext(ctx, whoAmI).Scan(&id)
	return id, err
}
