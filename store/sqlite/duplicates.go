package sqlite

import (
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// countTexts do what Postgres does in one statement. The day grows first, by what the totals are going to add.
var countTexts = []string{
	`INSERT INTO amends_blocked_days AS b (day, layer, source, count)
		SELECT $1 - $1 % 86400000000, '` + ledger.ByStart + `', source, sum(added) FROM (
			SELECT value ->> 2 AS source, max((value ->> 3) - coalesce(d.count, 0), 0) AS added FROM json_each($3) LEFT JOIN amends_duplicates AS d
				ON d.saga = value ->> 0 AND d.work_id = ` + sqlstore.CountedWork + ` AND d.source = value ->> 2 AND d.counter = $2)
		GROUP BY source HAVING sum(added) > 0
		` + sqlstore.OnBlocked,

	`INSERT INTO amends_duplicates AS d (saga, work_id, source, counter, count, first_at, last_at)
		SELECT value ->> 0, ` + sqlstore.CountedWork + `, value ->> 2, $2, value ->> 3, $1, $1 FROM json_each($3) WHERE true
		ON CONFLICT (saga, work_id, source, counter) DO UPDATE SET previous = d.count, count = excluded.count, last_at = excluded.last_at
		WHERE d.count < excluded.count`,

	`INSERT INTO amends_duplicates AS d (saga, work_id, source, counter, count, first_at, last_at)
		SELECT saga, work_id, source, 0, sum(count), min(first_at), max(last_at) FROM amends_duplicates
		WHERE (saga, work_id, source, counter) IN (` + silentCounters + `) GROUP BY saga, work_id, source
		ON CONFLICT (saga, work_id, source, counter) DO UPDATE SET count = d.count + excluded.count,
			first_at = min(d.first_at, excluded.first_at), last_at = max(d.last_at, excluded.last_at)`,

	`DELETE FROM amends_duplicates WHERE (saga, work_id, source, counter) IN (` + silentCounters + `)`,
}

const silentCounters = `
	SELECT saga, work_id, source, counter FROM amends_duplicates
	WHERE counter <> 0 AND counter <> $2 AND first_at < $1 - $4 AND last_at < $1 - $4 ORDER BY first_at, saga, work_id, source, counter LIMIT $5`
