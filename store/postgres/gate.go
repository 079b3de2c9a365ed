package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// Judge hands out deliveries that have not been judged yet. It stores dispositions and entries in
// one transaction.
func (db *DB) Judge(ctx context.Context, limit int, decide func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error) (int, error) {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return 0, err
	}
	var n int
	var refused error
	err := db.repeatedly(ctx, func(tx *sqlx.Tx) error {
		n, refused = 0, nil
		var ds []intake.Delivery
		if err := read(ctx, tx, db.heard.unjudged, rows.Deliveries(&ds), limit); err != nil || len(ds) == 0 {
			return err
		}
		l, err := db.lock(ctx, tx, ds)
		if err != nil {
			return err
		}
		before := slices.Clone(ds)
		if refused = decide(l.now, ds, l.entries); refused != nil {
			return errRefused
		}
		if err := l.store(ctx); err != nil {
			return err
		}
		table := make([][]any, len(ds))
		for i := range ds {
			table[i] = rows.Outcome(&ds[i])
		}
		n = len(ds)
		if err := execute(ctx, within(ctx, tx, db.heard.judge), nil, table, rows.Micros(l.now)); err != nil {
			return err
		}
		if err := sqlstore.CountJudged(ctx, db.store, tx, rows.Judgements(ds)); err != nil {
			return err
		}
		return sqlstore.CountBlocked(ctx, db.store, tx, ledger.ByVersion, sqlstore.TurnedAway(before, ds), l.now)
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
	if err := ctx.Err(); err != nil || limit <= 0 {
		return nil, err
	}
	var claimed []intake.Entry
	var refused error
	err := db.repeatedly(ctx, func(tx *sqlx.Tx) error {
		claimed, refused = nil, nil
		l := db.locks(tx)
		found, err := l.read(ctx, db.heard.dueAll, limit)
		if err != nil {
			return err
		}
		for i := range found {
			if refused = decide(l.now, &found[i]); refused != nil {
				return errRefused
			}
		}
		if err := l.store(ctx); err != nil {
			return err
		}
		for _, e := range found {
			if e.Holder != "" && e.Until.After(l.now) {
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

// Update hands out one entry.
func (db *DB) Update(ctx context.Context, o intake.Object, decide func(time.Time, *intake.Entry) error) error {
	return db.update(ctx, o, func(*sqlx.Tx) error { return nil }, decide)
}

// Weigh hands out one entry, with what was withdrawn of its source lately.
func (db *DB) Weigh(ctx context.Context, o intake.Object, id saga.ID, b intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	var t intake.Tally
	return db.update(ctx, o, func(tx *sqlx.Tx) (err error) {
		t, err = sqlstore.Weigh(ctx, db.store, tx, o.Source, id, &b)
		return err
	}, func(now time.Time, e *intake.Entry) error { return decide(now, e, t) })
}

// update does first, and hands out one entry, in one transaction.
func (db *DB) update(ctx context.Context, o intake.Object, first func(*sqlx.Tx) error, decide func(time.Time, *intake.Entry) error) error {
	key := rows.Object(o)
	var refused error
	err := db.repeatedly(ctx, func(tx *sqlx.Tx) error {
		refused = nil
		if err := first(tx); err != nil {
			return err
		}
		l := db.locks(tx)
		found, err := l.read(ctx, db.heard.lockEntry, rows.Key(key)...)
		if err == nil && len(found) == 0 {
			if err = execute(ctx, within(ctx, tx, db.heard.addEntries), nil, [][]any{rows.Key(key)}); err == nil {
				_, err = l.read(ctx, db.heard.lockEntry, rows.Key(key)...)
			}
		}
		if err != nil {
			return err
		}
		if refused = decide(l.now, l.entries[key]); refused != nil {
			return errRefused
		}
		return l.store(ctx)
	})
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return fmt.Errorf("update %s: %w", o, err)
	}
	return nil
}

// locked are the entries that a transaction has locked.
type locked struct {
	*DB

	tx      *sqlx.Tx
	now     time.Time
	order   []intake.Object
	entries map[intake.Object]*intake.Entry
	before  map[intake.Object][]any // what the database says
}

func (db *DB) locks(tx *sqlx.Tx) *locked {
	return &locked{
		DB: db, tx: tx,
		entries: make(map[intake.Object]*intake.Entry),
		before:  make(map[intake.Object][]any),
	}
}

// lock locks the entries of the objects of deliveries. An object that the store does not have gets
// an entry that is not stored yet: [locked.store] finds out whether another transaction was first.
func (db *DB) lock(ctx context.Context, tx *sqlx.Tx, ds []intake.Delivery) (*locked, error) {
	seen := make(map[intake.Object]bool, len(ds))
	var objects []intake.Object
	var table [][]any
	for i := range ds {
		if o := ds[i].Object; !seen[o] {
			seen[o] = true
			objects = append(objects, o)
			table = append(table, rows.Key(o))
		}
	}
	l := db.locks(tx)
	if _, err := l.read(ctx, db.heard.lockEntries, columns(table)...); err != nil {
		return nil, err
	}
	if l.now.IsZero() {
		if err := tx.QueryRowxContext(ctx, `SELECT clock_timestamp()`).Scan(&l.now); err != nil {
			return nil, err
		}
		l.now = l.now.UTC()
	}
	rows.SortObjects(objects)
	for _, o := range objects {
		if l.entries[o] == nil {
			l.order = append(l.order, o)
			l.entries[o] = &intake.Entry{Object: o, First: l.now}
		}
	}
	return l, nil
}

// read locks entries, and reads the clock behind that.
func (l *locked) read(ctx context.Context, stmt *sqlx.Stmt, args ...any) (es []intake.Entry, err error) {
	err = read(ctx, l.tx, stmt, rows.Entries(&es, rows.Field{Name: "now", At: &l.now}), args...)
	for i := range es {
		var values []any
		if err == nil {
			values, err = rows.Values(&es[i])
		}
		o := es[i].Object
		l.order = append(l.order, o)
		l.entries[o], l.before[o] = &es[i], values
	}
	return es, err
}

// store writes the entries that have changed or are new. New ones are written in the order of their
// names, so that two batches that meet wait and do not deadlock.
func (l *locked) store(ctx context.Context) error {
	var table, fresh [][]any
	for _, o := range l.order {
		e := l.entries[o]
		e.Object = o
		after, err := rows.Values(e)
		if err != nil {
			return err
		}
		before := l.before[o]
		if before != nil && rows.Same(before, after) {
			continue
		}
		e.Updated = l.now
		after[len(after)-1] = rows.Micros(l.now)
		row := append(rows.Key(o), after...)
		if before == nil {
			fresh = append(fresh, row)
		} else {
			table = append(table, row)
		}
	}
	if len(table) > 0 {
		if err := execute(ctx, within(ctx, l.tx, l.heard.setEntries), within(ctx, l.tx, l.heard.setEntry), table); err != nil {
			return err
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	r, err := within(ctx, l.tx, l.heard.newEntries).ExecContext(ctx, columns(fresh)...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || int(n) == len(fresh) {
		return err
	}
	return errMeanwhile
}
