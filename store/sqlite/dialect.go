package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// dialect is what the store needs to know about SQLite. A transaction that writes has locked
// everything.
func (db *DB) dialect(m *sqlstore.Meta, keys ledger.Keys) *sqlstore.Dialect {
	read := func(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
		return fn(ctx, db.readers)
	}
	return &sqlstore.Dialect{
		Words:      words,
		Secret:     m.Secret,
		Keys:       keys,
		Clock:      func() any { return db.clock() },
		Load:       db.view,
		View:       db.view,
		Ask:        read,
		Plain:      db.writer.share,
		Whole:      db.writer.share,
		Pulse:      db.writer.share,
		Read:       read,
		Write:      db.transaction,
		Accept:     db.receive,
		Page:       db.page,
		Gate:       db.transaction,
		Change:     db.change,
		Calendar:   func() any { return db.today().UnixMicro() },
		SetEntries: entries(&db.heard.setEntry),
		AddEntries: entries(&db.heard.addEntry),
		Identity:   identity,
		Witness:    db.witness,
		Schema:     migrations.Latest(migrations.SQLite),
		Claim:      db.claim,
		GiveBack:   db.giveBack,
		Post:       db.post,
		Count:      countTexts,
		SetControl: []string{setControl, countControl},
		Bind:       func(query string) string { return query },
		Now: func(context.Context, sqlstore.Queries) (time.Time, error) {
			_, now := db.calendar()
			return now, nil
		},
		Today:    `CAST(unixepoch('now', 'subsec') * 1000000 AS integer)`,
		Moment:   rows.Micros,
		MomentOf: func(micros string) string { return micros },
		BytesOf:  func(hex string) string { return `unhex(` + hex + `)` },
		Numbers:  `(SELECT value FROM json_each(?))`,
		Elements: `(SELECT value FROM json_each(?)) AS e`,
		Explain:  func(_ context.Context, err error) error { return explain(err) },
		Log:      db.log,
		Shrink:   shrink,
	}
}

// shrink gives back a megabyte of what is free, while that is more than a quarter of the file: less is soon used again. Others wait for the
// writer meanwhile, and each page is looked for among all that are free: of many it gives back fewer. A file keeps all unless its
// owner had it kept so that it can shrink, which costs every saga (docs/expiry.md).
func shrink(ctx context.Context, q sqlstore.Queries) error {
	var free, all int
	if err := q.QueryRowxContext(ctx, `SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count`).Scan(&free, &all); err != nil || free <= all/4 {
		return err
	}
	pages, err := q.QueryxContext(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, max(8, min(256, 4_000_000/free))))
	if err != nil {
		return err
	}
	for pages.Next() { // each step gives back one
	}
	return errors.Join(pages.Err(), pages.Close())
}
