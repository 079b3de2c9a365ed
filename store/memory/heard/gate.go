package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// Judge hands out "deliveries nobody has judged, the oldest first, with the entries of their objects". The
// callback works on copies, which replace what is stored when it returns nil.
func (s *Store) Judge(ctx context.Context, limit int, decide func(time.Time, []reconcile.Delivery, map[reconcile.Object]*reconcile.Entry) error) (int, error) {
	now, unlock, err := s.enter(ctx)
	if err != nil {
		return 0, fmt.Errorf("judge deliveries: %w", err)
	}
	defer unlock()
	numbers := s.pending[:min(limit, len(s.pending))]
	if len(numbers) == 0 {
		return 0, nil
	}
	ds, es := make([]reconcile.Delivery, len(numbers)), map[reconcile.Object]*reconcile.Entry{}
	for i, n := range numbers {
		ds[i] = copyDelivery(s.rows[n])
		if o := ds[i].Object; es[o] == nil {
			es[o] = s.entry(o, now)
		}
	}
	if err := decide(now, ds, es); err != nil {
		return 0, err // "as it is, and nothing is stored"
	}
	for i := range ds {
		ds[i].Judged = now
		*s.rows[ds[i].Number] = copyDelivery(&ds[i])
	}
	s.pending = slices.Delete(s.pending, 0, len(ds))
	for _, e := range es {
		s.put(e, now)
	}
	return len(ds), nil
}

// Lease hands out "entries that are due and whose lease, if any, is over", those first that are due longest.
func (s *Store) Lease(ctx context.Context, limit int, decide func(time.Time, *reconcile.Entry) error) ([]reconcile.Entry, error) {
	now, unlock, err := s.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("lease entries: %w", err)
	}
	defer unlock()
	due := s.due(now, limit)
	for i, e := range due {
		due[i] = copyEntry(e)
		if err := decide(now, due[i]); err != nil {
			for _, e := range due {
				s.agenda.add(s.entries[e.Object])
			}
			return nil, err
		}
	}
	var claimed []reconcile.Entry
	for _, e := range due {
		s.put(e, now)
		if e.Holder != "" && e.Until.After(now) { // "those are returned that the callback leaves with [...] a lease in the future"
			claimed = append(claimed, *copyEntry(e))
		}
	}
	return claimed, nil
}

// Update hands out "one entry, an empty one when there is none".
func (s *Store) Update(ctx context.Context, o reconcile.Object, decide func(time.Time, *reconcile.Entry) error) error {
	now, unlock, err := s.enter(ctx)
	if err != nil {
		return fmt.Errorf("update %s: %w", o, err)
	}
	defer unlock()
	e := s.entry(o, now)
	if err := decide(now, e); err != nil {
		return err
	}
	s.put(e, now)
	return nil
}

// entry returns a copy of what is known of o; "new ones are empty but for Object and First".
func (s *Store) entry(o reconcile.Object, now time.Time) *reconcile.Entry {
	if e := s.entries[o]; e != nil {
		return copyEntry(e)
	}
	return &reconcile.Entry{Object: o, First: now}
}

func (s *Store) put(e *reconcile.Entry, now time.Time) {
	c := copyEntry(e)
	c.Updated = now
	s.entries[c.Object] = c
	s.agenda.add(c)
}

func compareObjects(a, b reconcile.Object) int {
	return cmp.Or(
		cmp.Compare(a.Source, b.Source), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID),
	)
}
