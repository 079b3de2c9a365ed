package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// While says what becomes of an instant of a schedule while the instance of the one before is not at its end: see [Start].
type While string

// The ways.
const (
	Beside While = ""       // its instance is started beside it
	Skip   While = "skip"   // it gets none
	Queue  While = "queue"  // it is waited for, within the timeout of the job; where a person has it, the run has failed
	Cancel While = "cancel" // it is given up, and what it did is undone, as by amends cancel; behind its pivot it goes on beside
)

// Start is the Work of a job that starts an instance of a saga at each of its instants, whose input is what input says of the instant:
//
//	{Name: "statements", Schedule: "0 6 1 * *", Zone: "Europe/Vienna", Approved: true, Work: reconcile.Start(c, "statement", reconcile.Skip, monthBefore)}
//
// Its work id is the job's name and the instant, statements:2026-12-01T06:00:00 Europe/Vienna, so an instant has one instance, whatever
// process starts it and however often. Instants that were missed get theirs in one late run, each its own, as far back as [schedule.Job] says
// with CatchUp; for what is longer ago there is amends schedule backfill. A job that is not approved starts none. What is asked for by hand
// skips nothing: it waits.
func Start[In any](c *coordinator.Coordinator, sagaName string, while While, input func(at time.Time) (In, error)) func(context.Context, *schedule.Run) (schedule.Outcome, error) {
	return func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
		s := &starts{c: c, saga: sagaName, while: while, run: r}
		s.out.Before, s.out.After = r.Watermark, r.Watermark
		if s.run.By != "" && while == Skip {
			s.while = Queue
		}
		for _, one := range r.Instants() {
			s.out.Seen++
			in, err := input(one.At)
			if err == nil {
				err = s.start(ctx, one, in)
			}
			if err != nil {
				return s.out, fmt.Errorf("%s: %w", one.Key, err)
			}
			r.Report(s.out)
		}
		if s.out.Result = schedule.OK; s.out.Refused > 0 {
			s.out.Result, s.out.Note = schedule.Refused, "the job is not approved, so it starts nothing"
		}
		return s.out, nil
	}
}

// starts are those of one run.
type starts struct {
	c     *coordinator.Coordinator
	saga  string
	while While
	run   *schedule.Run
	out   schedule.Outcome
}

func (s *starts) start(ctx context.Context, one schedule.Instant, in any) error {
	work := s.run.Job + ":" + one.Key
	s.out.Planned++
	if !s.run.Approved {
		s.out.Refused++
		return nil
	}
	if err := s.run.Proceed(ctx); err != nil {
		return err
	}
	if before := s.out.After; before != "" && before != work {
		skips, err := s.awaits(ctx, saga.ID{Saga: s.saga, Work: before})
		if skips || err != nil {
			return err
		}
	}
	if _, err := s.c.Start(ctx, s.saga, work, in, &saga.StartOptions{Source: s.run.Job, Cause: "the schedule of " + s.run.Job}); err != nil {
		return err
	}
	s.out.Applied, s.out.After = s.out.Applied+1, work
	return nil
}

// awaits has the instance of the instant before come to its end, or says that there is none for this one.
func (s *starts) awaits(ctx context.Context, before saga.ID) (skips bool, err error) {
	if s.while == Beside {
		return false, nil
	}
	stands, err := s.c.Show(ctx, before)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return false, nil
	case err != nil || stands.Status.Terminal():
		return false, err
	case s.while == Skip:
		s.out.Note = fmt.Sprintf("skipped, because %s is %s", before.Work, stands.Status)
		return true, nil
	case s.while == Cancel:
		err = s.c.Cancel(ctx, before, saga.Actor{Name: "job " + s.run.Job, Reason: "the next one is due"})
		if errors.Is(err, coordinator.ErrChangesNothing) || errors.Is(err, coordinator.ErrFinished) { // it ends by itself, or is past its pivot
			err = nil
		}
		return false, err
	}
	stands, err = s.c.Wait(ctx, before.Saga, before.Work)
	if err == nil && !stands.Status.Terminal() {
		err = fmt.Errorf("it is to come behind %s, which is %s: settle that (amends show), then let the missing ones come: amends schedule backfill %s", before.Work, stands.Status, s.run.Job)
	}
	return false, err
}
