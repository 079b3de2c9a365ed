package schedule

import (
	"fmt"
	"time"
)

// describe writes down what the program says about a job. The last instant that was planned stays,
// so a new schedule goes on where the old one was: it repeats nothing and leaves nothing out.
func describe(now time.Time, s *JobState, j *Job) {
	was := *s
	s.Schedule, s.Zone, s.Overlap = j.Schedule, j.Zone, j.Overlap
	s.CatchUp, s.Fresh = j.CatchUp, j.Fresh
	if !s.Known() {
		s.First, s.Planned = now, now
	}
	if j.Approved && !s.Approved.Is() {
		s.Approved = Mark{At: now, By: "the program", Why: "the job is set up as approved"}
	}
	if *s != was {
		s.Described = now
	}
}

// plan records what is due: the instants since the last one become one run, or are skipped. Nothing
// is planned while the job is paused; what comes due meanwhile is missed, and made up for like
// everything that is missed.
func plan(now time.Time, a *Agenda, text Schedule) {
	s := &a.State
	if a.pause().Is() {
		return
	}
	horizon := now.Add(-s.CatchUp)
	expire(now, horizon, a)
	if missed, ok := text.stretch(s.Planned, horizon); ok {
		a.skip(now, missed, fmt.Sprintf("missed, and longer ago than the %s that are made up for", s.CatchUp))
	}
	due, ok := text.stretch(s.Planned, now)
	if !ok || a.buffers() {
		return
	}
	if obstacle := a.obstacle(); obstacle != "" {
		a.skip(now, due, obstacle)
		return
	}
	a.add(now, due)
}

// expire skips runs that never began and whose time is too long ago: no process may have been up to
// begin them.
func expire(now, horizon time.Time, a *Agenda) {
	for i := range a.Open {
		r := &a.Open[i]
		if r.Attempt == 0 && !r.ByHand() && r.Due.Before(horizon) {
			r.Result, r.Ended = Skipped, now
			r.Note = fmt.Sprintf("no process began it within the %s that are made up for", a.State.CatchUp)
		}
	}
}

// buffers reports whether instants wait for the end of a run without being planned.
func (a *Agenda) buffers() bool { return a.State.Overlap == BufferAll && a.obstacle() != "" }

// obstacle says why an instant that is due gets no run of its own, or "".
func (a *Agenda) obstacle() string {
	begun, waiting := "", ""
	for i := range a.Open {
		switch r := &a.Open[i]; {
		case !r.Open() || r.backfilled():
		case r.Attempt > 0:
			begun = r.Instant
		case !r.ByHand():
			waiting = r.Instant
		}
	}
	switch {
	case waiting != "":
		return fmt.Sprintf("the run of %s is still waiting", waiting)
	case begun != "" && a.State.Overlap != BufferOne:
		return fmt.Sprintf("the run of %s goes on", begun)
	}
	return ""
}

// add records a run for a stretch of instants. It is valid until the next one is added.
func (a *Agenda) add(now time.Time, due stretch) *RunRow {
	a.State.Planned = due.last
	a.New = append(a.New, RunRow{
		Job: a.State.Name, Instant: due.key, At: due.last, From: due.first, Instants: due.count, Due: due.last, Created: now,
	})
	return &a.New[len(a.New)-1]
}

func (a *Agenda) skip(now time.Time, due stretch, why string) {
	r := a.add(now, due)
	r.Result, r.Note, r.Ended = Skipped, why, now
}

// stretch is a row of instants of a schedule.
type stretch struct {
	first, last time.Time
	key         string // of the last
	count       int64  // up to countMost
}

// countMost bounds how many instants are counted.
const countMost = 10_000

// stretch returns the instants after one time up to another, that one included.
func (s Schedule) stretch(after, until time.Time) (stretch, bool) {
	if !until.After(after) {
		return stretch{}, false
	}
	first := s.Next(after)
	if first.IsZero() || first.After(until) {
		return stretch{}, false
	}
	d := stretch{first: first.UTC(), last: first, count: 1}
	for d.count < countMost {
		next := s.Next(d.last)
		if next.IsZero() || next.After(until) {
			break
		}
		d.last, d.count = next, d.count+1
	}
	if d.count == countMost {
		d.last = s.lastUntil(d.last, until)
	}
	d.last, d.key = d.last.UTC(), s.Instant(d.last)
	return d, true
}

// lastUntil finds the last instant up to a time, given one before it.
func (s Schedule) lastUntil(known, until time.Time) time.Time {
	// The next instant after before is not after until; the one after late is, or there is none.
	before, late := known, until
	for late.Sub(before) > time.Second {
		middle := before.Add(late.Sub(before) / 2)
		if next := s.Next(middle); next.IsZero() || next.After(until) {
			late = middle
		} else {
			before = next
			known = next
		}
	}
	if next := s.Next(known); !next.IsZero() && !next.After(until) {
		return next
	}
	return known
}
