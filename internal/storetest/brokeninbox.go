package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/saga"
)

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

// hasty: Accept answers and stores a moment later.
type hasty struct{ Store }

func (h hasty) Accept(ctx context.Context, events []intake.Event) error {
	later := context.WithoutCancel(ctx)
	time.AfterFunc(time.Second, func() { _ = h.Store.Accept(later, events) })
	return nil
}

// apart: what is counted is not locked.
type apart struct{ Store }

func (a apart) Weigh(ctx context.Context, o intake.Object, id saga.ID, bound intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	var t intake.Tally
	err := a.Store.Weigh(ctx, o, id, bound, func(_ time.Time, _ *intake.Entry, tally intake.Tally) error {
		t = tally
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		return err
	}
	<-time.After(50 * time.Millisecond)
	return a.Update(ctx, o, func(now time.Time, e *intake.Entry) error { return decide(now, e, t) })
}
