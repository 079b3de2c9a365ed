package storetest

import (
	"context"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// agendaOf is the callback of Turn.
type agendaOf = func(now time.Time, a *schedule.Agenda) error

// breakTurn returns s with one rule about jobs and runs broken.
func breakTurn(s Store, r Rule) Store {
	switch r {
	case TurnLocks:
		return overwriter{s}
	case TurnErrorStoresNothing:
		return deaf{s}
	case InstantOnce:
		return repeater{s}
	case TurnOneTransaction:
		return piecemeal{s}
	default:
		return haltless{s}
	}
}

// overwriter decides on what it read before it has the lock.
type overwriter struct{ Store }

func (o overwriter) Turn(ctx context.Context, job string, decide agendaOf) error {
	var before schedule.Agenda
	err := o.Store.Turn(ctx, job, func(_ time.Time, a *schedule.Agenda) error {
		before = *a
		return nil
	})
	if err != nil {
		return err
	}
	<-time.After(time.Millisecond)
	return o.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		a.State = before.State
		return decide(now, a)
	})
}

// deaf stores whatever the callback says.
type deaf struct{ Store }

func (d deaf) Turn(ctx context.Context, job string, decide agendaOf) error {
	var refused error
	err := d.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		refused = decide(now, a)
		return nil
	})
	if refused != nil {
		return refused
	}
	return err
}

// repeater records a known instant under another name.
type repeater struct{ Store }

func (r repeater) Turn(ctx context.Context, job string, decide agendaOf) error {
	rs, err := r.Runs(ctx, schedule.Filter{Job: job, Limit: 1000})
	if err != nil {
		return err
	}
	return r.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		if err := decide(now, a); err != nil {
			return err
		}
		for i := range a.New {
			for _, known := range rs {
				if known.Instant == a.New[i].Instant {
					a.New[i].Instant += " again"
				}
			}
		}
		return nil
	})
}

// piecemeal stores runs first and their job a moment later.
type piecemeal struct{ Store }

func (p piecemeal) Turn(ctx context.Context, job string, decide agendaOf) error {
	var after schedule.State
	err := p.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		before := a.State
		if err := decide(now, a); err != nil {
			return err
		}
		after, a.State = a.State, before
		return nil
	})
	if err != nil {
		return err
	}
	<-time.After(200 * time.Millisecond)
	return p.Store.Turn(ctx, job, func(_ time.Time, a *schedule.Agenda) error {
		a.State = after
		return nil
	})
}

// haltless knows the pauses of jobs only.
type haltless struct{ Store }

func (h haltless) Paused(ctx context.Context, job string) (schedule.Mark, error) {
	board, err := h.Jobs(ctx)
	for _, j := range board.Jobs {
		if j.Name == job {
			return j.Paused, err
		}
	}
	return schedule.Mark{}, err
}
