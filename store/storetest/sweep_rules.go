package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/reconcile/sweep"
)

// breakSweep returns s with one rule about sweeps broken.
func breakSweep(s Store, r Rule) Store {
	switch r {
	case SweepCompares:
		return overtaker{s}
	case SweepOneTransaction:
		return torn{s}
	case SweepRepeatable:
		return unsure{s}
	case ByteOrder:
		return alphabetic{s}
	case NewerKept:
		return eraser{s}
	default:
		panic(fmt.Sprintf("storetest: there is no rule %q", r))
	}
}

type overtaker struct{ Store }

func (o overtaker) Advance(ctx context.Context, p sweep.Position, page sweep.Catch) (sweep.Position, error) {
	now, err := o.Position(ctx, p.Name)
	if err != nil {
		return p, err
	}
	p.Serial = now.Serial
	return o.Store.Advance(ctx, p, page)
}

type torn struct{ Store }

func (t torn) Advance(ctx context.Context, p sweep.Position, page sweep.Catch) (sweep.Position, error) {
	for i := range page.Events {
		if err := t.Accept(ctx, page.Events[i:i+1]); err != nil {
			return p, err
		}
	}
	page.Events = nil
	return t.Store.Advance(ctx, p, page)
}

type unsure struct{ Store }

func (u unsure) Advance(ctx context.Context, p sweep.Position, page sweep.Catch) (sweep.Position, error) {
	now, err := u.Position(ctx, p.Name)
	if err == nil && now.Serial > p.Serial {
		err = sweep.ErrMoved
	}
	if err != nil {
		return p, err
	}
	return u.Store.Advance(ctx, p, page)
}

type alphabetic struct{ Store }

func (a alphabetic) Sightings(ctx context.Context, q sweep.SightingQuery) ([]sweep.Sighting, error) {
	rows, err := a.Store.Sightings(ctx, q)
	slices.SortStableFunc(rows, func(x, y sweep.Sighting) int {
		return strings.Compare(strings.ToLower(x.Key), strings.ToLower(y.Key))
	})
	return rows, err
}

type eraser struct{ Store }

func (e eraser) Discard(ctx context.Context, q sweep.SightingQuery, limit int) (int, error) {
	q.Generation++
	return e.Store.Discard(ctx, q, limit)
}
