package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
)

// Judge hands out deliveries that have not been judged yet, "the oldest first, with the entries of
// their objects". The callback works on copies. The copies replace the stored values when it
// returns nil.
func (db *DB) Judge(ctx context.Context, limit int, decide func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error) (int, error) {
	return in(ctx, db, func(now time.Time) (int, error) {
		numbers := db.pending[:min(limit, len(db.pending))]
		if len(numbers) == 0 {
			return 0, nil
		}
		ds, es := make([]intake.Delivery, len(numbers)), map[intake.Object]*intake.Entry{}
		for i, n := range numbers {
			ds[i] = copyDelivery(db.rows[n])
			if o := ds[i].Object; es[o] == nil {
				es[o] = db.entry(o, now)
			}
		}
		if err := decide(now, ds, es); err != nil {
			return 0, ownError{err} // "as it is, and nothing is stored"
		}
		for i := range ds {
			if v := ds[i].Outcome; db.rows[ds[i].Number].Outcome == "" && (v == intake.Stale || v == intake.Duplicate) {
				db.block(ledger.ByVersion, ds[i].Object.Source, 1, now) // "one that is replayed counts once"
			}
			ds[i].Judged = now
			*db.rows[ds[i].Number] = copyDelivery(&ds[i])
		}
		db.pending = slices.Delete(db.pending, 0, len(ds))
		for _, e := range es {
			db.put(e, now)
		}
		return len(ds), nil
	}, "judge deliveries")
}

// Lease hands out "entries that are due and whose lease, if any, is over", those first that are due
// longest.
func (db *DB) Lease(ctx context.Context, limit int, decide func(time.Time, *intake.Entry) error) ([]intake.Entry, error) {
	return in(ctx, db, func(now time.Time) ([]intake.Entry, error) {
		due := db.due(now, limit)
		for i, e := range due {
			due[i] = copyEntry(e)
			if err := decide(now, due[i]); err != nil {
				for _, e := range due {
					db.agenda.add(db.entries[e.Object])
				}
				return nil, ownError{err}
			}
		}
		var claimed []intake.Entry
		for _, e := range due {
			db.put(e, now)
			if e.Holder != "" && e.Until.After(now) { // "those are returned that the callback leaves with [...] a lease in the future"
				claimed = append(claimed, *copyEntry(db.entries[e.Object]))
			}
		}
		return claimed, nil
	}, "lease entries")
}

// Update hands out "one entry, an empty one when there is none".
func (db *DB) Update(ctx context.Context, o intake.Object, decide func(time.Time, *intake.Entry) error) error {
	return db.do(ctx, func(now time.Time) error {
		e := db.entry(o, now)
		if err := decide(now, e); err != nil {
			return ownError{err}
		}
		db.put(e, now)
		return nil
	}, "update %s", o)
}

// entry returns a copy of what is known of o; "new ones are empty but for Object and First".
func (db *DB) entry(o intake.Object, now time.Time) *intake.Entry {
	if e := db.entries[o]; e != nil {
		return copyEntry(e)
	}
	return &intake.Entry{Object: o, First: now}
}

func (db *DB) put(e *intake.Entry, now time.Time) {
	c := copyEntry(e)
	c.Updated = now
	db.entries[c.Object] = c
	db.agenda.add(c)
}

func compareObjects(a, b intake.Object) int {
	return cmp.Or(
		cmp.Compare(a.Source, b.Source), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID),
	)
}

// Holder names none: the database ends with its process.
func (db *DB) Holder() string { return "" }
