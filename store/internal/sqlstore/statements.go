package sqlstore

import "github.com/amends-dev/amends/internal/ledger"

// The statements both databases understand, but for the words in braces. {now} is the clock and
// always $1.
var (
	// openSession may come again when its answer was lost: no other process draws the same token.
	openSession = `
		INSERT INTO amends_sessions (token, label, database, knows, lock, witness, opened_at, renewed_at, expires_at)
		SELECT $2, $3, $5, $6, $7, $8, clock.now AS opened_at, clock.now AS renewed_at, clock.now + $4 * {ms} FROM (SELECT {now} AS now) AS clock WHERE true
		ON CONFLICT (token) DO UPDATE SET renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
		RETURNING renewed_at, (SELECT controls FROM amends_meta) AS controls, (SELECT ledger_id FROM amends_meta) AS ledger`

	// schemaVersion is asked at every renewal: a migration may come while a process runs.
	schemaVersion = `SELECT max(version_id) FROM amends_schema`

	// since is when the database came to be the one it is; null when no session was ever opened on
	// another one.
	since = `
		SELECT min(opened_at) AS since, EXISTS (SELECT 1 FROM amends_sessions WHERE database = '` + ledger.SessionForgone + `') AS restored
		FROM amends_sessions WHERE database = $1 AND opened_at > (SELECT max(opened_at) FROM amends_sessions WHERE database <> $1)`

	// elsewhere are the sessions that were opened on another database than $1.
	elsewhere = `SELECT token, database FROM amends_sessions WHERE database <> $1 AND token IN {numbers:2}`

	renewSession = `
		UPDATE amends_sessions SET renewed_at = clock.now, expires_at = clock.now + $3 * {ms}, knows = $4, witness = $5, beats = beats + 1
		FROM (SELECT {now} AS now) AS clock
		WHERE token = $2 AND NOT dead AND expires_at > clock.now AND (SELECT max(version_id) FROM amends_schema) <= $6
		RETURNING renewed_at, beats, (SELECT controls FROM amends_meta) AS controls`

	// stray are works that a session holds and does not have in hand.
	stray = `
		SELECT ` + HeadColumns + ` FROM amends_instances AS h
		WHERE h.session = $1 AND h.ref NOT IN {numbers:2} LIMIT $3`

	burySession = `
		UPDATE amends_sessions SET dead = true, expires_at = CASE WHEN expires_at > clock.now THEN clock.now ELSE expires_at END
		FROM (SELECT {now} AS now) AS clock
		WHERE token = $2 AND NOT dead`

	// leaveLines makes what waits for a destination due when its deadline has passed, or the end of its wait (machine/W5, A15). It waits for no lock:
	// the next heartbeat comes.
	leaveLines = `
		UPDATE amends_instances SET waits_for = NULL, due_at = leaves_at, leaves_at = NULL
		WHERE ref IN (SELECT ref FROM amends_instances WHERE leaves_at <= (SELECT {now}) AND waits_for IS NOT NULL
			ORDER BY leaves_at LIMIT 1000 {passing})`

	unburied = `SELECT token FROM amends_sessions WHERE NOT dead`

	// locked are the sessions whose processes keep a file locked.
	locked = `SELECT token, lock FROM amends_sessions WHERE NOT dead AND lock <> ''`

	buryOthers = `UPDATE amends_sessions SET dead = true WHERE NOT dead AND token <> $1`

	// catchUpWorks and catchUpSessions end what was written by a clock that was ahead of what it is
	// now.
	//nolint:gosec // the pW in the name is no password
	catchUpWorks = `
		UPDATE amends_instances SET due_at = clock.now FROM (SELECT {now} AS now) AS clock
		WHERE session IS NULL AND due_at > clock.now AND updated_at > clock.now`

	catchUpSessions = `
		UPDATE amends_sessions SET renewed_at = clock.now, expires_at = clock.now + (expires_at - renewed_at)
		FROM (SELECT {now} AS now) AS clock
		WHERE NOT dead AND renewed_at > clock.now`

	// load are the rows of [loadedRow]. A column of another kind of row is empty. Its joins are in their order: SQLite would begin with all records.
	load = `
		WITH h AS MATERIALIZED (
			SELECT ` + HeadColumns + `, clock.now
			FROM (SELECT {now} AS now) AS clock CROSS JOIN {works:2} AS w CROSS JOIN amends_instances AS h
			WHERE h.work_id = w.work AND h.saga = w.saga)
		SELECT 0 AS part, h.*,
			h.ref AS "r.instance", 0 AS "r.seq", h.now AS "r.at", 0 AS "r.session", NULL AS "r.hash", NULL AS "r.external_id", '' AS "r.doc", NULL AS "r.body", NULL AS "r.snapshot",
			0 AS "s.number", h.ref AS "s.instance", h.now AS "s.at", '' AS "s.kind", '' AS "s.key", '' AS "s.actor", '' AS "s.reason", NULL AS "s.doc", false AS "s.by_hand"
		FROM h
		UNION ALL
		SELECT 1, ` + NoHead + `, NULL, ` + recordColumns + `, 0, r.instance, r.at, '', '', '', '', NULL, false
		FROM h CROSS JOIN amends_records AS r
		WHERE r.instance = h.ref AND r.seq >= h.snapshot_seq
		UNION ALL
		SELECT 2, ` + NoHead + `, NULL, s.instance, 0, s.at, 0, NULL, NULL, '', NULL, NULL, s.number, s.instance, s.at, s.kind, s.key, s.actor, s.reason, s.doc, s.by_hand
		FROM h CROSS JOIN amends_signals AS s
		WHERE s.instance = h.ref AND s.consumed_by IS NULL AND h.received > h.consumed
		ORDER BY "r.instance", part, "r.seq", "s.number"`

	atRest = `
		SELECT h.saga, h.work_id AS work FROM {works:1} AS w CROSS JOIN amends_instances AS h
		WHERE h.work_id = w.work AND h.saga = w.saga AND h.status NOT ` + Live

	findInstance = `SELECT ref FROM amends_instances WHERE work_id = $2 AND saga = $1`

	history = `
		SELECT ` + recordColumns + `
		FROM amends_records AS r WHERE r.instance = $1 ORDER BY r.seq`

	signals = `
		SELECT h.saga, h.work_id AS work, h.ref AS instance, COALESCE(s.number, 0) AS number, COALESCE(s.at, h.created_at) AS at, COALESCE(s.kind, '') AS kind,
			COALESCE(s.key, '') AS key, COALESCE(s.actor, '') AS actor, COALESCE(s.reason, '') AS reason, s.doc, COALESCE(s.by_hand, false) AS by_hand
		FROM {works:1} AS w CROSS JOIN amends_instances AS h LEFT JOIN amends_signals AS s ON s.instance = h.ref
		WHERE h.work_id = w.work AND h.saga = w.saga ORDER BY h.ref, s.number`

	addDefinition = `
		INSERT INTO amends_definitions (saga, version, structure, spec, first_at)
		VALUES ($2, $3, $4, $5, {now})
		ON CONFLICT (saga, version) DO UPDATE SET spec = excluded.spec
		WHERE amends_definitions.structure = excluded.structure AND amends_definitions.spec <> excluded.spec`

	structure = `SELECT structure FROM amends_definitions WHERE saga = $1 AND version = $2`

	definitions = `SELECT structure, spec, first_at FROM amends_definitions ORDER BY saga, version`

	allControls = `SELECT ` + controlColumns + ` FROM amends_controls AS c ORDER BY c.kind, c.name`

	// thisControl is what stands where a control was not stored, and whether the session could have
	// stored it.
	thisControl = `
		SELECT ` + controlColumns + `, EXISTS (SELECT 1 FROM amends_sessions AS s WHERE s.token = $2 AND NOT s.dead AND s.expires_at > {now}) AS live
		FROM (SELECT 1 AS one) AS here LEFT JOIN amends_controls AS c ON c.kind = $3 AND c.name = $4`

	acts = `SELECT ` + controlColumns + ` FROM amends_audit AS c WHERE c.kind = $1 AND c.name = $2 ORDER BY c.version DESC LIMIT $3`

	actChain = `SELECT c.number, c.hash, ` + controlColumns + ` FROM amends_audit AS c WHERE c.number > $1 ORDER BY c.number LIMIT $2`

	controlColumns = `c.version, c.at, c.session, c.nonce, c.kind, c.name, c.body, c.actor, c.reason`

	// duplicates are the counters of each work and source, summed up.
	duplicates = `
		SELECT h.saga, h.work_id, h.source, h.count, h.first_at, h.last_at FROM (
			SELECT saga, work_id, source, CAST(sum(count) AS bigint) AS count, min(first_at) AS first_at, max(last_at) AS last_at
			FROM amends_duplicates GROUP BY saga, work_id, source) AS h`
)

// recordColumns are the columns of a record.
const recordColumns = `r.instance, r.seq, r.at, r.session, r.hash, r.external_id, r.doc, r.body, r.snapshot`

// Holders are the sessions that hold works. A loose index scan reads one entry for each session, however many works it
// holds.
const Holders = `
	holder (session) AS (
		SELECT (SELECT session FROM amends_instances WHERE session IS NOT NULL ORDER BY session LIMIT 1)
		UNION ALL
		SELECT (SELECT session FROM amends_instances WHERE session > holder.session ORDER BY session LIMIT 1)
		FROM holder WHERE holder.session IS NOT NULL)`

// OldestSignal reads what no record has consumed, which is little.
const OldestSignal = `SELECT min(at) FROM amends_signals WHERE consumed_by IS NULL`

// What people ask about the ledger as a whole.
var (
	theTime = `SELECT {now}, sealed FROM amends_meta`

	totals = `
		SELECT saga, status, reason, count(*) AS works, min(CASE WHEN session IS NULL AND waits_for IS NULL THEN due_at END) AS oldest_due
		FROM amends_instances GROUP BY saga, status, reason`

	sessions = `
		WITH RECURSIVE ` + Holders + `,
		clock AS (SELECT {now} AS now)
		SELECT t.token, s.label, s.knows, s.witness, s.opened_at, s.renewed_at, s.expires_at,
			s.token IS NULL OR s.dead OR s.expires_at <= clock.now AS dead,
			(SELECT count(*) FROM amends_instances AS h WHERE h.session = t.token) AS holds
		FROM clock CROSS JOIN (
			SELECT s.token FROM amends_sessions AS s CROSS JOIN clock WHERE NOT s.dead AND s.expires_at > clock.now
			UNION SELECT session FROM holder WHERE session IS NOT NULL) AS t
			LEFT JOIN amends_sessions AS s ON s.token = t.token
		ORDER BY dead, s.opened_at, t.token`

	wantsAttention = `(h.received > h.consumed OR h.status ` + Live + `)`

	orphaned = `
		SELECT h.saga, h.version, h.finished_at IS NOT NULL AS ended, count(*) AS works, min(h.updated_at) AS oldest
		FROM amends_instances AS h WHERE h.session = $1 AND ` + wantsAttention + `
		GROUP BY h.saga, h.version, h.finished_at IS NOT NULL`

	last = `(SELECT r.at FROM amends_records AS r WHERE r.instance = h.ref ORDER BY r.seq DESC LIMIT 1) AS last`

	oldestHeld = `
		SELECT ` + HeadColumns + `, ` + last + `
		FROM amends_instances AS h
		WHERE h.session IS NOT NULL AND h.status ` + Live + `
		ORDER BY last LIMIT $1`

	// places are read by leaps, like holders: the next rank, else the next version, else the next
	// saga.
	places = `
		WITH RECURSIVE place (ref) AS (
			SELECT (SELECT ref FROM amends_instances AS n WHERE ` + released + ` ORDER BY n.saga, n.version, n.class LIMIT 1)
			UNION ALL
			SELECT coalesce(
				(SELECT n.ref FROM amends_instances AS n
					WHERE n.saga = h.saga AND n.version = h.version AND n.class > h.class AND ` + released + `
					ORDER BY n.class LIMIT 1),
				(SELECT n.ref FROM amends_instances AS n
					WHERE n.saga = h.saga AND n.version > h.version AND ` + released + `
					ORDER BY n.version, n.class LIMIT 1),
				(SELECT n.ref FROM amends_instances AS n
					WHERE n.saga > h.saga AND ` + released + `
					ORDER BY n.saga, n.version, n.class LIMIT 1))
			FROM place JOIN amends_instances AS h ON h.ref = place.ref)
		SELECT h.saga, h.version, h.class FROM place JOIN amends_instances AS h ON h.ref = place.ref`

	released = `n.session IS NULL AND n.due_at IS NOT NULL AND n.finished_at IS NULL AND n.waits_for IS NULL`

	backlog = `
		SELECT count(*) AS works, min(due_at) AS oldest FROM (
			SELECT n.due_at FROM amends_instances AS n
			WHERE n.saga = $1 AND n.version = $2 AND n.class = $3 AND ` + released + `
			ORDER BY n.due_at LIMIT $4) AS first`

	oldestDue = `
		SELECT ` + HeadColumns + `, ` + last + `
		FROM amends_instances AS h
		WHERE h.saga = $2 AND h.version = $3 AND h.class = $4 AND h.session IS NULL AND h.finished_at IS NULL AND h.waits_for IS NULL AND h.due_at <= {now}
			AND h.status ` + Live + `
		ORDER BY h.due_at LIMIT $5`

	// dueAhead looks at what is due last: a clock that ran ahead put it there.
	dueAhead = `
		SELECT ` + HeadColumns + ` FROM (
			SELECT * FROM amends_instances AS n
			WHERE n.saga = $2 AND n.version = $3 AND n.class = $4 AND n.session IS NULL AND n.finished_at IS NULL AND n.waits_for IS NULL AND n.due_at > {now}
			ORDER BY n.due_at DESC LIMIT $5) AS h
		WHERE h.updated_at > {now} LIMIT $6`

	// linePlaces are read by leaps, like places: the next version, else the next saga, else the
	// next destination.
	linePlaces = `
		WITH RECURSIVE place (ref) AS (
			SELECT (SELECT ref FROM amends_instances AS n WHERE n.waits_for IS NOT NULL ORDER BY n.waits_for, n.saga, n.version LIMIT 1)
			UNION ALL
			SELECT coalesce(
				(SELECT n.ref FROM amends_instances AS n
					WHERE n.waits_for = h.waits_for AND n.saga = h.saga AND n.version > h.version
					ORDER BY n.version LIMIT 1),
				(SELECT n.ref FROM amends_instances AS n
					WHERE n.waits_for = h.waits_for AND n.saga > h.saga
					ORDER BY n.saga, n.version LIMIT 1),
				(SELECT n.ref FROM amends_instances AS n
					WHERE n.waits_for > h.waits_for
					ORDER BY n.waits_for, n.saga, n.version LIMIT 1))
			FROM place JOIN amends_instances AS h ON h.ref = place.ref)
		SELECT h.waits_for AS destination, h.saga, h.version
		FROM place JOIN amends_instances AS h ON h.ref = place.ref
		ORDER BY h.waits_for, h.saga, h.version`

	lineBacklog = `
		SELECT count(*) AS works, min(due_at) AS oldest FROM (
			SELECT n.due_at FROM amends_instances AS n
			WHERE n.waits_for = $1 AND n.saga = $2 AND n.version = $3
			ORDER BY n.class, n.created_at, n.ref LIMIT $4) AS first`

	lineAhead = `
		SELECT ` + HeadColumns + ` FROM (
			SELECT * FROM amends_instances AS n
			WHERE n.waits_for = $2 AND n.saga = $3 AND n.version = $4 AND n.due_at > {now}
			ORDER BY n.due_at DESC LIMIT $5) AS h
		WHERE h.updated_at > {now} LIMIT $6`

	newsPlaces = `
		WITH RECURSIVE place (saga) AS (
			SELECT (SELECT n.saga FROM amends_instances AS n WHERE ` + ended + ` ORDER BY n.saga LIMIT 1)
			UNION ALL
			SELECT (SELECT n.saga FROM amends_instances AS n WHERE n.saga > place.saga AND ` + ended + ` ORDER BY n.saga LIMIT 1)
			FROM place WHERE place.saga IS NOT NULL)
		SELECT saga FROM place WHERE saga IS NOT NULL`

	ended = `n.session IS NULL AND n.due_at IS NOT NULL AND n.finished_at IS NOT NULL`

	newsBacklog = `
		SELECT version, count(*) AS works, min(due_at) AS oldest FROM (
			SELECT n.version, n.due_at FROM amends_instances AS n WHERE n.saga = $1 AND ` + ended + ` ORDER BY n.due_at LIMIT $2) AS first
		GROUP BY version`
)
