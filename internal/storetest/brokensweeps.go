package storetest

import (
	"context"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/scan"
)

// overtaker: who is behind moves a sweep on all the same.
type overtaker struct{ Store }

func (o overtaker) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	now, err := o.Position(ctx, p.Name)
	if err != nil {
		return p, err
	}
	p.Serial = now.Serial
	return o.Store.Advance(ctx, p, page)
}

// torn: the events of a page are stored first, and what it saw a moment later.
type torn struct{ Store }

func (t torn) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	for i := range page.Events {
		if err := t.Accept(ctx, page.Events[i:i+1]); err != nil {
			return p, err
		}
	}
	page.Events = nil
	return t.Store.Advance(ctx, p, page)
}

// unsure: a page that was stored after all is another process's.
type unsure struct{ Store }

func (u unsure) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	now, err := u.Position(ctx, p.Name)
	if err == nil && now.Serial > p.Serial {
		err = scan.ErrMoved
	}
	if err != nil {
		return p, err
	}
	return u.Store.Advance(ctx, p, page)
}

// alphabetic: sightings are in the order of an alphabet.
type alphabetic struct{ Store }

func (a alphabetic) Sightings(ctx context.Context, q scan.SightingQuery) ([]scan.Sighting, error) {
	rows, err := a.Store.Sightings(ctx, q)
	slices.SortStableFunc(rows, func(x, y scan.Sighting) int {
		return strings.Compare(strings.ToLower(x.Key), strings.ToLower(y.Key))
	})
	return rows, err
}

// eraser: what the newest listing saw is discarded.
type eraser struct{ Store }

func (e eraser) Discard(ctx context.Context, q scan.SightingQuery, limit int) (int, error) {
	q.Generation++
	return e.Store.Discard(ctx, q, limit)
}
