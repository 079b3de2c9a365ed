package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/engine"
	"github.com/amends-dev/amends/store/internal/people"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/shelf"
	"github.com/amends-dev/amends/store/internal/travels"
	"github.com/amends-dev/amends/store/internal/turns"
)

// ofChains is what the ledger needs to know about SQLite.
func (db *DB) ofChains() *engine.Database {
	return &engine.Database{
		Words:      words,
		Clock:      func() any { return db.clock() },
		Read:       db.view,
		Plain:      db.writer.plain,
		Pulse:      db.writer.plain,
		Identity:   identity,
		Schema:     migrations.Latest(migrations.SQLite),
		Claim:      db.claim,
		GiveBack:   db.giveBack,
		Post:       db.post,
		SetControl: db.setControl,
		Explain:    explained,
	}
}

// ofPeople is what lists and counts need to know.
func (db *DB) ofPeople() people.Database {
	return people.Database{
		Read: db.readers,
		Write: func(ctx context.Context, fn func(context.Context, people.Queries) error) error {
			return db.transaction(ctx, func(ctx context.Context, q engine.Queries) error { return fn(ctx, q) })
		},
		Numbers: `(SELECT value FROM json_each(?))`,
		Bind:    func(query string) string { return query },
		Now:     func(context.Context) (time.Time, error) { return time.Now(), nil },
		Moment:  rows.Micros,
		Explain: explained,
	}
}

// ofPlans is what plans and drift need to know.
func (db *DB) ofPlans() shelf.Database {
	return shelf.Database{
		Read: db.readers,
		Write: func(ctx context.Context, fn func(context.Context, shelf.Queries) error) error {
			return db.transaction(ctx, func(ctx context.Context, q engine.Queries) error { return fn(ctx, q) })
		},
		Elements: `(SELECT value FROM json_each(?)) AS e`,
		Bind:     func(query string) string { return query },
		Now:      func(context.Context) (time.Time, error) { return time.Now(), nil },
		Moment:   rows.Micros,
		Explain:  explained,
	}
}

// ofSweeps is what sweeps need to know. Their pages share a commit with what is heard at the same time.
func (db *DB) ofSweeps() travels.Database {
	return travels.Database{
		Read:     db.readers,
		Write:    db.page,
		Elements: `json_each(?)`,
		Bind:     func(query string) string { return query },
		Moment:   func(micros string) string { return micros },
		Bytes:    func(hex string) string { return `unhex(` + hex + `)` },
		Clock:    `CAST(unixepoch('now', 'subsec') * 1000000 AS integer)`,
		Explain:  explained,
	}
}

// ofJobs is what jobs and their runs need to know. A transaction that writes has locked everything.
func (db *DB) ofJobs() turns.Database {
	return turns.Database{
		Read: db.readers,
		Write: func(ctx context.Context, fn func(context.Context, turns.Queries) error) error {
			return db.transaction(ctx, func(ctx context.Context, q engine.Queries) error { return fn(ctx, q) })
		},
		Bind: func(query string) string { return query },
		Now: func(context.Context, sqlx.QueryerContext) (time.Time, error) {
			_, now := db.calendar()
			return now, nil
		},
		Moment:  rows.Micros,
		Explain: explained,
	}
}

func explained(_ context.Context, err error) error { return explain(err) }
