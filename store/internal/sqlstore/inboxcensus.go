package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/rows"
)

// What was judged is counted as it is judged, replayed or purged, in the same transaction: counting
// it when a person asks would read the whole inbox. What is to be judged is read, along its index.
//
// Processes that judge at the same time would wait for each other's rows, so each handle draws one
// of [Shards]. A count is the sum over them; one of them alone may be below zero.

// Shards is how many rows there are at most for each count.
const Shards = 16

// judgedText adds to counts. It takes a shard and a JSON list of [source, disposition, how many,
// microseconds].
func (d *Dialect) judgedText() string {
	return `INSERT INTO amends_inbox_counts AS c (source, disposition, shard, count, last_at)
		SELECT e.value ->> 0, e.value ->> 1, CAST(? AS bigint), CAST(e.value ->> 2 AS bigint), ` + d.MomentOf(`CAST(e.value ->> 3 AS bigint)`) + `
		FROM ` + d.Elements + ` WHERE true ` + OnCounted
}

// OnCounted is what becomes of a count that is there.
const OnCounted = `ON CONFLICT (source, disposition, shard) DO UPDATE SET count = c.count + excluded.count,
		last_at = CASE WHEN excluded.last_at > c.last_at THEN excluded.last_at ELSE c.last_at END`

// CountJudged adds what was judged to the counts, or takes it from them where the numbers are
// negative. It is the last that a transaction does: others wait for these rows.
func CountJudged(ctx context.Context, s *Store, q Queries, judged []intake.Count) error {
	return countJudged(ctx, s.db, q, judged)
}

func countJudged(ctx context.Context, d *Dialect, q Queries, judged []intake.Count) error {
	if len(judged) == 0 {
		return nil
	}
	sums := summed(judged)
	list := make([][4]any, len(sums))
	for i, c := range sums {
		list[i] = [4]any{c.Source, string(c.Disposition), c.Count, c.Last.UnixMicro()}
	}
	text, err := json.Marshal(list)
	if err == nil {
		_, err = q.ExecContext(ctx, d.Bind(d.judgedText()), d.Shard, string(text))
	}
	return wrap(err, "count what was judged")
}

// summed is one row for each source and disposition. They are in order, so that two that meet in a
// shard do not deadlock.
func summed(judged []intake.Count) (sums []intake.Count) {
	judged = slices.Clone(judged)
	slices.SortStableFunc(judged, func(a, b intake.Count) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Disposition, b.Disposition))
	})
	for _, c := range judged {
		last := len(sums) - 1
		if last < 0 || sums[last].Source != c.Source || sums[last].Disposition != c.Disposition {
			sums = append(sums, c)
			continue
		}
		sums[last].Count += c.Count
		if c.Last.After(sums[last].Last) {
			sums[last].Last = c.Last
		}
	}
	return sums
}

// uncounted changes rows of amends_inbox by a statement, and says which, and what is no longer counted.
func (s *inboxRole) uncounted(ctx context.Context, q Queries, statement string, args ...any) (numbers []int64, gone []intake.Count, err error) {
	var number int64
	fields := func(c *intake.Count) []rows.Field {
		return append(rows.CountFields(c), rows.Field{Name: "number", At: &number})
	}
	err = s.db.choose(ctx, q, rows.Into(&gone, fields, func(*intake.Count) { numbers = append(numbers, number) }), statement+` RETURNING number, source, disposition, -1 AS count, received_at AS last_at`, args...)
	return numbers, gone, err
}

// Counts returns how many deliveries of each source met which disposition.
func (s *inboxRole) Counts(ctx context.Context) ([]intake.Count, error) {
	var found, counts []intake.Count
	if err := s.db.get(ctx, rows.Into(&found, rows.CountFields), countsText); err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	for _, c := range summed(found) {
		if c.Count > 0 {
			counts = append(counts, c)
		}
	}
	return counts, nil
}

// countsText groups by an expression, or SQLite would read the whole inbox in the order of an index
// that begins with source.
const countsText = `
	SELECT source, disposition, count, last_at FROM amends_inbox_counts
	UNION ALL
	SELECT source || '', '', count(*), max(received_at) FROM amends_inbox WHERE processed_at IS NULL GROUP BY source || ''`
