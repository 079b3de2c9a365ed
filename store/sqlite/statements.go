package sqlite

import (
	"database/sql"
	"strings"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// words are SQLite's for the shared statements.
var words = map[string]string{
	"now":     `$1`,
	"ms":      `1000`,
	"numbers": `(SELECT value FROM json_each($?))`,
	"works":   `(SELECT value ->> 0 AS saga, value ->> 1 AS work FROM json_each($?))`,
}

// statements are prepared for appending.
type statements struct {
	lives, addRecord, addStart, addHead, project, place, startPlace, mark, dropRecord, dropHead *sql.Stmt
}

// all returns the statements by their text.
func (s *statements) all() map[string]**sql.Stmt {
	return map[string]**sql.Stmt{
		sessionLives: &s.lives, addRecord: &s.addRecord, addStart: &s.addStart, addHead: &s.addHead,
		projectHead: &s.project, placeOf: &s.place, placeOfStart: &s.startPlace,
		markSignals: &s.mark,
		dropRecord:  &s.dropRecord, dropHead: &s.dropHead,
	}
}

const sessionLives = `SELECT count(*) FROM amends_sessions WHERE token = ? AND NOT dead AND expires > ?`

// The write path. Parameters are ? in order: the driver binds them fastest.
var (
	// addRecord accepts a record on the tail it was decided on: the predecessor is there, with that hash. A
	// predecessor with a later time means that the clock went back; such a record is added by addStart.
	addRecord = `INSERT INTO amends_records (` + sqlstore.RecordColumns + `, at)
		SELECT ` + placeholders(sqlstore.Width+1) + ` FROM amends_records AS p
		WHERE p.head = ? AND p.seq = ? AND p.hash = ? AND p.at <= ?
		ON CONFLICT (head, seq) DO NOTHING`

	// addStart adds a record that needs no check any more.
	addStart = `INSERT INTO amends_records (` + sqlstore.RecordColumns + `, at) VALUES (` + placeholders(sqlstore.Width+1) + `)`
)

const (
	addHead = `INSERT INTO amends_heads (saga, work, version, revision, status, reason, rank, session, due, finished, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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
			rank = coalesce(r.rank, h.rank),
			session = CASE WHEN r.held IS NULL THEN h.session WHEN r.held AND r.live THEN r.session END,
			waits_for = CASE WHEN r.held IS NULL THEN h.waits_for END,
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

	// markSignals marks what a record consumed.
	markSignals = `UPDATE amends_signals SET read = $2 WHERE head = $1 AND id IN (SELECT value FROM json_each($3))`

	dropRecord = `DELETE FROM amends_records WHERE head = ? AND seq = ?`
	dropHead   = `DELETE FROM amends_heads WHERE number = ?`

	// placeOf reads what stands where a record was not taken, and before it.
	placeOf = `SELECT seq, hash, at FROM amends_records WHERE head = ? AND seq IN (?, ?)`

	placeOfStart = `SELECT h.number, r.hash, r.at FROM amends_heads AS h
		JOIN amends_records AS r ON r.head = h.number AND r.seq = 1
		WHERE h.work = ? AND h.saga = ?`
)

// Claiming. A place is one range of the index of what is due: a saga, a version, a class. The first of every place are put
// in the order of claims; works that are not known here are never met.
const (
	buryExpired = `UPDATE amends_sessions SET dead = 1 WHERE NOT dead AND expires <= $1`

	// release takes works from dead sessions: due since the end of the lease, or not at all when they are at rest.
	release = `WITH RECURSIVE ` + sqlstore.Holders + `,
		lost AS MATERIALIZED (
			SELECT holder.session FROM holder LEFT JOIN amends_sessions AS s ON s.token = holder.session
			WHERE holder.session IS NOT NULL AND (s.token IS NULL OR s.dead))
		UPDATE amends_heads AS h SET session = NULL,
			due = CASE WHEN h.posted > h.consumed OR h.status IN ('running', 'retrying', 'compensating')
				THEN min(coalesce((SELECT s.expires FROM amends_sessions AS s WHERE s.token = h.session), h.updated), $1) END
		WHERE h.number IN (SELECT o.number FROM lost CROSS JOIN amends_heads AS o WHERE o.session = lost.session LIMIT $2)`

	// claimable chooses works. The parameters: $1 now, $2 known versions, $3 limit, $4 how many go first to works that have
	// not begun, $5 the rooms. What waits for a destination is of places of its own: a destination, a saga, a version.
	claimable = `WITH
		known AS MATERIALIZED (SELECT value ->> 0 AS saga, value ->> 1 AS version FROM json_each($2)),
		place AS MATERIALIZED (SELECT saga, version, class.column1 AS rank FROM known CROSS JOIN (VALUES (0), (1), (2)) AS class),
		room AS MATERIALIZED (
			SELECT value ->> 0 AS destination, min(value ->> 1, $3) AS places FROM json_each($5)
			WHERE EXISTS (SELECT 1 FROM amends_heads AS n WHERE n.waits_for = value ->> 0)),
		line AS (
			SELECT *, row_number() OVER (PARTITION BY destination ORDER BY rank, number) AS turn
			FROM (
				SELECT room.destination, room.places, h.number, h.due, h.rank
				FROM room CROSS JOIN known CROSS JOIN amends_heads AS h
				WHERE h.number IN (
					SELECT n.number FROM amends_heads AS n
					WHERE n.waits_for = room.destination AND n.saga = known.saga AND n.version = known.version AND n.due <= $1
					ORDER BY n.rank, n.number LIMIT $3))),
		seen AS (
			SELECT h.number, h.due, h.rank FROM place CROSS JOIN amends_heads AS h
			WHERE h.number IN (
				SELECT n.number FROM amends_heads AS n
				WHERE n.saga = place.saga AND n.version = place.version AND n.rank = place.rank
					AND n.session IS NULL AND n.finished IS NULL AND n.waits_for IS NULL AND n.due <= $1
				ORDER BY n.due LIMIT $3)
			UNION ALL
			SELECT h.number, h.due, 1 FROM (SELECT saga, max(version) AS version FROM known GROUP BY saga) AS news CROSS JOIN amends_heads AS h
			WHERE h.number IN (
				SELECT n.number FROM amends_heads AS n
				WHERE n.saga = news.saga AND n.version <= news.version AND n.session IS NULL AND n.finished IS NOT NULL AND n.due <= $1
				ORDER BY n.due LIMIT $3))
		SELECT number, due AS since, waited
		FROM (
			SELECT number, due, rank, NULL AS waited, row_number() OVER (ORDER BY rank, due, number) AS turn,
				rank = 2 AND row_number() OVER (PARTITION BY rank = 2 ORDER BY due, number) <= $4 AS fresh
			FROM seen
			UNION ALL
			SELECT number, due, rank, destination, turn, 0 FROM line WHERE turn <= places)
		ORDER BY NOT fresh, rank > 0, turn, due, number LIMIT $3`

	take = `UPDATE amends_heads SET session = $1, due = NULL, waits_for = NULL WHERE number IN (SELECT value FROM json_each($2))`

	taken = `SELECT ` + sqlstore.HeadColumns + ` FROM amends_heads AS h WHERE h.number IN (SELECT value FROM json_each($1))`

	// signalled finds works the session already holds and that have an unread signal.
	signalled = `SELECT ` + sqlstore.HeadColumns + ` FROM amends_heads AS h WHERE h.session = $1 AND h.posted > h.consumed`

	// giveBack releases works that a session holds, and makes released ones due earlier. The parameters: $1 now, $2 the
	// session, $3 number, due time and destination of each. A released one is not taken from the line in which it stands.
	// The plus keeps SQLite from going through all that the session holds.
	giveBack = `UPDATE amends_heads AS h SET session = NULL, due = CASE
			WHEN h.posted > h.consumed THEN min(given.due, $1)
			WHEN h.status IN ('running', 'retrying', 'compensating') THEN given.due
		END,
		waits_for = CASE WHEN h.posted = h.consumed AND h.status IN ('running', 'retrying', 'compensating')
			THEN iif(h.session = $2, given.destination, h.waits_for) END
		FROM (SELECT value ->> 0 AS number, coalesce(value ->> 1, $1) AS due, value ->> 2 AS destination FROM json_each($3)) AS given
		WHERE h.number = given.number AND (+h.session = $2
			OR +h.session IS NULL AND h.status IN ('running', 'retrying', 'compensating') AND +h.due > given.due)`
)

// Posting: a signal once for each key. A held work keeps its holder: Claim tells that holder.
const (
	findWork = `SELECT number FROM amends_heads WHERE work = ? AND saga = ?`

	postSignal = `INSERT INTO amends_signals (head, at, kind, key, actor, reason, verdict) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (head, key) DO NOTHING`

	// The poster's clock may be ahead of the coordinator's, whose last word is the latest renewal.
	countSignal = `UPDATE amends_heads SET posted = posted + 1,
			due = CASE WHEN session IS NULL THEN min(coalesce(due, $2), $2,
				coalesce((SELECT max(s.renewed) FROM amends_sessions AS s WHERE NOT s.dead), $2)) ELSE due END, waits_for = NULL
		WHERE number = $1`

	whoAmI = `SELECT identity FROM amends_database`
)

// Controls. The transaction began as a writer: what it reads stays true.
const (
	newestControl = `SELECT controls FROM amends_database`

	changeControl = `UPDATE amends_controls SET version = $1, at = $2, session = $3, nonce = $4, body = $7, actor = $8, reason = $9
		WHERE kind = $5 AND name = $6 AND version = $10`

	addControl = `INSERT INTO amends_controls (version, at, session, nonce, kind, name, body, actor, reason)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (kind, name) DO NOTHING`

	addAct = `INSERT INTO amends_acts (version, at, session, nonce, kind, name, body, actor, reason)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	countControl = `UPDATE amends_database SET controls = $1`
)

func placeholders(n int) string { return strings.Repeat("?, ", n-1) + "?" }
