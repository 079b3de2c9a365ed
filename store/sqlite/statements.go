package sqlite

import (
	"database/sql"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// words are SQLite's for the shared statements.
var words = map[string]string{
	"now":      `$1`,
	"ms":       `1000`,
	"passing":  ``,
	"inorder":  ``,
	"numbers":  `(SELECT value FROM json_each($?))`,
	"elements": `json_each($?)`,
	"works":    `(SELECT value ->> 0 AS saga, value ->> 1 AS work FROM json_each($?))`,
}

// statements are prepared for appending.
type statements struct {
	lives, addRecord, addStart, addTag, addWaits, addInstance, project, place, startPlace, erased, unread, mark, dropRecord, dropInstance *sql.Stmt
}

// all returns the statements by their text.
func (s *statements) all() map[string]**sql.Stmt {
	return map[string]**sql.Stmt{
		livesErased: &s.lives, addRecord: &s.addRecord, addStart: &s.addStart, addTag: &s.addTag, addWaits: &s.addWaits, addInstance: &s.addInstance,
		projectRecord: &s.project, placeOf: &s.place, placeOfStart: &s.startPlace, unreadOf: &s.unread,
		markSignals: &s.mark, erasedWork: &s.erased,
		dropRecord: &s.dropRecord, dropInstance: &s.dropInstance,
	}
}

// projectParameters and instanceParameters are what projectRecord and addInstance take, by their
// numbers: first what is particular to them, then what a record says to its instance's row.
var (
	projectParameters  = withValues("instance", "at", "seq", "session", "snapshot")
	instanceParameters = withValues("saga", "work_id", "salt", "at", "session")

	// projectRecord brings an instance up to date with its newest record.
	projectRecord = `UPDATE amends_instances AS h SET ` + sqlstore.Update(sqlstore.Numbered(projectParameters, rowWords)) + ` WHERE ref = ?1`
	addInstance   = insertInstance()

	addWaits = sqlstore.AddWaits(words)
)

// rowWords are SQLite's for the columns of an instance.
var rowWords = map[string]string{"ms": "1000", "epoch": "0", "later": "max", "sooner": "min"}

func withValues(own ...string) []string {
	for _, v := range sqlstore.Values {
		own = append(own, v.Name)
	}
	return own
}

func insertInstance() string {
	columns, values := sqlstore.Insert(sqlstore.Numbered(instanceParameters, rowWords))
	return `INSERT INTO amends_instances (` + columns + `) VALUES (` + values + `) ON CONFLICT (work_id, saga) DO NOTHING`
}

const (
	sessionLives = `SELECT count(*) FROM amends_sessions WHERE token = ? AND NOT dead AND expires_at > ?`

	// livesErased also says whether a work was ever erased.
	livesErased = `SELECT count(*), EXISTS (SELECT 1 FROM amends_erased) FROM amends_sessions WHERE token = ? AND NOT dead AND expires_at > ?`

	erasedWork = `SELECT instance FROM amends_erased WHERE name = ? AND saga = ?`
)

// The write path. Nothing here opens a table of its own: no FROM in an update, no insert that
// selects from its own table.
const (
	// addRecord accepts a record on the tail it was decided on: the predecessor is there, with that
	// hash, and is not later: else the clock went back. When it is not, the time is NULL, and the
	// row is passed over, as it is when another stands at its place.
	addRecord = `INSERT OR IGNORE INTO amends_records (instance, seq, at, session, hash, external_id, doc, body, snapshot) VALUES (?1, ?2,
		(SELECT ?3 FROM amends_records AS p WHERE p.instance = ?1 AND p.seq = ?2 - 1 AND p.hash = ?4 AND p.at <= ?3), ?5, ?6, ?7, ?8, ?9, ?10)`

	addStart = `INSERT INTO amends_records (instance, seq, at, session, hash, external_id, doc, body, snapshot) VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?)`

	addTag = `INSERT OR IGNORE INTO amends_tags (tag, instance) VALUES (?, ?)`

	// unreadOf is how many signals a record may consume.
	unreadOf = `SELECT received - consumed FROM amends_instances WHERE ref = ?`

	// markSignals marks what a record consumed.
	markSignals = `UPDATE amends_signals SET consumed_by = $2 WHERE instance = $1 AND number = $3`

	dropRecord   = `DELETE FROM amends_records WHERE instance = ? AND seq = ?`
	dropInstance = `DELETE FROM amends_instances WHERE ref = ?`

	// placeOf reads what stands where a record was not taken, and before it.
	placeOf = `SELECT seq, hash, at FROM amends_records WHERE instance = ? AND seq BETWEEN ? AND ?`

	// placeOfStart has a hash that no record has where the records have gone.
	placeOfStart = `SELECT h.ref, coalesce(r.hash, x'00'), coalesce(r.at, h.created_at) FROM amends_instances AS h
		LEFT JOIN amends_records AS r ON r.instance = h.ref AND r.seq = 1
		WHERE h.work_id = ? AND h.saga = ? AND (r.seq = 1 OR NOT ` + sqlstore.Hears + `)`
)

// Claiming. A place is one range of the index of what is due: a saga, a version, a class. The first
// of every place are put in the order of claims; works that are not known here are never met.
var (
	buryExpired = `UPDATE amends_sessions SET dead = 1 WHERE NOT dead AND expires_at <= $1`

	// release takes works from dead sessions: due since the end of the lease, or not at all when
	// they are at rest.
	release = `WITH RECURSIVE ` + sqlstore.Holders + `,
		lost AS MATERIALIZED (
			SELECT holder.session FROM holder LEFT JOIN amends_sessions AS s ON s.token = holder.session
			WHERE holder.session IS NOT NULL AND (s.token IS NULL OR s.dead))
		UPDATE amends_instances AS h SET session = NULL,
			due_at = CASE WHEN h.received > h.consumed OR ` + sqlstore.GoesOn + `
				THEN min(coalesce((SELECT s.expires_at FROM amends_sessions AS s WHERE s.token = h.session), h.updated_at), $1) END
		WHERE h.ref IN (SELECT o.ref FROM lost CROSS JOIN amends_instances AS o WHERE o.session = lost.session LIMIT $2)`

	// claimable chooses works. The parameters: $1 now, $2 known versions, $3 limit, $4 how many go
	// first to works that have not begun, $5 the rooms. What waits for a destination is of places
	// of its own: a destination, a saga, a version.
	claimable = `WITH
		known AS MATERIALIZED (SELECT value ->> 0 AS saga, value ->> 1 AS version FROM json_each($2)),
		place AS MATERIALIZED (SELECT saga, version, classes.column1 AS class FROM known CROSS JOIN (VALUES (0), (1), (2)) AS classes),
		room AS MATERIALIZED (
			SELECT value ->> 0 AS destination, min(value ->> 1, $3) AS places FROM json_each($5)
			WHERE EXISTS (SELECT 1 FROM amends_instances AS n WHERE n.waits_for = value ->> 0)),
		line AS (
			SELECT *, row_number() OVER (PARTITION BY destination ORDER BY class, created_at, ref) AS turn
			FROM (
				SELECT room.destination, room.places, h.ref, h.created_at, h.due_at, h.class
				FROM room CROSS JOIN known CROSS JOIN amends_instances AS h
				WHERE h.ref IN (
					SELECT n.ref FROM amends_instances AS n
					WHERE n.waits_for = room.destination AND n.saga = known.saga AND n.version = known.version AND n.due_at <= $1
					ORDER BY n.class, n.created_at, n.ref LIMIT $3))),
		seen AS (
			SELECT h.ref, h.due_at, h.class FROM place CROSS JOIN amends_instances AS h
			WHERE h.ref IN (
				SELECT n.ref FROM amends_instances AS n
				WHERE n.saga = place.saga AND n.version = place.version AND n.class = place.class
					AND n.session IS NULL AND n.finished_at IS NULL AND n.waits_for IS NULL AND n.due_at <= $1
				ORDER BY n.due_at LIMIT $3)
			UNION ALL
			SELECT h.ref, h.due_at, 1 FROM (SELECT saga, max(version) AS version FROM known GROUP BY saga) AS news CROSS JOIN amends_instances AS h
			WHERE h.ref IN (
				SELECT n.ref FROM amends_instances AS n
				WHERE n.saga = news.saga AND n.version <= news.version AND n.session IS NULL AND n.finished_at IS NOT NULL AND n.due_at <= $1
				ORDER BY n.due_at LIMIT $3))
		SELECT ref, due_at AS since, waited
		FROM (
			SELECT ref, due_at, class, NULL AS waited, row_number() OVER (ORDER BY class, due_at, ref) AS turn,
				class = 2 AND row_number() OVER (PARTITION BY class = 2 ORDER BY due_at, ref) <= $4 AS fresh
			FROM seen
			UNION ALL
			SELECT ref, due_at, class, destination, turn, 0 FROM line WHERE turn <= places)
		ORDER BY NOT fresh, class > 0, turn, due_at, ref LIMIT $3`

	take = `UPDATE amends_instances SET session = $1, due_at = NULL, waits_for = NULL WHERE ref IN (SELECT value FROM json_each($2))`

	taken = `SELECT ` + sqlstore.HeadColumns + ` FROM amends_instances AS h WHERE h.ref IN (SELECT value FROM json_each($1))`

	// signalled finds works the session already holds and that have an unread signal.
	signalled = `SELECT ` + sqlstore.HeadColumns + ` FROM amends_instances AS h WHERE h.session = $1 AND h.received > h.consumed`

	// giveBack releases works that a session holds, and makes released ones due earlier. The
	// parameters: $1 now, $2 the session, $3 number, due time, destination, and when it leaves that, of each. A released
	// one is not taken from the line in which it stands. The plus keeps SQLite from going through
	// all that the session holds.
	giveBack = `UPDATE amends_instances AS h SET session = NULL, due_at = CASE
			WHEN h.received > h.consumed THEN min(given.due_at, $1)
			WHEN ` + sqlstore.GoesOn + ` THEN given.due_at
		END,
		waits_for = CASE WHEN h.received = h.consumed AND h.status ` + sqlstore.Live + `
			THEN iif(h.session = $2, given.destination, h.waits_for) END,
		leaves_at = iif(h.session = $2, iif(given.destination IS NULL, NULL,
			coalesce(min(given.leaves_at, h.deadline_at), given.leaves_at, h.deadline_at)), h.leaves_at)
		FROM (SELECT value ->> 0 AS ref, coalesce(value ->> 1, $1) AS due_at, value ->> 2 AS destination, value ->> 3 AS leaves_at FROM json_each($3)) AS given
		WHERE h.ref = given.ref AND (+h.session = $2
			OR +h.session IS NULL AND h.status ` + sqlstore.Live + ` AND +h.due_at > given.due_at)`
)

// Posting: a signal once for each key. A held work keeps its holder: Claim tells that holder.
const (
	findWork = `SELECT ref, received FROM amends_instances WHERE work_id = ? AND saga = ? AND ` + sqlstore.Hears

	postSignal = `INSERT INTO amends_signals (instance, number, at, kind, key, actor, reason, doc, by_hand) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (instance, key) DO NOTHING`

	signalKnown = `SELECT EXISTS (SELECT 1 FROM amends_signals WHERE instance = ? AND key = ?)`

	// The poster's clock may be ahead of the coordinator's, whose last word is the latest renewal.
	countSignal = `UPDATE amends_instances SET received = received + 1,
			due_at = CASE WHEN session IS NULL THEN min(coalesce(due_at, $2), $2,
				coalesce((SELECT max(s.renewed_at) FROM amends_sessions AS s WHERE NOT s.dead), $2)) ELSE due_at END, waits_for = NULL
		WHERE ref = $1`

	whoAmI = `SELECT 'sqlite-' || ledger_id FROM amends_meta`
)

// Controls. The transaction began as a writer: what it reads stays true.
const (
	newestControl = `SELECT controls FROM amends_meta`

	setControl = `WITH
		clock AS (SELECT $1 AS now, controls + 1 AS version FROM amends_meta),
		setter AS (SELECT 1 FROM amends_sessions WHERE token = $2 AND NOT dead AND expires_at > $1)
		INSERT INTO amends_controls AS c (version, at, session, nonce, kind, name, body, actor, reason)
		SELECT clock.version, clock.now, $2, $9, $3, $4, $6, $7, $8 FROM clock
		WHERE ($2 = 0 OR EXISTS (SELECT 1 FROM setter))
			AND ($5 = 0 OR EXISTS (SELECT 1 FROM amends_controls WHERE kind = $3 AND name = $4 AND version = $5))
		ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, at = excluded.at, session = excluded.session, nonce = excluded.nonce,
			body = excluded.body, actor = excluded.actor, reason = excluded.reason
			WHERE c.version = $5
		RETURNING version, at`

	countControl = `UPDATE amends_meta SET controls = $1`
)
