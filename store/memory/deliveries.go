package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// pageSize is the length of a list when the caller sets no limit.
const pageSize = 100

// Deliveries returns deliveries, "the newest first".
func (db *DB) Deliveries(ctx context.Context, f intake.DeliveryFilter) ([]intake.Delivery, error) {
	return in(ctx, db, func(time.Time) ([]intake.Delivery, error) {
		var found []intake.Delivery
		for _, d := range db.selected(f, cmp.Or(f.Limit, pageSize)) {
			found = append(found, copyDelivery(d))
		}
		return found, nil
	}, "list deliveries")
}

// Delivery returns one; "an unknown number matches ErrNotFound".
func (db *DB) Delivery(ctx context.Context, number int64) (intake.Delivery, error) {
	return in(ctx, db, func(time.Time) (intake.Delivery, error) {
		d := db.rows[number]
		if d == nil {
			return intake.Delivery{}, intake.ErrNotFound
		}
		return copyDelivery(d), nil
	}, "delivery %d", number)
}

// Entry returns what is known of an object; "nil when nothing is".
func (db *DB) Entry(ctx context.Context, o intake.Object) (*intake.Entry, error) {
	return in(ctx, db, func(time.Time) (*intake.Entry, error) {
		if e := db.entries[o]; e != nil {
			return copyEntry(e), nil
		}
		return nil, nil
	}, "entry %s", o)
}

// Entries returns entries "in the order of their objects".
func (db *DB) Entries(ctx context.Context, f intake.EntryFilter) ([]intake.Entry, error) {
	return in(ctx, db, func(time.Time) ([]intake.Entry, error) {
		var found []*intake.Entry
		for o, e := range db.entries {
			if within(o, f.Object) && compareObjects(o, f.After) > 0 && (!f.Owing || e.Owing()) && (!f.Blocked || e.Blocked != "") && (!f.Held || e.Held > 0) && (!f.Future || !e.Future().IsZero()) {
				found = append(found, e)
			}
		}
		slices.SortFunc(found, func(a, b *intake.Entry) int { return compareObjects(a.Object, b.Object) })
		found = found[:min(len(found), cmp.Or(f.Limit, pageSize))]
		return each(found, func(e *intake.Entry) intake.Entry { return *copyEntry(e) }), nil
	}, "list entries")
}

// Counts returns "how many deliveries of each source met which disposition".
func (db *DB) Counts(ctx context.Context) ([]intake.Count, error) {
	return in(ctx, db, func(time.Time) ([]intake.Count, error) {
		type group struct {
			source      string
			disposition intake.Disposition
		}
		counts := map[group]*intake.Count{}
		for _, d := range db.rows {
			g := group{source: d.Object.Source}
			if !d.Judged.IsZero() { // "an empty disposition counts the unjudged"
				g.disposition = d.Outcome
			}
			c := counts[g]
			if c == nil {
				c = &intake.Count{Source: g.source, Disposition: g.disposition}
				counts[g] = c
			}
			c.Count++
			if d.Received.After(c.Last) {
				c.Last = d.Received
			}
		}
		list := make([]intake.Count, 0, len(counts))
		for _, c := range counts {
			list = append(list, *c)
		}
		slices.SortFunc(list, func(a, b intake.Count) int {
			return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Disposition, b.Disposition))
		})
		return list, nil
	}, "count deliveries")
}

// Stopped returns "of which objects deliveries came to nothing", "those first of which one did
// last".
func (db *DB) Stopped(ctx context.Context, f intake.StoppedFilter) ([]intake.Stopped, error) {
	return in(ctx, db, func(time.Time) ([]intake.Stopped, error) {
		counts := map[intake.Object]*intake.Stopped{}
		for _, d := range db.selected(intake.DeliveryFilter{Object: f.Object}, intake.StoppedWithin) {
			known := d.Outcome == intake.Stale || d.Outcome == intake.Duplicate
			if d.Copies == 1 && !known || !strings.HasPrefix(d.Object.String(), f.Prefix) {
				continue
			}
			c := counts[d.Object]
			if c == nil {
				c = &intake.Stopped{Object: d.Object, First: d.Received}
				counts[d.Object] = c
			}
			last := d.Received
			if c.Copies += int64(d.Copies - 1); d.Copies > 1 {
				last = d.Last
			}
			if known {
				c.Known++
			}
			if d.Received.Before(c.First) {
				c.First = d.Received
			}
			if last.After(c.Last) {
				c.Last = last
			}
		}
		list := make([]intake.Stopped, 0, len(counts))
		for _, c := range counts {
			list = append(list, *c)
		}
		slices.SortFunc(list, func(a, b intake.Stopped) int {
			return cmp.Or(b.Last.Compare(a.Last), compareObjects(a.Object, b.Object))
		})
		return list[:min(len(list), cmp.Or(f.Limit, pageSize))], nil
	}, "count what was stopped")
}

// Replay makes deliveries "unjudged again".
func (db *DB) Replay(ctx context.Context, f intake.DeliveryFilter, why string) (int, error) {
	return in(ctx, db, func(time.Time) (int, error) {
		chosen := db.selected(f, f.Limit)
		for _, d := range chosen {
			if !d.Judged.IsZero() {
				d.Judged, d.Because = time.Time{}, why // its outcome stays: that is how the gate knows a replay
				db.pending = append(db.pending, d.Number)
			}
		}
		slices.Sort(db.pending)
		return len(chosen), nil
	}, "replay deliveries")
}

// Purge erases "what is older than the retention allows, at most limit rows of each kind, and never
// what is still owed".
func (db *DB) Purge(ctx context.Context, r intake.Retention, limit int) (int, error) {
	return in(ctx, db, func(now time.Time) (int, error) {
		over := func(at time.Time, keep time.Duration) bool { return keep > 0 && at.Before(now.Add(-keep)) }
		bodies, rows, digests := 0, 0, 0
		for n, d := range db.rows {
			switch {
			case d.Judged.IsZero() || db.owing(d.Object):
			case over(d.Last, r.Rows) && rows < limit:
				delete(db.rows, n)
				rows++
			case len(d.Body) > 0 && over(d.Last, r.Bodies) && bodies < limit:
				d.Body = nil
				bodies++
			}
		}
		for key, m := range db.heard {
			if db.rows[m.number] == nil && over(m.last, r.Digests) && digests < limit {
				delete(db.heard, key)
				digests++
			}
		}
		return bodies + rows + digests, nil
	}, "purge")
}

// Forget erases "what is known of an object, and its deliveries".
func (db *DB) Forget(ctx context.Context, o intake.Object) (bool, error) {
	return in(ctx, db, func(time.Time) (bool, error) {
		e := db.entries[o]
		if e != nil && (e.Owing() || e.Held != 0 || e.Blocked != "" || e.Holder != "") {
			return false, nil
		}
		for _, n := range db.pending {
			if db.rows[n].Object == o {
				return false, nil
			}
		}
		delete(db.entries, o)
		maps.DeleteFunc(db.rows, func(_ int64, d *intake.Delivery) bool { return d.Object == o })
		return true, nil
	}, "forget %s", o)
}

func (db *DB) owing(o intake.Object) bool {
	e := db.entries[o]
	return e != nil && e.Owing()
}

// selected returns the deliveries that f selects, the newest first; limit 0 is none.
func (db *DB) selected(f intake.DeliveryFilter, limit int) []*intake.Delivery {
	var found []*intake.Delivery
	for n := db.last; n > 0 && (limit == 0 || len(found) < limit); n-- {
		if d := db.rows[n]; d != nil && selects(&f, d) {
			found = append(found, d)
		}
	}
	return found
}

func selects(f *intake.DeliveryFilter, d *intake.Delivery) bool {
	switch {
	case f.Numbers != nil && !slices.Contains(f.Numbers, d.Number),
		f.Source != "" && f.Source != d.Object.Source,
		!within(d.Object, f.Object),
		f.Disposition != "" && f.Disposition != d.Outcome,
		f.Unjudged && !d.Judged.IsZero(),
		!f.From.IsZero() && d.Received.Before(f.From),
		!f.Until.IsZero() && !d.Received.Before(f.Until),
		f.Before > 0 && d.Number >= f.Before:
		return false
	}
	return true
}

// within reports whether o has the non-empty fields of want.
func within(o, want intake.Object) bool {
	is := func(got, want string) bool { return want == "" || got == want }
	return is(o.Source, want.Source) && is(o.Tenant, want.Tenant) && is(o.Type, want.Type) && is(o.ID, want.ID)
}
