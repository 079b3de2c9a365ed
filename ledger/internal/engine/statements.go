package engine

// The statements both databases understand, but for the words in braces. {now} is the clock and always $1.
const (
	openSession = `
		INSERT INTO amends_sessions (token, label, database, opened, renewed, expires)
		SELECT $2, $3, $5, clock.now AS opened, clock.now AS renewed, clock.now + $4 * {ms} FROM (SELECT {now} AS now) AS clock
		RETURNING renewed`

	// since is when the database came to be the one it is; null when no session was ever opened on another one.
	since = `
		SELECT min(opened) FROM amends_sessions
		WHERE database = $1 AND EXISTS (SELECT 1 FROM amends_sessions WHERE database <> $1)`

	// elsewhere are the sessions that were opened on another database than $1.
	elsewhere = `SELECT token FROM amends_sessions WHERE database <> $1 AND token IN {numbers:2}`

	renewSession = `
		UPDATE amends_sessions SET renewed = clock.now, expires = clock.now + $3 * {ms}
		FROM (SELECT {now} AS now) AS clock
		WHERE token = $2 AND NOT dead AND expires > clock.now
		RETURNING renewed`

	burySession = `
		UPDATE amends_sessions SET dead = true, expires = CASE WHEN expires > clock.now THEN clock.now ELSE expires END
		FROM (SELECT {now} AS now) AS clock
		WHERE token = $2 AND NOT dead`

	buryOthers = `UPDATE amends_sessions SET dead = true WHERE NOT dead AND token <> $1`

	buryExpired = `
		UPDATE amends_sessions SET dead = true
		FROM (SELECT {now} AS now) AS clock
		WHERE NOT dead AND expires <= clock.now`

	sessionLives = `
		SELECT count(*) FROM amends_sessions, (SELECT {now} AS now) AS clock
		WHERE token = $2 AND NOT dead AND expires > clock.now`

	loadHeads = `
		SELECT ` + HeadColumns + `, clock.now
		FROM (SELECT {now} AS now) AS clock CROSS JOIN {works:2} AS w CROSS JOIN amends_heads AS h
		WHERE h.work = w.work AND h.saga = w.saga`

	loadRecords = `
		SELECT r.head, r.at, r.` + recordColumnsRead + `
		FROM amends_heads AS h JOIN amends_records AS r ON r.head = h.number AND r.seq >= h.base
		WHERE h.number IN {numbers:1}
		ORDER BY r.head, r.seq`

	loadSignals = `
		SELECT s.id, s.head, s.at, s.kind, s.key, s.actor, s.reason, s.verdict
		FROM amends_signals AS s
		WHERE s.head IN {numbers:1}
		ORDER BY s.head, s.id`

	findHead = `SELECT number FROM amends_heads WHERE work = $2 AND saga = $1`

	history = `
		SELECT r.head, r.at, r.` + recordColumnsRead + `
		FROM amends_records AS r WHERE r.head = $1 ORDER BY r.seq`

	signals = `
		SELECT s.id, s.head, s.at, s.kind, s.key, s.actor, s.reason, s.verdict
		FROM amends_signals AS s WHERE s.head = $1 ORDER BY s.id`

	postSignal = `
		INSERT INTO amends_signals (head, at, kind, key, actor, reason, verdict)
		VALUES ($2, {now}, $3, $4, $5, $6, $7)
		ON CONFLICT (head, key) DO NOTHING`

	// A held work keeps its holder: Claim tells that holder.
	countSignal = `
		UPDATE amends_heads SET posted = posted + 1,
			due = CASE WHEN session IS NULL THEN {now} ELSE due END
		WHERE number = $2`

	addDefinition = `
		INSERT INTO amends_definitions (saga, version, structure, spec, first)
		VALUES ($2, $3, $4, $5, {now})
		ON CONFLICT (saga, version) DO NOTHING`

	structure = `SELECT structure FROM amends_definitions WHERE saga = $1 AND version = $2`

	definitions = `SELECT structure, spec, first FROM amends_definitions ORDER BY saga, version`

	countDuplicate = `
		INSERT INTO amends_duplicates AS d (saga, work, source, count, first, last)
		SELECT $2, $3, $4, $5, clock.now, clock.now FROM (SELECT {now} AS now) AS clock WHERE true
		ON CONFLICT (saga, work, source) DO UPDATE SET count = d.count + excluded.count, last = excluded.last`
)

// recordColumnsRead are the columns of a record row behind head and at, in no order that matters.
const recordColumnsRead = `session, r.nonce, r.seq, r.version, r.attempt, r.arm_attempt, r.arm_reissue, r.arm_budget_ms,
	r.wait_ms, r.body_dropped, r.hash, r.kind, r.status, r.reason, r.revision, r.step, r.direction, r.external_id,
	r.class, r.error, r.signals, r.arm_step, r.arm_direction, r.arm_key, r.body, r.snapshot`
