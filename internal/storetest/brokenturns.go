package storetest

import (
	"context"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// agendaOf is the callback of Turn.
type agendaOf = func(now time.Time, a *schedule.Agenda) error

// turnOverwriter: two turns at one job go on at once, and the later one overwrites what the other
// left, because it decides on what it read before it had the lock.
type turnOverwriter struct{ Store }

func (o turnOverwriter) Turn(ctx context.Context, job string, decide agendaOf) error {
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

// instantRepeater: a second run of an instant is recorded, under another name.
type instantRepeater struct{ Store }

func (r instantRepeater) Turn(ctx context.Context, job string, decide agendaOf) error {
	rs, err := r.Runs(ctx, schedule.RunFilter{Job: job, Limit: 1000})
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

// piecemeal: runs are stored first, and the job a moment later.
type piecemeal struct{ Store }

func (p piecemeal) Turn(ctx context.Context, job string, decide agendaOf) error {
	var after schedule.JobState
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
