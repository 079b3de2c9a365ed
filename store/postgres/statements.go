package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// words are Postgres's for the shared statements. Only tests set the clock.
var words = map[string]string{
	"now":     clock,
	"ms":      `interval '1 millisecond'`,
	"numbers": `(SELECT value::bigint FROM json_array_elements_text($?::json) AS value)`,
	"works":   `(SELECT value ->> 0 AS saga, value ->> 1 AS work FROM json_array_elements($?::json) AS value)`,
}

const clock = `coalesce('epoch'::timestamptz + $1::bigint * interval '1 microsecond', clock_timestamp())`

// column is a column of amends_records and its type.
type column struct{ name, kind string }

// recordColumns are [sqlstore.RecordColumns] with their types, so in the order of [sqlstore.Values].
var recordColumns = func() []column {
	kinds := map[string]string{
		"head": "bigint", "session": "bigint", "arm_budget_ms": "bigint", "wait_ms": "bigint", "nonce": "bigint",
		"seq": "integer", "version": "integer", "attempt": "integer", "arm_attempt": "integer", "arm_reissue": "integer",
		"rank": "smallint", "held": "boolean", "body_dropped": "boolean", "hash": "bytea",
	}
	var columns []column
	for name := range strings.SplitSeq(sqlstore.RecordColumns, ",") {
		c := column{name: strings.TrimSpace(name), kind: "text"}
		if kind, ok := kinds[c.name]; ok {
			c.kind = kind
		}
		columns = append(columns, c)
	}
	return columns
}()

var (
	followColumns = append([]column{{"prev", "bytea"}}, recordColumns...)
	// A start has its work's name and not yet a number.
	startColumns = append([]column{{"saga", "text"}, {"work", "text"}}, recordColumns[1:]...)
)

// firstColumn is the parameter of the first column: $1 is the clock and $2 the session.
const firstColumn = 3

// many is the table u of a batch's rows, one parameter with an array per column. A column in which every row is
// NULL is a NULL parameter: unnest fills it up.
func many(columns []column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = fmt.Sprintf("$%d::%s[]", firstColumn+i, c.kind)
	}
	return "(SELECT * FROM unnest(" + strings.Join(parts, ", ") + ") AS u (" + names(columns) + "))"
}

// one is the table u of a single row, one parameter per column.
func one(columns []column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = fmt.Sprintf("$%d::%s AS %s", firstColumn+i, c.kind, c.name)
	}
	return "(SELECT " + strings.Join(parts, ", ") + ")"
}

func names(columns []column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = c.name
	}
	return strings.Join(parts, ", ")
}

// of returns the columns behind the first n, each with an alias before it.
func of(alias string, columns []column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = alias + "." + c.name
	}
	return strings.Join(parts, ", ")
}

const (
	isLive  = `IN ('running', 'retrying', 'compensating')`
	isEnded = `IN ('completed', 'compensated')`
)

// lease is one moment for the whole batch, and whether the session may arm in it. It is read before anything is locked, so
// it also says how long the statement waits for a lock, and no other on its connection: a statement outside of any
// transaction is one of its own. 0 leaves that to whose transaction it is.
func lease(patience time.Duration) string {
	waits := ""
	if patience > 0 {
		waits = fmt.Sprintf(", set_config('lock_timeout', '%dms', true) AS patience", patience.Milliseconds())
	}
	return `lease AS MATERIALIZED (
		SELECT c.now, EXISTS (SELECT FROM amends_sessions WHERE token = $2 AND NOT dead AND expires > c.now) AS live` + waits + `
		FROM (SELECT ` + clock + ` AS now) AS c)`
}

// How long a record, a start and a start that was blocked before wait for a lock. They are shorter than the server's
// deadlock_timeout (1 s), so that it is we who give way and not the caller whose transaction is open. A start waits as
// good as not at all: the others of its batch wait with it.
const (
	recordPatience  = 250 * time.Millisecond
	startPatience   = 10 * time.Millisecond
	blockedPatience = 250 * time.Millisecond
)

// followText stores records behind their predecessors and brings the heads they change up to date. The order
// inside the insert is what keeps two writers that meet from waiting for each other in a circle. The cases of
// the head, from the top: the record leaves the schedule alone, its writer keeps it, it has an unread signal, it
// moves by itself, it is parked or has ended. A batch in which a record consumes signals marks them, too.
func followText(rows string, signals bool) string {
	mark := ""
	if signals {
		mark = `,
	s AS (
		UPDATE amends_signals AS s SET read = r.seq
		FROM r CROSS JOIN LATERAL json_array_elements_text(r.signals::json) AS named (id)
		WHERE r.signals IS NOT NULL AND s.id = named.id::bigint AND s.head = r.head)`
	}
	return `WITH ` + lease(recordPatience) + `,
	r AS (
		INSERT INTO amends_records (` + names(recordColumns) + `, at)
		SELECT ` + of("u", recordColumns) + `, greatest(lease.now, p.at)
		FROM ` + rows + ` AS u
			JOIN amends_records AS p ON p.head = u.head AND p.seq = u.seq - 1 AND p.hash = u.prev
			CROSS JOIN lease
		WHERE u.arm_attempt IS NULL OR lease.live
		ORDER BY u.head
		ON CONFLICT (head, seq) DO NOTHING
		RETURNING head, seq, at, session, kind, revision, version, status, reason, wait_ms, rank, held, signals, snapshot IS NOT NULL AS folded,
			status ` + isLive + ` AS live, status ` + isEnded + ` AS ended,
			CASE WHEN signals IS NULL THEN 0 ELSE json_array_length(signals::json) END AS read),
	h AS (
		UPDATE amends_heads AS h SET
			status = r.status, reason = r.reason, updated = r.at,
			consumed = h.consumed + r.read,
			revision = CASE WHEN r.kind = 'revised' THEN r.revision ELSE h.revision END,
			version = CASE WHEN r.kind = 'revised' THEN r.version ELSE h.version END,
			base = CASE WHEN r.folded THEN r.seq ELSE h.base END,
			rank = coalesce(r.rank, h.rank),
			session = CASE WHEN r.held IS NULL THEN h.session WHEN r.held AND r.live THEN r.session END,
			waits_for = CASE WHEN r.held IS NULL THEN h.waits_for END,
			finished = CASE WHEN r.held IS NULL THEN h.finished WHEN r.ended THEN coalesce(h.finished, r.at) END,
			due = CASE
				WHEN r.held IS NULL THEN h.due
				WHEN r.held AND r.live THEN NULL
				WHEN h.posted > h.consumed + r.read THEN r.at
				WHEN r.live THEN r.at + coalesce(r.wait_ms, 0) * interval '1 millisecond'
			END
		FROM r
		WHERE h.number = r.head AND (r.held IS NOT NULL OR r.read > 0 OR r.folded OR r.kind = 'revised'))` + mark + `
	SELECT (SELECT live FROM lease), min(at), max(at), array_agg(head) FROM r`
}

// startText accepts works that are not known yet: head and first record. schema is empty, or the schema's name
// and a point.
func startText(rows string, patience time.Duration, schema string) string {
	t := `WITH ` + lease(patience) + `,
	u AS MATERIALIZED ` + rows + `,
	h AS (
		INSERT INTO amends_heads (saga, work, version, revision, status, reason, rank, session, due, finished, created, updated)
		SELECT u.saga, u.work, coalesce(u.version, 0), u.revision, u.status, u.reason, u.rank,
			CASE WHEN u.held AND u.status ` + isLive + ` THEN u.session END,
			CASE WHEN NOT u.held AND u.status ` + isLive + `
				THEN lease.now + coalesce(u.wait_ms, 0) * interval '1 millisecond' END,
			CASE WHEN u.status ` + isEnded + ` THEN lease.now END,
			lease.now, lease.now
		FROM u CROSS JOIN lease
		WHERE u.arm_attempt IS NULL OR lease.live
		ORDER BY u.work COLLATE "C", u.saga COLLATE "C"
		ON CONFLICT (work, saga) DO NOTHING
		RETURNING number, saga, work, created),
	r AS (
		INSERT INTO amends_records (` + names(recordColumns) + `, at)
		SELECT h.number, ` + of("u", recordColumns[1:]) + `, h.created
		FROM u JOIN h ON h.work = u.work AND h.saga = u.saga)
	SELECT (SELECT live FROM lease), (SELECT now FROM lease), array_agg(h.number), array_agg(h.saga), array_agg(h.work) FROM h`
	return qualify(t, schema)
}

// placesText reads what stands where records were not taken, and before them.
const placesText = `
	SELECT u.i, u.head, own.hash AS own, own.at AS ownat, previous.hash AS previous
	FROM unnest($1::integer[], $2::bigint[], $3::integer[]) AS u (i, head, seq)
		LEFT JOIN amends_records AS own ON own.head = u.head AND own.seq = u.seq
		LEFT JOIN amends_records AS previous ON previous.head = u.head AND previous.seq = u.seq - 1`

// lockedText finds the works that another transaction has locked.
const lockedText = `
	WITH free AS MATERIALIZED (
		SELECT number FROM amends_heads WHERE number = ANY ($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED)
	SELECT number FROM amends_heads WHERE number = ANY ($1::bigint[]) AND number NOT IN (SELECT number FROM free)`

// startPlacesText reads the first records of works that were not accepted.
func startPlacesText(schema string) string {
	return qualify(`
	SELECT u.i, h.number AS head, own.hash AS own, own.at AS ownat
	FROM unnest($1::integer[], $2::text[], $3::text[]) AS u (i, saga, work)
		JOIN amends_heads AS h ON h.work = u.work AND h.saga = u.saga
		JOIN amends_records AS own ON own.head = h.number AND own.seq = 1`, schema)
}

// qualify names the schema before every table, for statements that run on connections with a search_path of
// their own.
func qualify(text, schema string) string {
	return strings.ReplaceAll(text, "amends_", schema+"amends_")
}
