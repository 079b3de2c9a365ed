package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
)

// How many rows are read with their fields at once: few where few keys differ, many where one after
// the other does.
const (
	fewRows  = 8
	manyRows = 2000
)

// fields reads what a comparison leaves out as long as fingerprints are equal: the fields of one
// side's rows. Keys are asked in their order.
type fields struct {
	store scan.Store
	query scan.SightingQuery
	rows  []scan.Sighting // read ahead
	used  int             // so many of them were asked for
	size  int
}

func (r *Reconciler) fields(side scan.Side, of *scan.Complete) *fields {
	return &fields{store: r.sweep.Store, query: r.listed(side, of)}
}

// of returns the fields of the one row of a key that counts. A row that is gone meanwhile has none:
// then everything differs, and the key is looked at again.
func (f *fields) of(ctx context.Context, key string) (plan.Fields, error) {
	at, _ := slices.BinarySearchFunc(f.rows, key, func(s scan.Sighting, key string) int { return strings.Compare(s.Key, key) })
	f.rows = f.rows[at:]
	for ; ; f.rows = f.rows[1:] {
		if len(f.rows) == 0 {
			if err := f.read(ctx, key); err != nil {
				return nil, err
			}
		}
		switch {
		case len(f.rows) == 0 || f.rows[0].Key != key:
			return plan.Fields{}, nil
		case f.rows[0].Flags&scan.Void == 0:
			f.used++
			return f.rows[0].Fields, nil
		}
	}
}

// firstID is before every id, and not empty: behind it are all rows of a key.
const firstID = "\x01"

// read reads the rows of a key that were not read yet, and some behind them.
func (f *fields) read(ctx context.Context, key string) error {
	if f.used*4 >= f.size {
		f.size = min(max(fewRows, 4*f.size), manyRows)
	} else {
		f.size = fewRows
	}
	if f.query.After != key { // else it goes on in the middle of the key
		f.query.After, f.query.AfterID = key, firstID
	}
	f.query.Limit, f.used = f.size, 0
	rows, err := f.store.Sightings(ctx, f.query)
	if err != nil {
		return fmt.Errorf("read what was listed of the %s: %w", f.query.Side, err)
	}
	if f.rows = rows; len(rows) > 0 {
		last := &rows[len(rows)-1]
		f.query.After, f.query.AfterID = last.Key, last.ID
	}
	return nil
}
