package schedule

import (
	"context"
	"errors"
	"time"
)

// Everything is the name under which all jobs are paused together. It is no job.
const Everything = ""

// Errors of this package.
var (
	// ErrPaused matches the error of [Run.Proceed] after an operator has paused the job or
	// everything, and that of [Request] then.
	ErrPaused = errors.New("paused by an operator")
	// ErrLost matches the error of [Run.Proceed] when the process can no longer be sure that the
	// run is its own.
	ErrLost = errors.New("the lease of the run is over or lost")
	// ErrUnknown matches the error of a function that was given the name of a job that no process
	// has described.
	ErrUnknown = errors.New("no such job")
	// ErrNotFound matches the error of a reader that was asked for a run that is not there.
	ErrNotFound = errors.New("no such run")
)

// Store is what running needs of a store.
type Store interface {
	// Turn is one transaction in which the row of a job is locked against every other process. It
	// hands the job's agenda to decide; of an unknown job the agenda is empty but for State.Name.
	// now is the database's clock, read when the lock is had. What decide leaves is stored: the
	// state, the open runs, and the new ones, but for those whose (job, instant) is known. A
	// callback may be called again when the transaction has to be repeated, so it does nothing but
	// change what it was given. Its error is returned as it is, and nothing is stored.
	Turn(ctx context.Context, job string, decide func(now time.Time, a *Agenda) error) error

	// Paused returns the pause that a job is under: its own, else that of everything, else the zero
	// Mark.
	Paused(ctx context.Context, job string) (Mark, error)
}

// Reader is the people's side of a store.
type Reader interface {
	// Jobs returns all jobs in the order of their names, and the pause of everything.
	Jobs(ctx context.Context) (Board, error)
	// Runs returns runs, the newest first.
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)
	// Run returns one; an unknown one matches ErrNotFound.
	Run(ctx context.Context, job string, number int64) (RunRow, error)
}

// Board is what is known of all jobs at one moment.
type Board struct {
	Now  time.Time // by the database's clock
	Halt Mark      // the pause of everything
	Jobs []JobState
}

// RunFilter selects runs. Zero fields do not narrow.
type RunFilter struct {
	Job    string
	Result Result
	Open   bool    // only those without a result
	Before *RunRow // the last one of the page before; of it Created, Job and Number count
	Limit  int     // 0: 100
}
