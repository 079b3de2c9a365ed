package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// Judge hands out deliveries that have not been judged yet. It stores dispositions and entries in
// one transaction.
func (db *DB) Judge(ctx context.Context, limit int, decide func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	var n int
	var refused error
	err := db.transaction(ctx, func(ctx context.Context, q sqlstore.Queries) error {
		var ds []intake.Delivery
		if err := rows.Deliveries(&ds)(db.heard.unjudged.QueryContext(ctx, limit)); err != nil || len(ds) == 0 { //nolint:rowserrcheck // a reader does
			return err
		}
		micros, now := db.calendar()
		l := locked{DB: db, now: now, entries: make(map[intake.Object]*held)}
		es, err := l.of(ctx, ds)
		if err != nil {
			return err
		}
		before := slices.Clone(ds)
		if refused = decide(now, ds, es); refused != nil {
			return refused
		}
		outcomes := make([][]any, len(ds))
		for i := range ds {
			outcomes[i] = rows.Outcome(&ds[i])
		}
		list, err := json.Marshal(outcomes)
		if err != nil {
			return err
		}
		if _, err := db.heard.judge.ExecContext(ctx, string(list), micros); err != nil {
			return err
		}
		if err := l.store(ctx); err != nil {
			return err
		}
		n = len(ds)
		if err := sqlstore.CountJudged(ctx, db.store, q, rows.Judgements(ds)); err != nil {
			return err
		}
		return sqlstore.CountBlocked(ctx, db.store, q, ledger.ByVersion, sqlstore.TurnedAway(before, ds), now)
	})
	switch {
	case refused != nil:
		return 0, refused
	case err != nil:
		return 0, fmt.Errorf("judge deliveries: %w", err)
	}
	return n, nil
}

// Lease hands out entries that are due and whose lease, if any, is over.
func (db *DB) Lease(ctx context.Context, limit int, decide func(time.Time, *intake.Entry) error) ([]intake.Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	var claimed []intake.Entry
	var refused error
	err := db.transaction(ctx, func(ctx context.Context, _ sqlstore.Queries) error {
		micros, now := db.calendar()
		var due []intake.Entry
		if err := rows.Entries(&due)(db.heard.due.QueryContext(ctx, micros, limit)); err != nil { //nolint:rowserrcheck // a reader does
			return err
		}
		l := locked{DB: db, now: now, entries: make(map[intake.Object]*held)}
		for i := range due {
			e := &due[i]
			if err := l.hold(e, true); err != nil {
				return err
			}
			if refused = decide(now, e); refused != nil {
				return refused
			}
		}
		if err := l.store(ctx); err != nil {
			return err
		}
		for _, e := range due {
			if e.Holder != "" && e.Until.After(now) {
				claimed = append(claimed, e)
			}
		}
		return nil
	})
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("lease entries: %w", err)
	}
	return claimed, nil
}

// Update hands out one entry. Calls that come at the same time share a commit with each other and
// with Accept.
func (db *DB) Update(ctx context.Context, o intake.Object, decide func(time.Time, *intake.Entry) error) error {
	return db.update(ctx, o, func(context.Context, sqlstore.Queries) error { return nil }, decide)
}

// Weigh hands out one entry, with what was withdrawn of its source lately.
func (db *DB) Weigh(ctx context.Context, o intake.Object, id saga.ID, b intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	var t intake.Tally
	return db.update(ctx, o, func(ctx context.Context, q sqlstore.Queries) (err error) {
		t, err = sqlstore.Weigh(ctx, db.store, q, o.Source, id, &b)
		return err
	}, func(now time.Time, e *intake.Entry) error { return decide(now, e, t) })
}

// update does first, and hands out one entry, in one transaction, which others share.
func (db *DB) update(ctx context.Context, o intake.Object, first func(context.Context, sqlstore.Queries) error, decide func(time.Time, *intake.Entry) error) error {
	var refused error
	var panicked any
	err := db.changes.DoOrNot(ctx, change{size: 1, run: func(ctx context.Context, b *shared) error {
		defer func() { panicked = recover() }() // it is the caller's, not the writer's
		if err := first(ctx, b); err != nil {
			return err
		}
		_, now := db.calendar()
		l := locked{DB: db, now: now, entries: make(map[intake.Object]*held)}
		e, err := l.entry(ctx, rows.Object(o))
		if err != nil {
			return err
		}
		if refused = decide(now, e); refused != nil {
			return nil // nothing was written for it, and others share the transaction
		}
		return l.store(ctx)
	}})
	switch {
	case panicked != nil:
		panic(panicked)
	case refused != nil:
		return refused
	case err != nil:
		return fmt.Errorf("update %s: %w", o, err)
	}
	return nil
}

// locked are the entries of one transaction.
type locked struct {
	*DB

	now     time.Time
	entries map[intake.Object]*held
}

// held is an entry as the callback has it, and what the database says.
type held struct {
	entry  *intake.Entry
	before []any
	known  bool
}

// entry returns what is known of o, an empty entry when nothing is.
func (l *locked) entry(ctx context.Context, o intake.Object) (*intake.Entry, error) {
	var found []intake.Entry
	if err := rows.Entries(&found)(l.heard.entry.QueryContext(ctx, rows.Key(o)...)); err != nil { //nolint:rowserrcheck // a reader does
		return nil, err
	}
	e := &intake.Entry{Object: o, First: l.now}
	if len(found) > 0 {
		e = &found[0]
	}
	return e, l.hold(e, len(found) > 0)
}

// of returns the entries of the objects of deliveries.
func (l *locked) of(ctx context.Context, ds []intake.Delivery) (map[intake.Object]*intake.Entry, error) {
	es := make(map[intake.Object]*intake.Entry, len(ds))
	var keys [][]any
	for i := range ds {
		if o := ds[i].Object; es[o] == nil {
			es[o] = &intake.Entry{Object: o, First: l.now}
			keys = append(keys, rows.Key(o))
		}
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	var found []intake.Entry
	if err := rows.Entries(&found)(l.heard.entries.QueryContext(ctx, string(list))); err != nil { //nolint:rowserrcheck // a reader does
		return nil, err
	}
	for i := range found {
		es[found[i].Object] = &found[i]
		if err := l.hold(&found[i], true); err != nil {
			return nil, err
		}
	}
	for o, e := range es {
		if l.entries[o] == nil {
			if err := l.hold(e, false); err != nil {
				return nil, err
			}
		}
	}
	return es, nil
}

func (l *locked) hold(e *intake.Entry, known bool) error {
	before, err := rows.Values(e)
	l.entries[e.Object] = &held{entry: e, before: before, known: known}
	return err
}

// store writes the entries that are new or have changed.
func (l *locked) store(ctx context.Context) error {
	for o, h := range l.entries {
		h.entry.Object = o
		after, err := rows.Values(h.entry)
		if err != nil {
			return err
		}
		if h.known && rows.Same(h.before, after) {
			continue
		}
		h.entry.Updated = l.now
		after[len(after)-1] = rows.Micros(l.now)
		write := l.heard.setEntry
		if !h.known {
			write = l.heard.addEntry
		}
		if _, err := write.ExecContext(ctx, append(after, rows.Key(o)...)...); err != nil {
			return fmt.Errorf("store the entry of %s: %w", o, err)
		}
	}
	return nil
}
