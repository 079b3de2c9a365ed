package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// crashesMost is how many processes may die over one run before it has failed: what kills its
// process is not to kill every process for ever.
const crashesMost = 5

// claim takes the run that is to be worked on now, or returns nil: one is at work, nothing is due,
// or the job is paused. A run whose lease is over comes first, then what was asked for by hand,
// then what the schedule brings, then what a backfill does, the oldest first. Only what is recorded
// already can be claimed, never what was planned at the same turn.
func claim(now time.Time, a *Agenda, holder string, lease time.Duration) *RunRow {
	if a.pause().Is() {
		return nil
	}
	var best *RunRow
	for i := range a.Open {
		r := &a.Open[i]
		switch {
		case r.Running() && r.Until.After(now):
			return nil
		case r.Running() && r.Crashes+1 >= crashesMost:
			a.bury(now, r)
		case r.Open() && !r.Due.After(now) && (best == nil || r.before(best)):
			best = r
		}
	}
	if best == nil {
		return nil
	}
	if best.Running() {
		best.Crashes++
	}
	a.State.Fence++
	best.Attempt, best.Fence, best.Holder, best.Until = best.Attempt+1, a.State.Fence, holder, now.Add(lease)
	if best.Began.IsZero() {
		best.Began = now
	}
	return best
}

// before reports whether r is to be worked on before other.
func (r *RunRow) before(other *RunRow) bool {
	if r.Running() != other.Running() {
		return r.Running()
	}
	return cmp.Or(r.rank()-other.rank(), cmp.Compare(r.Number, other.Number)) < 0
}

// rank is 0 of what a person asked for, 1 of what the schedule brings, 2 of what a backfill does: it keeps nothing that is due.
func (r *RunRow) rank() int {
	switch {
	case !r.ByHand():
		return 1
	case r.backfilled():
		return 2
	}
	return 0
}

// bury ends a run over which too many processes have died.
func (a *Agenda) bury(now time.Time, r *RunRow) {
	r.Crashes++
	r.Error = fmt.Sprintf("%d processes ended in the middle of it without a word; look at what they had in common", r.Crashes)
	a.close(now, r, Failed)
}

// held returns the open run that was claimed under a fence. A run that another process claimed is
// never written.
func (a *Agenda) held(instant, holder string, fence int64) (*RunRow, error) {
	for i := range a.Open {
		if r := &a.Open[i]; r.Instant == instant && r.Running() && r.Holder == holder && r.Fence == fence {
			return r, nil
		}
	}
	return nil, fmt.Errorf("job %s, run %s: %w", a.State.Name, instant, ErrLost)
}

// renew prolongs the lease and writes down what was done so far.
func renew(now time.Time, r *RunRow, lease time.Duration, sofar Outcome) {
	r.Until, r.Outcome = now.Add(lease), sofar
	r.Result = ""
}

// release gives a run back whose work was cut short by the end of its process. Another one goes on
// with it at once.
func release(now time.Time, r *RunRow, sofar Outcome) {
	r.Until, r.Due, r.Outcome = time.Time{}, now, sofar
	r.Result = ""
}

// finish ends a run with what its work said. An error never counts as success, and neither does a
// job that says nothing.
func finish(now time.Time, a *Agenda, r *RunRow, out Outcome, err error) {
	result := out.Result
	r.Outcome = out
	switch {
	case errors.Is(err, ErrPaused) && a.State.Overlap == BufferAll && !r.ByHand(): // no instant is lost: it goes on behind the pause
		release(now, r, out)
		return
	case errors.Is(err, ErrPaused):
		result = Stopped
	case err != nil:
		result = Failed
	case !result.final():
		result, err = Failed, fmt.Errorf("the job ended with the result %q; it is to say how it went", result)
	}
	if err != nil {
		r.Error = err.Error()
	}
	a.close(now, r, result)
}

// close ends a run with a result and learns from it. What was asked for by hand and is not the
// scheduled work says nothing about the schedule.
func (a *Agenda) close(now time.Time, r *RunRow, v Result) {
	r.Result, r.Ended, r.Until = v, now, time.Time{}
	s := &a.State
	switch {
	case r.Ask != "":
	case r.backfilled(): // it makes up for what is past: it says nothing of now, and its cursor is not the newest
	case v != OK:
		s.Failures++
	default:
		s.Failures, s.Good = 0, Good{Instant: r.Instant, At: r.At, Ended: now}
		s.Watermark = cmp.Or(r.After, s.Watermark)
	}
}
