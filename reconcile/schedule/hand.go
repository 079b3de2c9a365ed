package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Pause keeps a job, or [Everything], from beginning runs, and ends those that go on between two
// actions. It needs nothing but the database.
func Pause(ctx context.Context, s Store, job string, by saga.Actor) error {
	return mark(ctx, s, "pause", job, by, func(m Mark, st *JobState) { st.Paused = m })
}

// Unpause lets a job, or [Everything], run again. Instants that were missed are made up for by one
// run.
func Unpause(ctx context.Context, s Store, job string) error {
	return change(ctx, s, "unpause", job, func(_ time.Time, a *Agenda) error {
		a.State.Paused = Mark{}
		return nil
	})
}

// Approve lets a job change things from its next run on. Until then it plans only.
func Approve(ctx context.Context, s Store, job string, by saga.Actor) error {
	if job == Everything {
		return errors.New("approve: a job is approved by its name")
	}
	return mark(ctx, s, "approve", job, by, func(m Mark, st *JobState) { st.Approved = m })
}

// Request asks for a run of a job as soon as no other is at work. what is for the job to interpret;
// empty is what the schedule does. It goes the way of every run. What waits already is not asked
// for twice: the run that waits is returned. A job that is paused is not run by hand either.
func Request(ctx context.Context, s Store, job, what string, by saga.Actor) (RunRow, error) {
	if err := by.Validate(); err != nil || job == Everything {
		return RunRow{}, fmt.Errorf("ask for a run of job %q: %w", job, cmp.Or(err, ErrUnknown))
	}
	var asked *RunRow
	err := change(ctx, s, "ask for a run of", job, func(now time.Time, a *Agenda) error {
		if p := a.pause(); p.Is() {
			return fmt.Errorf("%w: %s, %s. Unpause it first", ErrPaused, p.By, p.Why)
		}
		for i := range a.Open {
			if r := &a.Open[i]; r.manual() && r.Ask == what && r.Attempt == 0 {
				asked = r
				return nil
			}
		}
		a.State.Asked++
		a.New = append(a.New, RunRow{
			Job: job, Instant: fmt.Sprintf("%s%d", byHand, a.State.Asked), At: now, From: now, Instants: 1, Due: now, Created: now,
			Ask: what, By: by.Name, Why: by.Reason,
		})
		asked = &a.New[len(a.New)-1] // the store numbers it there
		return nil
	})
	if err != nil {
		return RunRow{}, err
	}
	return *asked, nil
}

// pause is the pause that the job is under.
func (a *Agenda) pause() Mark {
	if a.State.Paused.Is() {
		return a.State.Paused
	}
	return a.Halt
}

func mark(ctx context.Context, s Store, verb, job string, by saga.Actor, set func(Mark, *JobState)) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("%s job %q: %w", verb, job, err)
	}
	return change(ctx, s, verb, job, func(now time.Time, a *Agenda) error {
		set(Mark{At: now, By: by.Name, Why: by.Reason}, &a.State)
		return nil
	})
}

// change changes what is known of a job that is known, or of everything.
func change(ctx context.Context, s Store, verb, job string, decide func(now time.Time, a *Agenda) error) error {
	err := s.Turn(ctx, job, func(now time.Time, a *Agenda) error {
		if job != Everything && !a.State.Known() {
			return ErrUnknown
		}
		return decide(now, a)
	})
	if err != nil {
		return fmt.Errorf("%s job %q: %w", verb, job, err)
	}
	return nil
}
