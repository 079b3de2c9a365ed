package postgres

import (
	"context"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// claimRow is a row of claimText. The one without a number says how the session stands.
type claimRow struct {
	sqlstore.HeadRow

	Live     sqlstore.Flag   // the session may claim
	Lost     sqlstore.Flag   // a dead session holds works
	Controls sqlstore.Number // their newest version
}

// claim gives a session works: one statement, so that no connection can go silent in the middle of
// it. Only when a dead session holds works they are released first, and claimed by a second look.
func (db *DB) claim(ctx context.Context, c sqlstore.ClaimArgs) (a sqlstore.ClaimAnswer, err error) {
	err = db.claims.do(ctx, func(ctx context.Context) error {
		var lost bool
		if a, lost, err = db.look(ctx, c, false); err != nil || !a.Live || !lost {
			return err
		}
		if _, err := db.release.ExecContext(ctx, db.now(), sqlstore.MaxRelease); err != nil {
			return err
		}
		a, _, err = db.look(ctx, c, true)
		return err
	})
	return a, err
}

// look runs claimText, unless nothing was there the last time and restText says that nothing is.
// While a dead session holds works it takes nothing, unless told to.
func (db *DB) look(ctx context.Context, c sqlstore.ClaimArgs, anyway bool) (a sqlstore.ClaimAnswer, lost bool, err error) {
	if db.quiet.Load() && !anyway {
		var still struct {
			Live, Lost, Busy sqlstore.Flag
			Controls         sqlstore.Number
		}
		err := db.rest.GetContext(ctx, &still, db.now(), c.Known, c.Limit, c.Token, anyway, c.Rooms)
		if err != nil || bool(still.Lost || !still.Busy) {
			return sqlstore.ClaimAnswer{Live: bool(still.Live), Controls: int64(still.Controls)}, bool(still.Lost), err
		}
	}
	var all []claimRow
	err = db.claimable.SelectContext(ctx, &all, db.now(), c.Known, c.Limit, c.Token, anyway, c.Rooms, c.Fresh)
	for i := range all {
		if all[i].Number == 0 {
			a.Live, a.Controls, lost = bool(all[i].Live), int64(all[i].Controls), bool(all[i].Lost)
			continue
		}
		a.Rows = append(a.Rows, all[i].HeadRow)
	}
	db.quiet.Store(err == nil && len(a.Rows) == 0)
	return a, lost, err
}

// giveBack releases works that a session holds.
func (db *DB) giveBack(ctx context.Context, token int64, works string) error {
	return db.writes.do(ctx, func(ctx context.Context) error {
		_, err := db.work.ExecContext(ctx, giveBackText, db.now(), token, works)
		return err
	})
}

// lookText is where a look finds works, and how the session stands. The parameters: $1 the clock,
// $2 known versions, $3 limit, $4 the session, $5 whether works are taken while a dead session
// still holds some, $6 the rooms.
//
// A place is one range of the index of what is due: a saga, a version, a class. The places of each
// known saga are found by a loose index scan: a claim reads a few pages for each place, and no works of other
// sagas. What waits for a destination is of places of its own, one for each
// destination with room, saga and version; destinations for which nothing waits are put aside with
// one look at each, a join with LIMIT, because EXISTS leaves the server free to read the whole
// index from its other side. OFFSET 0 keeps it from reading what is known before it has seen that
// anything waits.
const lookText = `WITH RECURSIVE ` + sqlstore.Holders + `,
	clock AS MATERIALIZED (SELECT ` + clock + ` AS now),
	buried AS (
		UPDATE amends_sessions SET dead = true WHERE token IN (
			SELECT s.token FROM amends_sessions AS s
			WHERE NOT s.dead AND s.expires_at <= (SELECT now FROM clock) FOR NO KEY UPDATE SKIP LOCKED)),
	state AS MATERIALIZED (
		SELECT EXISTS (SELECT FROM amends_sessions WHERE token = $4 AND NOT dead AND expires_at > clock.now) AS live,
			EXISTS (SELECT FROM holder LEFT JOIN amends_sessions AS s ON s.token = holder.session
				WHERE holder.session IS NOT NULL AND (s.token IS NULL OR s.dead OR s.expires_at <= clock.now)) AS lost
		FROM clock),
	known AS MATERIALIZED (
		SELECT value ->> 0 AS saga, (value ->> 1)::integer AS version
		FROM state CROSS JOIN jsonb_array_elements($2::jsonb) AS value
		WHERE $3 > 0 AND state.live AND ($5::boolean OR NOT state.lost)),
	present (saga, version, class) AS (
		SELECT h.saga, h.version, h.class FROM (SELECT DISTINCT saga FROM known) AS mine CROSS JOIN LATERAL (
			SELECT h.saga, h.version, h.class FROM amends_instances AS h WHERE h.saga = mine.saga AND ` + released + `
			ORDER BY h.version, h.class LIMIT 1) AS h
		UNION ALL
		SELECT h.saga, h.version, h.class FROM present CROSS JOIN LATERAL (
			SELECT h.saga, h.version, h.class FROM amends_instances AS h
			WHERE h.saga = present.saga AND (h.version, h.class) > (present.version, present.class) AND ` + released + `
			ORDER BY h.version, h.class LIMIT 1) AS h),
	place AS MATERIALIZED (
		SELECT present.saga, present.version, present.class
		FROM present CROSS JOIN LATERAL (SELECT FROM known WHERE known.saga = present.saga AND known.version = present.version LIMIT 1) AS one
		WHERE present.class BETWEEN 0 AND 2),
	ended (saga) AS (
		SELECT (SELECT h.saga FROM amends_instances AS h WHERE ` + unread + ` ORDER BY h.saga LIMIT 1) WHERE EXISTS (SELECT FROM known)
		UNION ALL
		SELECT (SELECT h.saga FROM amends_instances AS h WHERE h.saga > ended.saga AND ` + unread + ` ORDER BY h.saga LIMIT 1)
		FROM ended WHERE ended.saga IS NOT NULL),
	newest AS MATERIALIZED (
		SELECT ended.saga, one.version
		FROM ended CROSS JOIN LATERAL (SELECT max(known.version) AS version FROM known WHERE known.saga = ended.saga) AS one
		WHERE one.version IS NOT NULL),
	room AS MATERIALIZED (
		SELECT value ->> 0 AS destination, least((value ->> 1)::integer, $3) AS places
		FROM state CROSS JOIN jsonb_array_elements($6::jsonb) AS value
			CROSS JOIN LATERAL (SELECT FROM amends_instances AS h WHERE h.waits_for = value ->> 0 LIMIT 1) AS one
		WHERE $3 > 0 AND state.live AND ($5::boolean OR NOT state.lost))`

// restText says whether there is anything to claim. Starting a statement of the size of claimText
// costs the server twice what an empty look does, so a process that found nothing asks this first.
const restText = lookText + `
	SELECT live, lost, (SELECT controls FROM amends_meta) AS controls,
		EXISTS (SELECT FROM amends_instances AS h WHERE h.session = $4 AND h.received > h.consumed)
		OR EXISTS (SELECT FROM place CROSS JOIN LATERAL (
			SELECT FROM amends_instances AS h
			WHERE h.saga = place.saga AND h.version = place.version AND h.class = place.class AND ` + ripe + ` LIMIT 1) AS h)
		OR EXISTS (SELECT FROM newest CROSS JOIN LATERAL (
			SELECT FROM amends_instances AS h WHERE h.saga = newest.saga AND h.version <= newest.version AND ` + news + ` LIMIT 1) AS h)
		OR EXISTS (SELECT FROM room CROSS JOIN LATERAL (SELECT * FROM known OFFSET 0) AS known CROSS JOIN LATERAL (
			SELECT FROM amends_instances AS h
			WHERE h.waits_for = room.destination AND h.saga = known.saga AND h.version = known.version AND ` + waits + ` LIMIT 1) AS h) AS busy
	FROM state`

// claimText gives a session works. Beside the parameters of lookText: $7 how many go first to works
// that have not begun.
//
// The first of every place are looked at without a lock and put in the order of claims, which tells
// how many are wanted of each place; as many are then locked there, past those that another process
// has locked. So what is locked is taken, and no claimer waits for another.
//
//nolint:dupword // columns that are null, one after the other
var claimText = lookText + `,
	line AS MATERIALIZED (
		SELECT *, row_number() OVER (PARTITION BY destination ORDER BY class, created_at, ref) AS turn
		FROM (
			SELECT room.destination, room.places, known.saga, known.version, h.class, h.created_at, h.ref, h.due_at
			FROM room CROSS JOIN LATERAL (SELECT * FROM known OFFSET 0) AS known CROSS JOIN LATERAL (
				SELECT h.class, h.created_at, h.ref, h.due_at FROM amends_instances AS h
				WHERE h.waits_for = room.destination AND h.saga = known.saga AND h.version = known.version AND ` + waits + `
				ORDER BY h.class, h.created_at, h.ref LIMIT room.places) AS h) AS waiting),
	seen AS MATERIALIZED (
		SELECT place.saga, place.version, place.class, h.due_at
		FROM place CROSS JOIN LATERAL (
			SELECT h.due_at FROM amends_instances AS h
			WHERE h.saga = place.saga AND h.version = place.version AND h.class = place.class AND ` + ripe + `
			ORDER BY h.due_at LIMIT $3) AS h
		UNION ALL
		SELECT newest.saga, NULL, 1, h.due_at
		FROM newest CROSS JOIN LATERAL (
			SELECT h.due_at FROM amends_instances AS h WHERE h.saga = newest.saga AND h.version <= newest.version AND ` + news + `
			ORDER BY h.due_at LIMIT $3) AS h),
	wanted AS MATERIALIZED (
		SELECT destination, saga, version, CASE WHEN destination IS NULL THEN class END AS class, count(*) AS n
		FROM (
			SELECT * FROM (
				SELECT NULL AS destination, saga, version, class, due_at, row_number() OVER (ORDER BY class, due_at) AS turn,
					class = 2 AND row_number() OVER (PARTITION BY class = 2 ORDER BY due_at) <= $7 AS fresh
				FROM seen
				UNION ALL
				SELECT destination, saga, version, class, due_at, turn, false FROM line WHERE turn <= places) AS lines
			ORDER BY NOT fresh, class > 0, turn, due_at LIMIT $3) AS chosen
		GROUP BY 1, 2, 3, 4),
	free AS MATERIALIZED (
		SELECT h.ref, h.due_at, NULL AS waited
		FROM wanted CROSS JOIN LATERAL (
			SELECT h.ref, h.due_at FROM amends_instances AS h
			WHERE h.saga = wanted.saga AND h.version = wanted.version AND h.class = wanted.class AND ` + ripe + `
			ORDER BY h.due_at LIMIT wanted.n FOR NO KEY UPDATE OF h SKIP LOCKED) AS h
		WHERE wanted.destination IS NULL AND wanted.version IS NOT NULL),
	called AS MATERIALIZED (
		SELECT h.ref, h.due_at, wanted.destination AS waited
		FROM wanted CROSS JOIN LATERAL (
			SELECT h.ref, h.due_at FROM amends_instances AS h
			WHERE h.waits_for = wanted.destination AND h.saga = wanted.saga AND h.version = wanted.version AND ` + waits + `
			ORDER BY h.class, h.created_at, h.ref LIMIT wanted.n FOR NO KEY UPDATE OF h SKIP LOCKED) AS h
		WHERE wanted.destination IS NOT NULL),
	spoken AS MATERIALIZED (
		SELECT h.ref, h.due_at, NULL AS waited
		FROM wanted JOIN newest USING (saga) CROSS JOIN LATERAL (
			SELECT h.ref, h.due_at FROM amends_instances AS h WHERE h.saga = newest.saga AND h.version <= newest.version AND ` + news + `
			ORDER BY h.due_at LIMIT wanted.n FOR NO KEY UPDATE OF h SKIP LOCKED) AS h
		WHERE wanted.version IS NULL),
	taken AS (
		UPDATE amends_instances AS h SET session = $4, due_at = NULL, waits_for = NULL
		FROM (SELECT * FROM free UNION ALL SELECT * FROM called UNION ALL SELECT * FROM spoken) AS locked WHERE h.ref = locked.ref
		RETURNING ` + sqlstore.HeadColumns + `, locked.due_at AS since, locked.waited)
	SELECT taken.*, NULL::boolean AS live, NULL::boolean AS lost, NULL::bigint AS controls FROM taken
	UNION ALL
	SELECT ` + sqlstore.HeadColumns + `, NULL, NULL, NULL, NULL, NULL FROM amends_instances AS h
		WHERE h.session = $4 AND h.received > h.consumed
	UNION ALL
	SELECT ` + sqlstore.NoHead + `, NULL, NULL, live, lost, (SELECT controls FROM amends_meta)
		FROM clock CROSS JOIN state`

// What the indexes of claims hold.
const (
	released = `h.session IS NULL AND h.due_at IS NOT NULL AND h.finished_at IS NULL AND h.waits_for IS NULL`
	unread   = `h.session IS NULL AND h.due_at IS NOT NULL AND h.finished_at IS NOT NULL`
)

// What is due: works that go on, those that wait for a destination, and works that have ended and
// have an unread signal.
const (
	ripe  = `h.session IS NULL AND h.finished_at IS NULL AND h.waits_for IS NULL AND h.due_at <= (SELECT now FROM clock)`
	waits = `h.due_at <= (SELECT now FROM clock)`
	news  = `h.session IS NULL AND h.finished_at IS NOT NULL AND h.due_at <= (SELECT now FROM clock)`
)

// releaseText takes works from dead sessions: due since the end of the lease, or not at all when
// they are at rest. The parameters: $1 the clock, $2 how many at most.
const releaseText = `WITH RECURSIVE ` + sqlstore.Holders + `,
	clock AS MATERIALIZED (SELECT ` + clock + ` AS now),
	lost AS MATERIALIZED (
		SELECT holder.session, s.expires_at
		FROM holder LEFT JOIN amends_sessions AS s ON s.token = holder.session
		WHERE holder.session IS NOT NULL AND (s.token IS NULL OR s.dead)),
	orphan AS MATERIALIZED (
		SELECT h.ref, least(coalesce(lost.expires_at, h.updated_at), (SELECT now FROM clock)) AS since
		FROM lost CROSS JOIN LATERAL (
			SELECT h.ref, h.updated_at FROM amends_instances AS h WHERE h.session = lost.session
			LIMIT $2 FOR NO KEY UPDATE OF h SKIP LOCKED) AS h
		LIMIT $2)
	UPDATE amends_instances AS h SET session = NULL,
		due_at = CASE WHEN h.received > h.consumed OR ` + sqlstore.GoesOn + ` THEN orphan.since END
	FROM orphan WHERE h.ref = orphan.ref`

// giveBackText releases works that a session holds, and makes released ones due earlier, in the
// order in which appends lock them. The parameters: $1 the clock, $2 the session, $3 number, due
// time, destination, and when it leaves that, of each. A released one is not taken from the line in which it stands.
const giveBackText = `WITH
	clock AS MATERIALIZED (SELECT ` + clock + ` AS now),
	given AS MATERIALIZED (
		SELECT (value ->> 0)::bigint AS ref,
			'epoch'::timestamptz + (value ->> 1)::bigint * interval '1 microsecond' AS due_at, value ->> 2 AS destination,
			'epoch'::timestamptz + (value ->> 3)::bigint * interval '1 microsecond' AS leaves_at
		FROM json_array_elements($3::json) AS value),
	locked AS MATERIALIZED (
		SELECT h.ref, coalesce(given.due_at, (SELECT now FROM clock)) AS due_at,
			CASE WHEN h.session = $2 THEN given.destination ELSE h.waits_for END AS destination,
			CASE WHEN h.session = $2 THEN least(given.leaves_at, h.deadline_at) ELSE h.leaves_at END AS leaves_at
		FROM given JOIN amends_instances AS h ON h.ref = given.ref
		WHERE h.session = $2
			OR h.session IS NULL AND h.status ` + sqlstore.Live + ` AND h.due_at > coalesce(given.due_at, (SELECT now FROM clock))
		ORDER BY h.ref FOR NO KEY UPDATE OF h)
	UPDATE amends_instances AS h SET session = NULL, due_at = CASE
		WHEN h.received > h.consumed THEN least(locked.due_at, (SELECT now FROM clock))
		WHEN ` + sqlstore.GoesOn + ` THEN locked.due_at
	END,
	waits_for = CASE WHEN h.received = h.consumed AND h.status ` + sqlstore.Live + ` THEN locked.destination END,
	leaves_at = CASE WHEN locked.destination IS NOT NULL THEN locked.leaves_at END
	FROM locked WHERE h.ref = locked.ref`
