package reconcile

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// While says what becomes of an instant of a schedule while the instance of the one before is not at its end: see [Start].
type While string

// The ways.
const (
	Beside While = ""       // its instance is started beside it
	Skip   While = "skip"   // it gets none, and a backfill brings none
	Queue  While = "queue"  // it is waited for, within the timeout of the job, which has Overlap: [schedule.BufferAll] and is for all that wait in a row; where a person has it, the run has failed
	Cancel While = "cancel" // it is given up, and what it did is undone, as by amends cancel; behind its pivot it goes on beside
)

// Start is the Work of a job that starts an instance of a saga at each of its instants, whose input is what input says of the instant:
//
//	{Name: "statements", Schedule: "0 6 1 * *", Zone: "Europe/Vienna", Approved: true, Work: reconcile.Start(c, "statement", reconcile.Skip, monthBefore)}
//
// Its work id is the job's name and the instant, statements:2026-12-01T06:00:00 Europe/Vienna, so an instant has one instance, whatever
// process starts it and however often. Instants that were missed get theirs in one late run, each its own, as far back as [schedule.Job] says
// with CatchUp; for what is longer ago there is amends schedule backfill. amends schedule run is about the latest instant: where that has its
// instance nothing is started. A job that is not approved starts none. What a person asks for skips and gives up nothing: it waits.
func Start[In any](c *coordinator.Coordinator, sagaName string, while While, input func(at time.Time) (In, error)) func(context.Context, *schedule.Run) (schedule.Outcome, error) {
	return func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
		s := &starts{c: c, saga: sagaName, while: while, run: r, out: schedule.Outcome{Result: schedule.OK}}
		if r.By != "" && while != Beside {
			s.while = Queue
		}
		all, err := r.Instants()
		if err == nil && while == Queue && r.Overlap != schedule.BufferAll {
			err = errors.New("with Queue the job needs Overlap: schedule.BufferAll: instants that come while one is waited for would get no instance")
		}
		if err == nil && r.Ask != "" {
			err = fmt.Errorf("it starts instances, and knows nothing of %q", r.Ask)
		}
		for i := 0; i < len(all) && err == nil; i++ {
			var in In
			s.out.Seen++
			if in, err = input(all[i].At); err == nil {
				err = s.start(ctx, all[i], in)
			}
			r.Report(s.out)
		}
		return s.out, err
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
	s.out.Planned++
	if !s.run.Approved {
		s.out.OverLimit++
		s.out.Result, s.out.Note = schedule.Refused, "the job is not approved, so it starts nothing"
		return nil
	}
	if err := s.run.Proceed(ctx); err != nil {
		return err
	}
	work := s.run.Job + ":" + one.Key
	skips, err := s.awaits(ctx, work)
	if err == nil && !skips {
		err = s.run.Proceed(ctx) // it may have waited for hours
	}
	if skips || err != nil {
		return err
	}
	started, err := s.c.Start(ctx, s.saga, work, in, &saga.StartOptions{Source: s.run.Job, Cause: "the schedule of " + s.run.Job})
	if err == nil && !started.Duplicate {
		s.out.Applied++
	}
	return err
}

// anInstant begins what stands behind the name of the job in the id of a work of its own; another job's name may begin as this one's does.
var anInstant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT`)

// awaits has the other instances of the job come to their ends, or says that there is none for this instant.
func (s *starts) awaits(ctx context.Context, work string) (skips bool, err error) {
	if s.while == Beside {
		return false, nil
	}
	var others []coordinator.Instance
	for h, err := range s.c.List(ctx, coordinator.Filter{Saga: s.saga, Prefix: s.run.Job + ":"}) {
		switch {
		case err != nil:
			return false, err
		case h.ID.Work == work: // an attempt before this one has started it: what came behind it is not given up for it
			return false, nil
		case !h.Status.Terminal() && anInstant.MatchString(h.ID.Work[len(s.run.Job)+1:]):
			others = append(others, h)
		}
	}
	for _, h := range others {
		switch s.while { //nolint:exhaustive // beside others it does not come here
		case Skip:
			s.out.Note = fmt.Sprintf("skipped, because %s is %s", h.ID.Work, h.Status)
			return true, nil
		case Cancel:
			if h.ID.Work > work { // it is of a later instant: a run by hand came first
				continue
			}
			err := s.c.Cancel(ctx, h.ID, saga.Actor{Name: "job " + s.run.Job, Reason: "the next one is due"})
			if err != nil && !errors.Is(err, coordinator.ErrChangesNothing) && !errors.Is(err, coordinator.ErrFinished) { // it ends by itself, or is past its pivot
				return false, err
			}
			continue
		}
		stands, err := s.c.Wait(ctx, h.ID.Saga, h.ID.Work)
		if err == nil && !stands.Status.Terminal() {
			err = fmt.Errorf("it is to come behind %s, which is %s: settle that (amends show), then let the missing ones come: amends schedule backfill %s", h.ID.Work, stands.Status, s.run.Job)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
