package postgres

import (
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// countText is one statement, so that no connection can go silent in the middle of it. Counters that
// another process folds right now are left to it; those that are folded, and the sums that they become
// part of, are never the rows of a counter that still speaks. The day grows last, by what the totals
// really add: the row keeps what it counted before, so that this holds also when the call is made a
// second time beside the first.
const countText = `WITH
	now AS MATERIALIZED (SELECT ` + clock + ` AS now),
	clock AS MATERIALIZED (SELECT now, now - $4::bigint * interval '1 microsecond' AS ago FROM now),
	silent AS (
		DELETE FROM amends_duplicates WHERE (saga, work_id, source, counter) IN (
			SELECT saga, work_id, source, counter FROM amends_duplicates
			WHERE counter <> 0 AND counter <> $2::bigint AND first_at < (SELECT ago FROM clock) AND last_at < (SELECT ago FROM clock)
			ORDER BY first_at LIMIT $5 FOR UPDATE SKIP LOCKED)
		RETURNING saga, work_id, source, count, first_at, last_at),
	folded AS (
		INSERT INTO amends_duplicates AS d (saga, work_id, source, counter, count, first_at, last_at)
		SELECT saga, work_id, source, 0, sum(count), min(first_at), max(last_at) FROM silent
		GROUP BY saga, work_id, source ORDER BY saga, work_id, source
		ON CONFLICT (saga, work_id, source, counter) DO UPDATE SET count = d.count + excluded.count,
			first_at = least(d.first_at, excluded.first_at), last_at = greatest(d.last_at, excluded.last_at)
		RETURNING 1),
	counted AS (
		INSERT INTO amends_duplicates AS d (saga, work_id, source, counter, count, first_at, last_at)
		SELECT value ->> 0, ` + sqlstore.CountedWork + `, value ->> 2, $2::bigint, (value ->> 3)::bigint, clock.now, clock.now
		FROM clock CROSS JOIN json_array_elements($3::json) AS value
		ON CONFLICT (saga, work_id, source, counter) DO UPDATE SET previous = d.count, count = excluded.count, last_at = excluded.last_at
		WHERE d.count < excluded.count
		RETURNING d.source, d.count - d.previous AS added)
	INSERT INTO amends_blocked_days AS b (day, layer, source, count)
	SELECT (SELECT (now AT TIME ZONE 'UTC')::date FROM clock), '` + ledger.ByStart + `', source, sum(added) FROM counted
	GROUP BY source
	HAVING sum(added) > 0 AND (SELECT count(*) FROM folded) >= 0 -- behind what is folded
	ORDER BY source COLLATE "C"
	` + sqlstore.OnBlocked
