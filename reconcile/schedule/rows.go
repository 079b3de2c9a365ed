package schedule

import (
	"strings"
	"time"
)

// JobState is what is known of a job: its row. It is changed by the pure functions of this package
// and stored as they leave it; a store derives nothing.
type JobState struct {
	Name string

	// The job as the newest process described it, so that a person, or a program without the job's
	// code, can tell what it will do.
	Schedule, Zone string
	Overlap        Overlap
	CatchUp        time.Duration
	Fresh          int
	First          time.Time // when it was described first; zero: never
	Described      time.Time // when its description was last changed

	Planned time.Time // the last instant that is a row; the next one comes after it
	Fence   int64     // the highest that was given to an attempt
	Asked   int64     // runs asked for by hand

	Paused   Mark
	Approved Mark

	// The last good run that did the scheduled work.
	Good      Good
	Failures  int    // runs since that ended otherwise
	Watermark string // where its cursor stood
}

// Known reports whether any process has described the job.
func (s *JobState) Known() bool { return !s.First.IsZero() }

// Good is when a good run was planned, and when it ended.
type Good struct {
	Instant   string
	At, Ended time.Time
}

// Mark is something that an operator did, and why. The zero value: it was not done.
type Mark struct {
	At      time.Time
	By, Why string
}

// Is reports whether it was done.
func (m Mark) Is() bool { return !m.At.IsZero() }

// RunRow is a run as it is recorded. A job and an instant have at most one, for ever.
type RunRow struct {
	Number  int64 // within the job, in the order in which they were recorded; given by the store
	Job     string
	Instant string // [Schedule.Instant] of At; "manual:3" for the third that was asked for

	At       time.Time // the planned time
	From     time.Time // the first of the instants it stands for: earlier than At when several are made up for, or skipped, at once
	Instants int64     // how many these are, counted up to 10,000
	Due      time.Time // when it may begin, or be taken up again
	Created  time.Time

	Ask     string // what was asked for by hand; "" is the scheduled work
	By, Why string // who asked, "" for the schedule

	// The attempts.
	Began   time.Time // the first
	Ended   time.Time
	Attempt int // how many there were
	Crashes int // how many of them ended without a word
	Fence   int64
	Holder  string    // who is, or was last, at it
	Until   time.Time // when the lease is over, unless renewed; zero: no process is at it

	Outcome        // while it runs: what it reported last
	Error   string // why it failed
}

// Open reports whether r may still run.
func (r *RunRow) Open() bool { return r.Result == "" }

// Running reports whether a process holds r. Its lease may be over.
func (r *RunRow) Running() bool { return r.Open() && !r.Until.IsZero() }

// ByHand reports whether a person asked for r.
func (r *RunRow) ByHand() bool { return r.By != "" }

// manual reports whether a person asked for r apart from the schedule; backfilled, whether for an instant of it.
func (r *RunRow) manual() bool     { return r.ByHand() && strings.HasPrefix(r.Instant, byHand) }
func (r *RunRow) backfilled() bool { return r.ByHand() && !r.manual() }

// Status says where r is, in one word: waiting, running, or its result.
func (r *RunRow) Status() string {
	switch {
	case r.Running():
		return "running"
	case r.Open():
		return "waiting"
	}
	return string(r.Result)
}

// Agenda is what a store hands out of one job: its row, what is open of its runs, and place for new
// ones.
type Agenda struct {
	State JobState
	Halt  Mark     // the pause of everything; only to be read
	Open  []RunRow // runs without a result, in the order of their numbers; they may be changed
	New   []RunRow // runs to be recorded; the store numbers them, but for those whose instant is known, which it drops

	// Forget deletes the job's runs that ended before this time, and decisions on what it found that were over by then; zero: none.
	Forget time.Time
}
