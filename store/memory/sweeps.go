package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/scan"
)

var _ scan.Store = (*DB)(nil)

// sweeps keeps how far sweeps have come, and what they saw.
type sweeps struct {
	positions map[string]scan.Position
	sightings map[listing][]scan.Sighting // in the order of key and id
}

// listing is what sightings belong to.
type listing struct {
	name string
	side scan.Side
}

func newSweeps() sweeps {
	return sweeps{positions: map[string]scan.Position{}, sightings: map[listing][]scan.Sighting{}}
}

// Position returns how far a sweep has come. "One that is unknown has Serial 0 and no State".
func (db *DB) Position(ctx context.Context, name string) (scan.Position, error) {
	return in(ctx, db, func(time.Time) (scan.Position, error) {
		p := db.sweeps.positions[name]
		p.Name = name
		return p, nil
	}, "read the position of %s", name)
}

// Positions returns positions by the beginning of their names, "in the order of their bytes".
func (db *DB) Positions(ctx context.Context, prefix string) ([]scan.Position, error) {
	return in(ctx, db, func(time.Time) ([]scan.Position, error) {
		var ps []scan.Position
		for _, name := range slices.Sorted(maps.Keys(db.sweeps.positions)) {
			if strings.HasPrefix(name, prefix) {
				ps = append(ps, db.sweeps.positions[name])
			}
		}
		return ps, nil
	}, "read the positions of %s", prefix)
}

// Advance stores a page, "in one transaction".
func (db *DB) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	for i := range page.Events {
		if page.Events[i].Dedupe.IsZero() {
			return p, fmt.Errorf("advance %s: event %d of %d (%s) has no dedupe digest", p.Name, i+1, len(page.Events), page.Events[i].Object)
		}
	}
	err := db.do(ctx, func(now time.Time) error {
		stored, next := db.sweeps.positions[p.Name], p
		next.Serial, next.State = p.Serial+1, bytes.Clone(p.State)
		switch {
		case stored.Serial == next.Serial && bytes.Equal(stored.State, next.State): // "stored after all"
			p = next
			return nil
		case stored.Serial != p.Serial:
			return scan.ErrMoved
		}
		p, db.sweeps.positions[p.Name] = next, next
		for i := range page.Events {
			db.accept(&page.Events[i], now)
		}
		for i := range page.Sightings {
			db.see(listing{page.Name, page.Side}, &page.Sightings[i])
		}
		return nil
	}, "advance %s", p.Name)
	return p, err
}

// see keeps a sighting. "Sightings of one (name, side, key, id) replace each other".
func (db *DB) see(l listing, row *scan.Sighting) {
	rows := db.sweeps.sightings[l]
	copied := *row
	copied.Fields = maps.Clone(row.Fields)
	i, found := slices.BinarySearchFunc(rows, row, func(a scan.Sighting, b *scan.Sighting) int { return place(&a, b.Key, b.ID) })
	if found {
		rows[i] = copied
	} else {
		rows = slices.Insert(rows, i, copied)
	}
	db.sweeps.sightings[l] = rows
}

// place compares the place of a row with that of a key and id.
func place(row *scan.Sighting, key, id string) int {
	return cmp.Or(cmp.Compare(row.Key, key), cmp.Compare(row.ID, id))
}

// Sightings returns rows of a listing "in the order of the bytes of (key, id)".
func (db *DB) Sightings(ctx context.Context, q scan.SightingQuery) ([]scan.Sighting, error) {
	return in(ctx, db, func(time.Time) ([]scan.Sighting, error) {
		rows := db.sweeps.sightings[listing{q.Name, q.Side}]
		first, _ := slices.BinarySearchFunc(rows, q, func(row scan.Sighting, q scan.SightingQuery) int {
			if behind := place(&row, q.After, q.AfterID) > 0; behind && (q.AfterID != "" || row.Key != q.After || q.After == "") {
				return 1
			}
			return -1
		})
		var found []scan.Sighting
		for _, row := range rows[first:] {
			if len(found) == cmp.Or(q.Limit, 1000) {
				break
			}
			if row.Generation < q.Generation {
				continue
			}
			if row.Fields = maps.Clone(row.Fields); q.Bare {
				row.Generation, row.Partition, row.Fields = 0, "", nil
			}
			found = append(found, row)
		}
		return found, nil
	}, "read sightings of %s", q.Name)
}

// Tally counts sightings of a listing by partition.
func (db *DB) Tally(ctx context.Context, q scan.SightingQuery) (map[string]int64, error) {
	return in(ctx, db, func(time.Time) (map[string]int64, error) {
		counts := map[string]int64{}
		for _, row := range db.sweeps.sightings[listing{q.Name, q.Side}] {
			if row.Generation >= q.Generation {
				counts[row.Partition]++
			}
		}
		return counts, nil
	}, "count sightings of %s", q.Name)
}

// Discard erases sightings of earlier generations, "at most limit".
func (db *DB) Discard(ctx context.Context, q scan.SightingQuery, limit int) (int, error) {
	return in(ctx, db, func(time.Time) (int, error) {
		l, n := listing{q.Name, q.Side}, 0
		db.sweeps.sightings[l] = slices.DeleteFunc(db.sweeps.sightings[l], func(row scan.Sighting) bool {
			old := row.Generation < q.Generation && n < limit
			if old {
				n++
			}
			return old
		})
		return n, nil
	}, "discard sightings of %s", q.Name)
}
