package postgres

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// SetControl stores a control if it still has the version it was decided on. The session must be of
// this database.
func (db *DB) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	if err := db.sameDatabase(t); err != nil {
		return ledger.Control{}, fmt.Errorf("set %s %q: %w", c.Kind, c.Name, explain(ctx, err))
	}
	return db.store.SetControl(ctx, t, c)
}

// setControlText is one statement, so that no connection can go silent in the middle of it.
//
// The statement locks the row of the counter first and keeps the lock until the end. Versions
// therefore become visible in their order, and a reader that sees one version sees all versions
// before it. Then the statement locks the session's row and judges it by the clock at that moment.
// A process that buries the session does so either before that lock, and the set is refused, or
// after the control was stored. Rows that the statement read before it had the locks do not count:
// a row that has changed since is judged again in its new state.
const setControlText = `WITH
	counter AS MATERIALIZED (SELECT controls FROM amends_meta FOR NO KEY UPDATE),
	clock AS MATERIALIZED (SELECT ` + clock + ` AS now, controls + 1 AS version FROM counter),
	setter AS MATERIALIZED (
		SELECT FROM clock CROSS JOIN amends_sessions AS s
		WHERE s.token = $2::bigint AND NOT s.dead AND s.expires_at > clock.now
		FOR SHARE OF s),
	changed AS (
		UPDATE amends_controls AS c SET version = clock.version, at = clock.now, session = $2::bigint, nonce = $9::bigint,
			body = $6::text, actor = $7::text, reason = $8::text
		FROM clock
		WHERE c.kind = $3::text AND c.name = $4::text AND c.version = $5::bigint
			AND ($2::bigint = 0 OR EXISTS (SELECT FROM setter))
		RETURNING c.version, c.at),
	added AS (
		INSERT INTO amends_controls (version, at, session, nonce, kind, name, body, actor, reason)
		SELECT clock.version, clock.now, $2::bigint, $9::bigint, $3::text, $4::text, $6::text, $7::text, $8::text FROM clock
		WHERE $5::bigint = 0 AND ($2::bigint = 0 OR EXISTS (SELECT FROM setter))
		ON CONFLICT (kind, name) DO NOTHING
		RETURNING version, at),
	stored AS (SELECT * FROM changed UNION ALL SELECT * FROM added),
	counted AS (UPDATE amends_meta SET controls = stored.version FROM stored)
	SELECT version, at FROM stored`
