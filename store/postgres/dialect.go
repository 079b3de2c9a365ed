package postgres

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// reading looks at what is open on this database. Of transactions of other roles it sees nothing without pg_read_all_stats.
const reading = `SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)`

// openNow are transactions by the lock that each has on itself, which every role sees.
const openNow = `SELECT l.virtualtransaction FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
	WHERE l.locktype = 'virtualxid' AND a.datname = current_database() AND pid <> pg_backend_pid()`

// dialect is what the store needs to know about Postgres.
func (db *DB) dialect(keys ledger.Keys) *sqlstore.Dialect {
	return &sqlstore.Dialect{
		Words:      words,
		Clock:      func() any { return db.now() },
		Load:       db.loads.view,
		View:       db.lists.view,
		Ask:        db.loads.plain,
		Plain:      db.writes.plain,
		Whole:      db.writes.whole,
		Pulse:      db.pulse.plain,
		Read:       db.reads.plain,
		Write:      db.others.whole,
		Accept:     func(ctx context.Context, ins []*rows.Incoming) error { return db.incoming.Do(ctx, ins) },
		Page:       db.page,
		Gate:       db.gate.whole,
		Change:     db.gate.whole,
		Calendar:   func() any { return nil },
		SetEntries: setEntries.write,
		AddEntries: addEntries.write,
		Buckets:    db.meta.Buckets,
		Secret:     db.meta.Secret,
		Keys:       keys,
		Open:       openNow,
		Alive:      db.alive.name,
		Witness:    db.witness,
		Identity:   func(ctx context.Context, q sqlstore.Queries) (string, error) { return db.server.Identify(ctx, q) },
		FailedOver: db.server.FailedOver,
		Schema:     migrations.Latest(migrations.Postgres),
		Claim:      db.claim,
		GiveBack:   db.giveBack,
		Post:       db.post,
		Count:      []string{countText},
		SetControl: []string{setControlText},
		Shard:      db.shard,
		Reading:    reading,
		Bind:       func(query string) string { return sqlx.Rebind(sqlx.DOLLAR, query) },
		Now: func(ctx context.Context, q sqlstore.Queries) (now time.Time, err error) {
			err = q.QueryRowxContext(ctx, `SELECT clock_timestamp()`).Scan(&now)
			return now.UTC(), err
		},
		Today:    `clock_timestamp()`,
		Moment:   func(t time.Time) any { return t },
		MomentOf: func(micros string) string { return `'epoch'::timestamptz + ` + micros + ` * interval '1 microsecond'` },
		BytesOf:  func(hex string) string { return `decode(` + hex + `, 'hex')` },
		Numbers:  `(SELECT value::bigint FROM json_array_elements_text(?::json) AS value)`,
		Elements: `json_array_elements(?::json) AS e (value)`,
		Share:    ` FOR SHARE`,
		Lock:     ` FOR UPDATE`,
		Explain:  explain,
	}
}
