package storetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// twinOf returns the delivery of an event that e is a copy of, or in conflict with.
func twinOf(ctx context.Context, s Store, e *intake.Event) (*intake.Delivery, error) {
	ds, err := s.Deliveries(ctx, intake.DeliveryFilter{Limit: 10_000})
	i := slices.IndexFunc(ds, func(d intake.Delivery) bool {
		return d.Dedupe == e.Dedupe && d.Object.Source == e.Object.Source
	})
	if err != nil || i < 0 {
		return nil, err
	}
	return &ds[i], nil
}

// copyDoubler: the second delivery of an event is a second event.
type copyDoubler struct{ Store }

func (d copyDoubler) Accept(ctx context.Context, events []intake.Event) error {
	for _, e := range events {
		twin, err := twinOf(ctx, d.Store, &e)
		if err != nil {
			return err
		}
		if twin != nil {
			e.Dedupe = intake.DigestOf(rand.Text())
		}
		if err := d.Store.Accept(ctx, []intake.Event{e}); err != nil {
			return err
		}
	}
	return nil
}

// contentBlind: an event with a known dedupe digest is a copy, whatever it says.
type contentBlind struct{ Store }

func (b contentBlind) Accept(ctx context.Context, events []intake.Event) error {
	for _, e := range events {
		twin, err := twinOf(ctx, b.Store, &e)
		if err != nil {
			return err
		}
		if twin != nil {
			e.Object, e.Body, e.Fingerprint = twin.Object, twin.Body, twin.Fingerprint
		}
		if err := b.Store.Accept(ctx, []intake.Event{e}); err != nil {
			return err
		}
	}
	return nil
}

// digestForgetter: with a delivery goes what recognises its copies.
type digestForgetter struct{ Store }

func (f digestForgetter) Purge(ctx context.Context, r intake.Retention, limit int) (int, error) {
	r.Digests = r.Rows
	return f.Store.Purge(ctx, r, limit)
}

// unlocked: what others write while a batch is judged is overwritten.
type unlocked struct{ Store }

func (u unlocked) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	ds, err := u.Deliveries(ctx, intake.DeliveryFilter{Unjudged: true, Limit: limit})
	if err != nil {
		return 0, err
	}
	es := make(map[intake.Object]*intake.Entry)
	written := make(map[intake.Object]time.Time)
	for _, d := range ds {
		e, err := u.Entry(ctx, d.Object)
		if err != nil {
			return 0, err
		}
		if e == nil {
			e = &intake.Entry{Object: d.Object}
		}
		es[d.Object], written[d.Object] = e, e.Updated
	}
	if err := decide(time.Now(), ds, es); err != nil {
		return 0, err
	}
	u.letOthersWrite(ctx, written)
	return u.Store.Judge(ctx, limit, func(_ time.Time, now []intake.Delivery, stored map[intake.Object]*intake.Entry) error {
		copy(now, ds)
		for o, e := range es {
			*stored[o] = *e
		}
		return nil
	})
}

// letOthersWrite waits for another process to change one of the entries, two seconds at most.
func (u unlocked) letOthersWrite(ctx context.Context, written map[intake.Object]time.Time) {
	end := time.NewTimer(2 * time.Second)
	defer end.Stop()
	for {
		for o, at := range written {
			if e, err := u.Entry(ctx, o); err == nil && e != nil && !e.Updated.Equal(at) {
				return
			}
		}
		select {
		case <-end.C:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// decision is the callback of Judge.
type decision = func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error

// halver: dispositions are stored first and entries a moment later.
type halver struct{ Store }

func (h halver) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	changed := make(map[intake.Object]intake.Entry)
	n, err := h.Store.Judge(ctx, limit, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		before := make(map[intake.Object]intake.Entry)
		for o, e := range es {
			before[o] = *e
		}
		if err := decide(now, ds, es); err != nil {
			return err
		}
		for o, e := range es {
			changed[o] = *e
			*e = before[o]
		}
		return nil
	})
	<-time.After(200 * time.Millisecond)
	for o, c := range changed {
		err := h.Update(ctx, o, func(_ time.Time, e *intake.Entry) error {
			*e = c
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, err
}

// stubborn: what a callback left when it failed is stored.
type stubborn struct{ Store }

func (s stubborn) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	var refused error
	n, err := s.Store.Judge(ctx, limit, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		refused = decide(now, ds, es)
		return nil
	})
	if refused != nil {
		return 0, refused
	}
	return n, err
}

// thief: entries are claimed that another process works on.
type thief struct{ Store }

func (t thief) Lease(ctx context.Context, limit int, decide func(time.Time, *intake.Entry) error) ([]intake.Entry, error) {
	held, err := t.Entries(ctx, intake.EntryFilter{})
	if err != nil {
		return nil, err
	}
	var claimed []intake.Entry
	for _, h := range held {
		if h.Due.IsZero() || len(claimed) == limit {
			continue
		}
		err := t.Update(ctx, h.Object, func(now time.Time, e *intake.Entry) error {
			defer func() { claimed = append(claimed, *e) }()
			return decide(now, e)
		})
		if err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// hasty: Accept answers and stores a moment later.
type hasty struct{ Store }

func (h hasty) Accept(ctx context.Context, events []intake.Event) error {
	later := context.WithoutCancel(ctx)
	time.AfterFunc(time.Second, func() { _ = h.Store.Accept(later, events) })
	return nil
}

// careless: what was not judged yet is purged.
type careless struct{ Store }

func (c careless) Purge(ctx context.Context, r intake.Retention, limit int) (int, error) {
	_, err := c.Judge(ctx, limit, func(_ time.Time, ds []intake.Delivery, _ map[intake.Object]*intake.Entry) error {
		for i := range ds {
			ds[i].Outcome = intake.Stale
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return c.Store.Purge(ctx, r, limit)
}

// hoarder: a count never falls.
type hoarder struct {
	Store

	most map[string]intake.Count
}

func (h hoarder) Counts(ctx context.Context) ([]intake.Count, error) {
	counts, err := h.Store.Counts(ctx)
	for _, c := range counts {
		if name := c.Source + " " + string(c.Disposition); c.Disposition != "" && c.Count > h.most[name].Count {
			h.most[name] = c
		}
	}
	counts = slices.DeleteFunc(counts, func(c intake.Count) bool { return c.Disposition != "" })
	counts = append(counts, slices.Collect(maps.Values(h.most))...)
	slices.SortFunc(counts, func(a, b intake.Count) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Disposition, b.Disposition))
	})
	return counts, err
}
