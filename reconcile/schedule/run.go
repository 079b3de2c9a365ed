package schedule

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Run is one attempt at a run, as the work sees it.
type Run struct {
	Job      string
	Instant  string    // the key of the run: the same for every attempt
	At       time.Time // the planned time
	From     time.Time // the first instant it makes up for; At when nothing was missed
	Ask      string    // what was asked for by hand; "" is the scheduled work
	By, Why  string    // who asked for it
	Attempt  int       // 1 for the first
	Fence    int64     // higher than that of every attempt before, at any run of the job
	Approved bool      // false: the job is not approved yet, so it plans and changes nothing
	Overlap  Overlap   // of the job, as this program says

	// Reported is what an earlier attempt reported last.
	Reported Outcome
	// Watermark is where the cursor stood after the last good run.
	Watermark string

	text     Schedule
	instants int64        // how many it stands for
	store    Store        // nil in a run that a test made: it cannot be paused
	lost     func() error // why the run is not ours any more; nil: it is

	mu     sync.Mutex
	report Outcome
}

// Proceed says whether the work may go on. It is to be asked between any two actions. Its error
// matches [ErrPaused] after an operator has paused the job or everything, and [ErrLost] when
// another process may hold the run by now; the work then returns it. When the database cannot be
// asked, the work may not go on either.
func (r *Run) Proceed(ctx context.Context) error {
	if err := r.owned(ctx); err != nil {
		return err
	}
	if r.store == nil {
		return nil
	}
	pause, err := r.store.Paused(ctx, r.Job)
	switch {
	case err != nil:
		return fmt.Errorf("ask whether job %s is paused: %w", r.Job, err)
	case pause.Is():
		return fmt.Errorf("job %s: %w: %s, %s", r.Job, ErrPaused, pause.By, pause.Why)
	}
	return r.owned(ctx) // asking may have taken long
}

func (r *Run) owned(ctx context.Context) error {
	if r.lost != nil {
		if err := r.lost(); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// Report says what was done so far. It is written with the next renewal of the lease, at most a
// third of it later, for operators to see and for the process that takes the run over. It costs
// nothing.
func (r *Run) Report(o Outcome) {
	o.Result = ""
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report = o
}

func (r *Run) reported() Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}
