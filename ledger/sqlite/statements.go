package sqlite

import (
	"strings"

	"github.com/amends-dev/amends/ledger/internal/engine"
)

// words are SQLite's for the shared statements.
var words = map[string]string{
	"now":     `$1`,
	"ms":      `1000`,
	"numbers": `(SELECT value FROM json_each($?))`,
	"works":   `(SELECT value ->> 0 AS saga, value ->> 1 AS work FROM json_each($?))`,
}

const sessionLives = `SELECT count(*) FROM amends_sessions WHERE token = ? AND NOT dead AND expires > ?`

// The write path. Parameters are ? in order: the driver binds them fastest.
var (
	// addRecord accepts a record on the tail it was decided on: the predecessor is there, with that hash. A
	// predecessor with a later time means that the clock went back; such a record is added by addStart.
	addRecord = `INSERT INTO amends_records (` + engine.RecordColumns + `, at)
		SELECT ` + placeholders(engine.Width+1) + ` FROM amends_records AS p
		WHERE p.head = ? AND p.seq = ? AND p.hash = ? AND p.at <= ?
		ON CONFLICT (head, seq) DO NOTHING`

	// addStart adds a record that needs no check any more.
	addStart = `INSERT INTO amends_records (` + engine.RecordColumns + `, at) VALUES (` + placeholders(engine.Width+1) + `)`
)

const (
	addHead = `INSERT INTO amends_heads (saga, work, version, revision, status, reason, session, due, finished, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (work, saga) DO NOTHING`

	// projectHead brings a head up to date with its newest record, in the words of the record's own row. The
	// cases, from the top: the record leaves the schedule alone, its writer keeps it, it has an unread signal, it
	// moves by itself, it is parked or has ended.
	projectHead = `UPDATE amends_heads AS h SET
			status = r.status, reason = r.reason, updated = r.at,
			consumed = h.consumed + r.read,
			revision = CASE WHEN r.kind = 'revised' THEN r.revision ELSE h.revision END,
			version = CASE WHEN r.kind = 'revised' THEN r.version ELSE h.version END,
			base = CASE WHEN r.snapshot IS NOT NULL THEN r.seq ELSE h.base END,
			session = CASE WHEN r.held IS NULL THEN h.session WHEN r.held AND r.live THEN r.session END,
			finished = CASE WHEN r.held IS NULL THEN h.finished WHEN r.ended THEN coalesce(h.finished, r.at) END,
			due = CASE
				WHEN r.held IS NULL THEN h.due
				WHEN r.held AND r.live THEN NULL
				WHEN h.posted > h.consumed + r.read THEN r.at
				WHEN r.live THEN r.at + coalesce(r.wait_ms, 0) * 1000
			END
		FROM (SELECT *,
				(status = 'running' OR status = 'retrying' OR status = 'compensating') AS live,
				(status = 'completed' OR status = 'compensated') AS ended,
				CASE WHEN signals IS NULL THEN 0 ELSE json_array_length(signals) END AS read
			FROM amends_records WHERE head = ? AND seq = ?) AS r
		WHERE h.number = r.head`

	dropRecord = `DELETE FROM amends_records WHERE head = ? AND seq = ?`
	dropHead   = `DELETE FROM amends_heads WHERE number = ?`

	// placeOf reads what stands where a record was not taken, and before it.
	placeOf = `SELECT seq, hash, at FROM amends_records WHERE head = ? AND seq IN (?, ?)`

	placeOfStart = `SELECT h.number, r.hash, r.at FROM amends_heads AS h
		JOIN amends_records AS r ON r.head = h.number AND r.seq = 1
		WHERE h.work = ? AND h.saga = ?`
)

// Claiming: what is due, and what is held by a session that is dead or was never there. A work of an unknown
// definition must have waited for the grace, and must not be parked for that very reason. Who holds works is read
// from the index by leaps, one per holder. The parameters: $1 now, $2 known versions, $3 grace in milliseconds, $4 limit.
const (
	claimable = `WITH RECURSIVE
		holder (session) AS (
			SELECT min(session) FROM amends_heads WHERE session IS NOT NULL
			UNION ALL
			SELECT (SELECT min(session) FROM amends_heads WHERE session > holder.session)
			FROM holder WHERE holder.session IS NOT NULL),
		lost AS MATERIALIZED (
			SELECT holder.session, coalesce(s.expires, 0) AS expires
			FROM holder LEFT JOIN amends_sessions AS s ON s.token = holder.session
			WHERE holder.session IS NOT NULL AND (s.token IS NULL OR s.dead)
			ORDER BY expires)
		SELECT number, since FROM (
			SELECT * FROM (
				SELECT h.number, h.due AS since FROM amends_heads AS h
				WHERE h.session IS NULL AND h.due <= $1
					AND (h.due + $3 * 1000 <= $1 AND h.reason IS NOT 'unknown-version'
						OR (h.saga, h.version) IN (SELECT value ->> 0, value ->> 1 FROM json_each($2)))
				ORDER BY h.session, h.due LIMIT $4)
			UNION ALL
			SELECT * FROM (
				SELECT h.number, lost.expires AS since
				FROM lost CROSS JOIN amends_heads AS h
				WHERE h.session = lost.session
					AND (lost.expires + $3 * 1000 <= $1 AND h.reason IS NOT 'unknown-version'
						OR (h.saga, h.version) IN (SELECT value ->> 0, value ->> 1 FROM json_each($2)))
				LIMIT $4)
		)
		ORDER BY since, number LIMIT $4`

	take = `UPDATE amends_heads SET session = $1, due = NULL WHERE number IN (SELECT value FROM json_each($2))`

	taken = `SELECT ` + engine.HeadColumns + ` FROM amends_heads AS h WHERE h.number IN (SELECT value FROM json_each($1))`

	// signalled finds works the session already holds: all of them, or those somebody has posted a signal to.
	signalled = `SELECT ` + engine.HeadColumns + ` FROM amends_heads AS h
		WHERE h.session = $1 AND h.posted > h.consumed
		UNION ALL
		SELECT ` + engine.HeadColumns + ` FROM amends_heads AS h
		WHERE $3 AND h.session = $1 AND NOT h.posted > h.consumed
		LIMIT $2`

	whoAmI = `SELECT identity FROM amends_database`
)

func placeholders(n int) string { return strings.Repeat("?, ", n-1) + "?" }
