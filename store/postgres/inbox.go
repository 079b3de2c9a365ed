package postgres

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/batch"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// deliveries are what one call of Accept stores.
type deliveries []*rows.Incoming

// patience is how long a batch may be on its way. Those who wait for it leave earlier.
const patience = 10 * time.Second

// write stores what several calls brought.
func (db *DB) write(calls []*batch.Call[deliveries]) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db.divide(ctx, calls)
}

// divide stores calls at once and, when the database refuses one of them, in halves, so that the
// others are stored whatever that one is.
func (db *DB) divide(ctx context.Context, calls []*batch.Call[deliveries]) {
	var batch deliveries
	for _, c := range calls {
		batch = append(batch, c.Work...)
	}
	err := db.deliver(ctx, batch)
	if half := len(calls) / 2; half > 0 && (refused(err) || undone(err)) {
		db.divide(ctx, calls[:half])
		db.divide(ctx, calls[half:])
		return
	}
	err = pgdb.Explain(ctx, err)
	for _, c := range calls {
		c.Answer(err)
	}
}

// deliver stores a batch in one transaction, which is one statement unless two events of one key
// say different things.
func (db *DB) deliver(ctx context.Context, batch deliveries) error {
	rounds := rows.Rounds(batch)
	if len(rounds) == 1 {
		return db.deliveries.plain(ctx, func(ctx context.Context, q sqlstore.Queries) error {
			text, args := receive.of(arrivals(rounds[0]), db.shard, true)
			_, err := q.ExecContext(ctx, text, args...)
			return err
		})
	}
	return db.deliveries.whole(ctx, func(ctx context.Context, q sqlstore.Queries) error { return db.acceptRounds(ctx, q, rounds) })
}

// acceptRounds stores rounds one behind the other, and counts their copies behind them all.
func (db *DB) acceptRounds(ctx context.Context, q sqlstore.Queries, rounds [][]*rows.Incoming) error {
	sums := make(map[string]int64)
	for _, r := range rounds {
		text, args := receive.of(arrivals(r), db.shard, false)
		var copied []struct {
			Source string
			Copies int64
		}
		if err := rows.Select(ctx, q, &copied, text, args...); err != nil {
			return err
		}
		for _, c := range copied {
			sums[c.Source] += c.Copies
		}
	}
	if len(sums) == 0 {
		return nil
	}
	var now time.Time
	if err := sqlx.GetContext(ctx, q, &now, `SELECT clock_timestamp()`); err != nil {
		return err
	}
	return sqlstore.CountBlocked(ctx, db.store, q, ledger.ByReceiver, sums, now)
}

// arrivals are the rows of a round, in the order of [acceptColumns].
func arrivals(ins deliveries) [][]any {
	table := make([][]any, len(ins))
	for i, in := range ins {
		row := make([]any, 0, len(acceptColumns))
		row = append(row, in.Key[:], in.Twin[:], in.Content[:], in.Copies, in.Judged)
		row = append(row, in.Values...)
		var body any
		if in.Body != "" {
			body = in.Body
		}
		table[i] = append(row, body)
	}
	return table
}

// page runs fn and stores events in one transaction.
func (db *DB) page(ctx context.Context, ins []*rows.Incoming, fn func(context.Context, sqlstore.Queries) (bool, error)) error {
	rounds := rows.Rounds(ins)
	return db.deliveries.whole(ctx, func(ctx context.Context, q sqlstore.Queries) error {
		if store, err := fn(ctx, q); err != nil || !store {
			return err
		}
		return db.acceptRounds(ctx, q, rounds)
	})
}
