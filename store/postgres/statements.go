package postgres

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// words are Postgres's for the shared statements. Only tests set the clock.
var words = map[string]string{
	"now":      clock,
	"ms":       `interval '1 millisecond'`,
	"passing":  `FOR NO KEY UPDATE SKIP LOCKED`, // what another transaction has locked is passed over
	"inorder":  `ORDER BY e.source, e.tenant, e.type, e.id FOR UPDATE OF e`,
	"numbers":  `(SELECT value::bigint FROM json_array_elements_text($?::json) AS value)`,
	"elements": `jsonb_array_elements($?::jsonb)`, // it is taken apart in half the time of json
	"works":    `(SELECT value ->> 0 AS saga, value ->> 1 AS work FROM jsonb_array_elements($?::jsonb) AS value)`,
}

const clock = `coalesce('epoch'::timestamptz + $1::bigint * interval '1 microsecond', clock_timestamp())`

// column is a value of a row that is appended, and its type.
type column struct{ name, kind string }

var (
	// A record behind another: what chains it, what is stored, and from held on what its instance
	// must show, which is NULL unless the record changes it.
	followColumns = append([]column{
		{"instance", "bigint"}, {"prev", "bytea"}, {"dispatches", "boolean"},
		{"seq", "integer"}, {"session", "bigint"}, {"hash", "bytea"}, {"external_id", "text"}, {"doc", "text"}, {"body", "text"}, {"snapshot", "text"},
	}, append(said(), column{"signals", "text"}, column{"waits", "text"})...)
	// A start has its work's name, what would be left of it, and the reference that its instance is to have.
	startColumns = append([]column{
		{"ref", "bigint"}, {"saga", "text"}, {"work_id", "text"}, {"hidden", "text"}, {"dispatches", "boolean"}, {"salt", "bytea"},
	}, slices.Concat(followColumns[4:storedColumns], said(), []column{{"waits", "text"}})...)
)

// said are the columns of what a record says to its instance's row.
func said() (columns []column) {
	for _, v := range sqlstore.Values {
		columns = append(columns, column{v.Name, v.Kind})
	}
	return columns
}

// wordsOf are Postgres's for the columns of an instance: what a record says is in the row that is
// called row, and stored at a time.
func wordsOf(row, at string) func(name string) string {
	return func(name string) string {
		switch name {
		case "at":
			return at
		case "ms":
			return `interval '1 millisecond'`
		case "epoch":
			return `'epoch'::timestamptz`
		case "later":
			return "GREATEST"
		case "sooner":
			return "LEAST"
		default:
			return row + "." + name
		}
	}
}

// firstColumn is the parameter of the first column: $1 is the clock and $2 the session.
const firstColumn = 3

// many is the table u of a batch's rows, one parameter with an array per column. A column in which
// every row is NULL is a NULL parameter: unnest fills it up.
func many(columns []column) string {
	return "(SELECT * FROM unnest(" + columnsFrom(firstColumn, columns, "$%[1]d::%[2]s[]") + ") AS u (" + names(columns) + "))"
}

// one is the table u of a single row, one parameter per column.
func one(columns []column) string {
	return "(SELECT " + columnsFrom(firstColumn, columns, "$%d::%s AS %s") + ")"
}

// columnsFrom lists parameters from first on, one for each column: its number, its type and its name in form.
func columnsFrom(first int, columns []column, form string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = fmt.Sprintf(form, first+i, c.kind, c.name)
	}
	return strings.Join(parts, ", ")
}

func names(columns []column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = c.name
	}
	return strings.Join(parts, ", ")
}

// lease is one moment for the whole batch, and whether the session may arm in it. It is read before
// anything is locked, so it also says how long the statement waits for a lock, and no other on its
// connection: a statement outside of any transaction is one of its own. 0 leaves that to whose
// transaction it is.
func lease(patience time.Duration) string {
	waits := ""
	if patience > 0 {
		waits = ", " + patient(patience)
	}
	return `lease AS MATERIALIZED (
		SELECT c.now, EXISTS (SELECT FROM amends_sessions WHERE token = $2 AND NOT dead AND expires_at > c.now) AS live` + waits + `
		FROM (SELECT ` + clock + ` AS now) AS c)`
}

func patient(d time.Duration) string {
	return fmt.Sprintf("set_config('lock_timeout', '%dms', true) AS patience", d.Milliseconds())
}

// How long a record, a start and a start that was blocked before wait for a lock. They are shorter
// than the server's deadlock_timeout (1 s), so that it is we who give way and not the caller whose
// transaction is open. A start waits as good as not at all: the others of its batch wait with it.
const (
	recordPatience  = 250 * time.Millisecond
	startPatience   = 10 * time.Millisecond
	blockedPatience = 250 * time.Millisecond
)

// followText stores records behind their predecessors and brings the instances they change up to
// date. The order of the rows is what keeps two writers that meet from waiting for each other in a
// circle. The cases of the instance, from the top: the record leaves the schedule alone, its writer
// keeps it, it has an unread signal, it moves by itself, it is parked or has ended. With more, a batch
// marks the signals that its records consume, too, and makes waits findable.
//
// Where a place is taken already the statement fails, or, in disputed form, passes over it: which costs every record a second
// look into the index and a second entry in the log. What was stored is then asked of r as a whole: a join of the batch with itself would
// be planned as if it were small.
func followText(rows string, more, disputed bool) string {
	unread, mark, passing, wasStored := "", "", "", "true"
	if disputed { // all of the batch were stored, or this one is among those that were
		passing = `
		ON CONFLICT (instance, seq) DO NOTHING`
		wasStored = `((SELECT count(*) FROM r) = (SELECT count(*) FROM m) OR m.instance = ANY (ARRAY(SELECT instance FROM r)))`
	}
	if more {
		unread = `
			AND (u.consumes IS NULL OR u.consumes <= (SELECT h.received - h.consumed FROM amends_instances AS h WHERE h.ref = u.instance))`
		mark = `,
	s AS (
		UPDATE amends_signals AS s SET consumed_by = m.seq
		FROM m CROSS JOIN LATERAL json_array_elements_text(m.signals::json) AS named (number)
		WHERE m.signals IS NOT NULL AND ` + wasStored + ` AND s.instance = m.instance AND s.number = named.number::bigint),
	w AS (` + waitsFrom(`m WHERE `+wasStored, "m.at") + `)`
	}
	return `WITH ` + lease(recordPatience) + `,
	m AS MATERIALIZED (
		SELECT u.*, greatest(lease.now, p.at) AS at
		FROM ` + rows + ` AS u
			JOIN amends_records AS p ON p.instance = u.instance AND p.seq = u.seq - 1 AND p.hash = u.prev
			CROSS JOIN lease
		WHERE (u.dispatches IS NULL OR lease.live)` + unread + `
		ORDER BY u.instance),
	r AS (
		INSERT INTO amends_records (instance, seq, at, session, hash, external_id, doc, body, snapshot)
		SELECT instance, seq, at, session, hash, external_id, doc, body, snapshot FROM m` + passing + `
		RETURNING instance, at),
	h AS (
		UPDATE amends_instances AS h SET
			` + sqlstore.Update(wordsOf("m", "m.at")) + `
		FROM m
		WHERE m.status IS NOT NULL AND ` + wasStored + ` AND h.ref = m.instance)` + mark + `
	SELECT (SELECT live FROM lease), min(at), max(at), array_agg(instance) FROM r`
}

// waitsFrom makes the waits of rows findable.
func waitsFrom(rows, at string) string {
	return `
		INSERT INTO amends_awaits (name, key, saga, work_id, step, step_key, at)
		SELECT w.value ->> 0, w.value ->> 1, w.value ->> 2, w.value ->> 3, w.value ->> 4, w.value ->> 5, w.at
		FROM (SELECT jsonb_array_elements(waits::jsonb) AS value, ` + at + ` AS at FROM ` + rows + `) AS w
		ON CONFLICT DO NOTHING`
}

// followAlone stores one record that leaves its instance alone, and answers its time, or no row. It fails where the place is taken.
var followAlone = `
	INSERT INTO amends_records (instance, seq, at, session, hash, external_id, doc, body, snapshot)
	SELECT $3::bigint, $6::integer, greatest(c.now, p.at), $7::bigint, $8::bytea, $9::text, $10::text, $11::text, $12::text
	FROM (SELECT ` + clock + ` AS now, ` + patient(recordPatience) + `) AS c
		JOIN amends_records AS p ON p.instance = $3::bigint AND p.seq = $6::integer - 1 AND p.hash = $4::bytea
	WHERE $5::boolean IS NULL OR EXISTS (SELECT FROM amends_sessions WHERE token = $2::bigint AND NOT dead AND expires_at > c.now)
	RETURNING at`

// startText accepts works that are not known yet: instance and first record, and with more what they wait for. A work that is known
// or was erased, and a reference that is taken are passed over. schema is empty, or the schema's name and a
// point.
func startText(rows string, more bool, patience time.Duration, schema string) string {
	waits := ""
	if more {
		waits = `,
	w AS (` + waitsFrom(`u CROSS JOIN lease WHERE u.ref IN (SELECT ref FROM h)`, "lease.now") + `)`
	}
	columns, values := sqlstore.Insert(wordsOf("u", "lease.now"))
	t := `WITH ` + lease(patience) + `,
	u AS MATERIALIZED ` + rows + `,
	h AS (
		INSERT INTO amends_instances (ref, ` + columns + `)
		SELECT u.ref, ` + values + `
		FROM u CROSS JOIN lease
		WHERE (u.dispatches IS NULL OR lease.live)
			AND (SELECT x.instance FROM amends_erased AS x WHERE x.name = u.hidden AND x.saga = u.saga) IS NULL
		ORDER BY u.work_id COLLATE "C", u.saga COLLATE "C"
		ON CONFLICT DO NOTHING
		RETURNING ref),
	r AS (
		INSERT INTO amends_records (instance, seq, at, session, hash, external_id, doc, body, snapshot)
		SELECT u.ref, 1, lease.now, u.session, u.hash, u.external_id, u.doc, u.body, u.snapshot
		FROM u CROSS JOIN lease WHERE u.ref IN (SELECT ref FROM h))` + waits + `
	SELECT (SELECT live FROM lease), (SELECT now FROM lease), array_agg(h.ref) FROM h`
	return qualify(t, schema)
}

// placesText reads what stands where records were not taken, and before them.
const placesText = `
	SELECT u.i, u.instance, own.hash AS own, own.at AS ownat, previous.hash AS previous,
		(SELECT h.received - h.consumed FROM amends_instances AS h WHERE h.ref = u.instance) AS unread
	FROM unnest($1::integer[], $2::bigint[], $3::integer[]) AS u (i, instance, seq)
		LEFT JOIN amends_records AS own ON own.instance = u.instance AND own.seq = u.seq
		LEFT JOIN amends_records AS previous ON previous.instance = u.instance AND previous.seq = u.seq - 1`

// lockedText finds the works that another transaction has locked.
const lockedText = `
	WITH free AS MATERIALIZED (
		SELECT ref FROM amends_instances WHERE ref = ANY ($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED)
	SELECT ref FROM amends_instances WHERE ref = ANY ($1::bigint[]) AND ref NOT IN (SELECT ref FROM free)`

// startPlacesText reads the first records of works that were not accepted. Where they have gone it has a hash that no record has.
func startPlacesText(schema string) string {
	return qualify(`
	SELECT u.i, h.ref AS instance, coalesce(own.hash, '\x00') AS own, coalesce(own.at, h.created_at) AS ownat
	FROM unnest($1::integer[], $2::text[], $3::text[], $4::text[]) AS u (i, saga, work_id, hidden)
		JOIN amends_instances AS h ON h.ref = coalesce(
			(SELECT n.ref FROM amends_instances AS n WHERE n.work_id = u.work_id AND n.saga = u.saga),
			(SELECT x.instance FROM amends_erased AS x WHERE x.name = u.hidden AND x.saga = u.saga))
		LEFT JOIN amends_records AS own ON own.instance = h.ref AND own.seq = 1
	WHERE own.seq = 1 OR NOT `+sqlstore.Hears, schema)
}

// qualify names the schema before every table, for statements that run on connections with a
// search_path of their own.
func qualify(text, schema string) string {
	return strings.ReplaceAll(text, "amends_", schema+"amends_")
}
