package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// count stores the totals of a counter of blocked duplicates, and folds what is silent.
func (db *DB) count(ctx context.Context, counter int64, totals string) error {
	return db.writer.share(ctx, func(ctx context.Context, q sqlstore.Queries) error {
		now := db.clock()
		var added []int64
		if err := sqlx.SelectContext(ctx, q, &added, countTotals, now, counter, totals); err != nil {
			return err
		}
		if err := db.foldSilent(ctx, q, counter, now-int64(ledger.CounterSilence/time.Microsecond)); err != nil {
			return err
		}
		var sum int64
		for _, n := range added {
			sum += n
		}
		return sqlstore.CountBlocked(ctx, db.store, q, ledger.ByStart, sum, time.UnixMicro(now))
	})
}

// foldSilent folds the counters that spoke last before a time.
func (db *DB) foldSilent(ctx context.Context, q sqlstore.Queries, counter, before int64) error {
	if r, err := q.ExecContext(ctx, foldSilent, before, counter, sqlstore.MaxFold); err != nil {
		return err
	} else if n, err := r.RowsAffected(); n == 0 || err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, dropSilent, before, counter, sqlstore.MaxFold)
	return err
}

// silentCounters takes: $1 before when they spoke last, $2 the counter that speaks now, $3 how
// many.
const silentCounters = `
	SELECT saga, work_id, source, counter FROM amends_duplicates
	WHERE counter <> 0 AND counter <> $2 AND first_at < $1 AND last_at < $1 ORDER BY first_at, saga, work_id, source, counter LIMIT $3`

const (
	countTotals = `INSERT INTO amends_duplicates AS d (saga, work_id, source, counter, count, first_at, last_at)
		SELECT value ->> 0, ` + sqlstore.CountedWork + `, value ->> 2, $2, value ->> 3, $1, $1 FROM json_each($3) WHERE true
		ON CONFLICT (saga, work_id, source, counter) DO UPDATE SET previous = d.count, count = excluded.count, last_at = excluded.last_at
		WHERE d.count < excluded.count
		RETURNING count - previous`

	foldSilent = `INSERT INTO amends_duplicates AS d (saga, work_id, source, counter, count, first_at, last_at)
		SELECT saga, work_id, source, 0, sum(count), min(first_at), max(last_at) FROM amends_duplicates
		WHERE (saga, work_id, source, counter) IN (` + silentCounters + `) GROUP BY saga, work_id, source
		ON CONFLICT (saga, work_id, source, counter) DO UPDATE SET count = d.count + excluded.count,
			first_at = min(d.first_at, excluded.first_at), last_at = max(d.last_at, excluded.last_at)`

	dropSilent = `DELETE FROM amends_duplicates WHERE (saga, work_id, source, counter) IN (` + silentCounters + `)`
)
