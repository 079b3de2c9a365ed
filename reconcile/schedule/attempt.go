package schedule

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/nap"
)

// attempt is one attempt of this process at a run.
type attempt struct {
	*worker

	row    *RunRow
	run    *Run // as the work sees it
	cancel context.CancelCauseFunc
	over   *time.Timer // cancels when the lease is no longer trusted

	mu      sync.Mutex
	trusted time.Time // until then, by our clock, no other process has the run
	lost    error     // stays, once it is set
}

// attempt works on a run that was claimed at a turn that began at a time of our clock.
func (w *worker) attempt(ctx context.Context, row *RunRow, s *JobState, began time.Time) {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &attempt{worker: w, row: row, cancel: cancel}
	a.run = a.view(s)
	a.over = time.AfterFunc(time.Until(a.trust(began)), func() { a.lose(errors.New("it was not renewed in time")) })
	defer a.over.Stop()
	if err := a.owned(); err != nil { // the answer to the claim came too late
		a.end(ctx, Outcome{}, err)
		return
	}
	a.tell.Began(row)

	beating, stop := context.WithCancel(context.WithoutCancel(ctx)) // the work may take its time to stop, too
	var heart sync.WaitGroup
	heart.Go(func() { a.beat(beating) })
	out, err := a.work(working)
	stop()
	heart.Wait()
	a.end(ctx, out, err)
}

// view is the run as the work sees it.
func (a *attempt) view(s *JobState) *Run {
	r := a.row
	return &Run{
		Job: r.Job, Instant: r.Instant, At: r.At, From: r.From, Ask: r.Ask, By: r.By, Why: r.Why,
		Attempt: r.Attempt, Fence: r.Fence, Approved: s.Approved.Is(), Overlap: a.job.Overlap, Reported: r.Outcome, Watermark: s.Watermark,
		text: a.text, instants: r.Instants, store: a.store, lost: a.owned, report: r.Outcome,
	}
}

// margin is the part of a lease that is not trusted: the others' patience is measured by another
// clock.
func margin(lease time.Duration) time.Duration { return lease / 5 }

// trust begins a new term of the lease, counted from before it was asked for: however long the
// answer took, the database's term ends later than ours.
func (a *attempt) trust(began time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trusted = began.Add(a.job.Lease - margin(a.job.Lease))
	return a.trusted
}

// lose ends the attempt: what it does from now on could be done twice.
func (a *attempt) lose(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost == nil {
		a.lost = fmt.Errorf("job %s, run %s: %w: %w", a.row.Job, a.row.Instant, ErrLost, why)
	}
	a.cancel(a.lost)
}

// owned returns why another process may hold the run, or nil.
func (a *attempt) owned() error {
	now := time.Now()
	a.mu.Lock()
	late := now.After(a.trusted) || now.Round(0).After(a.trusted.Round(0)) // the monotonic clock rests while a machine sleeps
	a.mu.Unlock()
	if late { // the timer may not have come to it: this process may have been stopped, and go on just now
		a.lose(errors.New("it was not renewed in time"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lost
}

// work calls the user's function. A panic is an error like any other.
func (a *attempt) work(ctx context.Context) (out Outcome, err error) {
	late := fmt.Errorf("it took longer than its timeout of %s", a.job.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, a.job.Timeout, late)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			out, err = a.run.reported(), fmt.Errorf("panic: %v", p)
			a.tell.Panicked(a.row, err.Error(), string(debug.Stack()))
		}
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
	}()
	return a.job.Work(context.WithValue(ctx, inRun{}, a.run), a.run)
}

// beat renews the lease, and writes down what was reported, until ctx ends or the lease is lost.
func (a *attempt) beat(ctx context.Context) {
	for wait := a.job.Lease / 4; ; {
		if _ = nap.For(ctx, wait); ctx.Err() != nil || a.owned() != nil {
			return
		}
		began := time.Now()
		err := a.renew(ctx)
		switch {
		case err == nil:
			a.over.Reset(time.Until(a.trust(began)))
			wait = a.job.Lease / 4
		case errors.Is(err, ErrLost):
			a.lose(errors.New("another process has taken it over"))
			return
		case ctx.Err() == nil:
			a.opts.Log.WithField("job", a.row.Job).WithError(err).Warn("renewing the lease of a run failed; trying again")
			wait = a.job.Lease / 20
		}
	}
}

func (a *attempt) renew(ctx context.Context) error {
	a.mu.Lock()
	ctx, cancel := context.WithDeadline(ctx, a.trusted)
	a.mu.Unlock()
	defer cancel()
	_, err := a.turn(ctx, func(now time.Time, ag *Agenda) error {
		r, err := ag.held(a.row.Instant, a.holder, a.row.Fence)
		if err != nil {
			return err
		}
		renew(now, r, a.job.Lease, a.run.reported())
		return nil
	})
	return err
}

// end records how the attempt ended. It is not cut short by a stop, and tries for as long as a
// lease lasts. When the lease is over and no other process has taken the run since, what was done
// still counts.
func (a *attempt) end(ctx context.Context, out Outcome, failure error) {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.job.Lease)
	defer cancel()
	cut := failure != nil && !errors.Is(failure, ErrPaused) && (ctx.Err() != nil || a.owned() != nil)
	for {
		row, err := a.record(patient, out, failure, cut)
		switch {
		case err == nil && cut:
			a.tell.Released(row)
			return
		case err == nil:
			return // told already
		case errors.Is(err, ErrLost):
			a.tell.Lost(a.row)
			return
		case patient.Err() != nil:
			a.opts.Log.WithField("job", a.row.Job).WithError(err).Warn("the end of a run could not be recorded; it is taken over when its lease is over")
			return
		}
		_ = nap.For(patient, a.job.Lease/20)
	}
}

// record writes the end of the attempt, or gives the run back when it was cut short.
func (a *attempt) record(ctx context.Context, out Outcome, failure error, cut bool) (ended *RunRow, err error) {
	_, err = a.turn(ctx, func(now time.Time, ag *Agenda) error {
		r, err := ag.held(a.row.Instant, a.holder, a.row.Fence)
		switch {
		case err != nil:
			return err
		case cut:
			release(now, r, a.run.reported())
		default:
			finish(now, ag, r, out, failure)
		}
		ended = r
		return nil
	})
	return ended, err
}
