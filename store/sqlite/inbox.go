package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/batch"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// receive stores events with whatever else is to be written.
func (db *DB) receive(ctx context.Context, ins []*rows.Incoming) error {
	return explain(db.changes.Do(ctx, change{size: len(ins), run: func(ctx context.Context, b *shared) error { return db.accept(ctx, b, ins) }}))
}

func (db *DB) accept(ctx context.Context, b *shared, ins []*rows.Incoming) error {
	now, at := db.calendar()
	if b.number == 0 {
		if err := db.heard.lastNumber.QueryRowContext(ctx).Scan(&b.number); err != nil {
			return err
		}
	}
	var judged []intake.Count
	copies := make(map[string]int64)
	for _, in := range ins {
		stored, known, err := db.add(ctx, in, b.number+1, now)
		if err != nil {
			return err
		}
		again := in.Copies
		if stored {
			b.number++
			again--
		}
		if again > 0 {
			copies[in.Census.Source] += again
		}
		if known {
			judged = append(judged, in.Census)
		}
	}
	if err := sqlstore.CountJudged(ctx, db.store, b, judged); err != nil {
		return err
	}
	return sqlstore.CountBlocked(ctx, db.store, b, ledger.ByReceiver, copies, at)
}

// add stores an event, or counts it as a copy, or keeps it beside the one it conflicts with. It
// reports whether it was stored, and whether judged.
func (db *DB) add(ctx context.Context, in *rows.Incoming, number, now int64) (stored, judged bool, err error) {
	for _, key := range []intake.Digest{in.Key, in.Twin} {
		fresh, err := affects(db.heard.addDigest.ExecContext(ctx, key[:], in.Content[:], number, in.Copies, now))
		if err != nil {
			return false, false, err
		}
		if fresh {
			return true, in.Judged && key == in.Key, db.deliver(ctx, key, in, number, now)
		}
		if known, err := affects(db.heard.countCopy.ExecContext(ctx, key[:], in.Content[:], in.Copies, now)); known || err != nil {
			return false, false, err
		}
	}
	return false, false, nil
}

// deliver puts an event into the inbox.
func (db *DB) deliver(ctx context.Context, key intake.Digest, in *rows.Incoming, number, now int64) error {
	args := append(make([]any, 0, 5+len(in.Values)), number, key[:], nil, nil, nil)
	if in.Judged && key == in.Key {
		args = append(args[:2], now, in.Values[rows.Disposition], in.Values[rows.Why])
	}
	args = append(args, in.Values...)
	if key != in.Key {
		args[5+rows.Disposition] = string(intake.Conflict)
	}
	if _, err := db.heard.addDelivery.ExecContext(ctx, args...); err != nil {
		return err
	}
	if in.Body == "" {
		return nil
	}
	_, err := db.heard.addBody.ExecContext(ctx, number, now, in.Body)
	return err
}

// affects reports whether a statement changed a row.
func affects(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// change is something to be written beside others in one transaction.
//
// Its statements cannot be cancelled one by one: the driver watches a context with a goroutine per
// statement, which costs more than the statement. The transaction as a whole is short.
type change struct {
	run  func(context.Context, *shared) error
	size int
}

// shared is one transaction of changes.
type shared struct {
	sqlstore.Queries

	number int64 // the last that was given to a delivery, 0 before the first of the transaction
}

// commit makes changes in one transaction. When one of them fails, each gets a transaction of its
// own, so that none fails for another.
func (db *DB) commit(calls []*batch.Call[change]) {
	err := db.together(calls)
	for _, c := range calls {
		if err != nil && len(calls) > 1 {
			c.Answer(db.together([]*batch.Call[change]{c}))
		} else {
			c.Answer(err)
		}
	}
}

func (db *DB) together(calls []*batch.Call[change]) error {
	ctx := context.Background() // of none of the callers: each waits for as long as it likes
	return db.transaction(ctx, func(ctx context.Context, q sqlstore.Queries) error {
		b := shared{Queries: q}
		for _, c := range calls {
			if err := c.Work.run(ctx, &b); err != nil {
				return err
			}
		}
		return nil
	})
}

// page makes a change of a sweep and stores events in one transaction, which others share.
func (db *DB) page(ctx context.Context, ins []*rows.Incoming, fn func(context.Context, sqlstore.Queries) (bool, error)) error {
	return db.changes.DoOrNot(ctx, change{size: 1 + len(ins), run: func(ctx context.Context, b *shared) error {
		if store, err := fn(ctx, b); err != nil || !store {
			return err
		}
		return db.accept(ctx, b, ins)
	}})
}

// change runs fn in a transaction, which others share.
func (db *DB) change(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	var panicked any
	err := db.changes.DoOrNot(ctx, change{size: 1, run: func(ctx context.Context, b *shared) error {
		defer func() { panicked = recover() }() // it is the caller's, not the writer's
		if err := fn(ctx, b); !errors.Is(err, sqlstore.ErrRefused) {
			return err
		}
		return nil
	}})
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// gated runs the gate's statements as they were prepared.
func (db *DB) gated(q sqlstore.Queries) sqlstore.Queries {
	return sqlstore.Prepared{Queries: q, Stmt: func(_ context.Context, text string) *sqlx.Stmt {
		if s := db.heard.gated[text]; s != nil {
			return &sqlx.Stmt{Stmt: *s, Mapper: db.writer.conn.Mapper}
		}
		return nil
	}}
}

// entries writes rows by a statement for one.
func entries(stmt **sql.Stmt) func(context.Context, sqlstore.Queries, [][]any) (int64, error) {
	return func(ctx context.Context, _ sqlstore.Queries, table [][]any) (int64, error) {
		for _, row := range table {
			if _, err := (*stmt).ExecContext(ctx, row...); err != nil {
				return 0, err
			}
		}
		return int64(len(table)), nil
	}
}
