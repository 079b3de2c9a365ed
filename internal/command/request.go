package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// request is what the verbs have in common that ask for a run of a job: who wants it and why, and
// how long to wait for its end.
type request struct {
	by     saga.Actor
	wait   time.Duration
	noWait bool
}

const requestHelp = `It is stored as a run, with who asked and why, and begun by a process that has the job, as soon as no other run of it
is at work. The command waits for its end. With --no-wait it does not, and when --wait runs out it ends with 7: the
run goes on without it, and "amends reconcile runs JOB" shows what became of it.`

// patience is how long a command waits for a run, unless it is told otherwise.
const patience = 10 * time.Minute

func (r *request) flags(cmd *cobra.Command, why string) {
	byFlags(cmd, &r.by, why)
	cmd.Flags().DurationVar(&r.wait, "wait", patience, "wait this long for its end")
	cmd.Flags().BoolVar(&r.noWait, "no-wait", false, "do not wait for its end")
}

// faults completes r and says what is missing.
func (r *request) faults(cmd *cobra.Command) []string {
	wrong := byFaults(&r.by)
	if r.wait <= 0 {
		wrong = append(wrong, "--wait is longer than nothing; not to wait: --no-wait")
	}
	if r.noWait && cmd.Flags().Changed("wait") {
		wrong = append(wrong, "say --wait or --no-wait, not both")
	}
	return wrong
}

// ask asks for a run, and waits for its end if that is wanted. Only without waiting the run may be
// open.
func (a *app) ask(ctx context.Context, d desk, job, what string, r *request) (schedule.RunRow, error) {
	run, err := schedule.Request(ctx, d, job, what, r.by)
	if err != nil {
		return run, err
	}
	if run.By != r.by.Name || run.Why != r.by.Reason {
		a.sayf("run %d of %s waits already: %s asked for it: %s", run.Number, run.Job, run.By, run.Why)
	} else {
		a.sayf("run %d of %s is asked for", run.Number, run.Job)
	}
	if r.noWait {
		return run, nil
	}
	return a.end(ctx, d, run, r.wait)
}

// end waits for the end of a run.
func (a *app) end(ctx context.Context, d desk, run schedule.RunRow, wait time.Duration) (schedule.RunRow, error) {
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	p := a.progress(standsAt(&run))
	defer p.done()
	for pause := poll; ; pause = min(2*pause, time.Second) {
		now, err := d.Run(timed, run.Job, run.Number)
		switch {
		case err == nil && !now.Open():
			return now, nil
		case ctx.Err() != nil:
			return run, left(&run)
		case timed.Err() != nil:
			return run, timedOut(&run, wait)
		case err != nil:
			return run, err
		}
		run = now
		p.is(standsAt(&run))
		p.at(run.Seen, func() string { return progressOf(&run) })
		select {
		case <-timed.Done():
		case <-time.After(pause):
		}
	}
}

// standsAt says in words where an open run is.
func standsAt(r *schedule.RunRow) string {
	switch {
	case r.Running() && r.Attempt > 1:
		return fmt.Sprintf("run %d of %s is at work, attempt %d", r.Number, r.Job, r.Attempt)
	case r.Running():
		return fmt.Sprintf("run %d of %s is at work", r.Number, r.Job)
	}
	return fmt.Sprintf("run %d of %s waits for its turn, and for a process that has the job", r.Number, r.Job)
}

// progressOf says where an open run is, and what it has done.
func progressOf(r *schedule.RunRow) string {
	if !r.Running() {
		return standsAt(r)
	}
	return standsAt(r) + "; so far " + figures(r)
}

// figures says in words what a run has done.
func figures(r *schedule.RunRow) string {
	words := fmt.Sprintf("%d seen, %d planned, %d applied", r.Seen, r.Planned, r.Applied)
	if r.Refused > 0 {
		words += fmt.Sprintf(", %d refused", r.Refused)
	}
	if r.Errors > 0 {
		words += fmt.Sprintf(", %d failed", r.Errors)
	}
	return words
}

// timedOut is the end of a wait for a run that has not ended.
func timedOut(r *schedule.RunRow, wait time.Duration) error {
	f := &failure{exit: exitTimedOut, details: map[string]any{"run": runToJSON(r)}}
	if r.Attempt == 0 {
		f.what = fmt.Sprintf("no process has begun run %d of %s within %s", r.Number, r.Job, wait)
		f.err = errors.New("it is stored, and begun when a process that has the job runs and no other run of it is at work")
		f.next = "see that one runs; do not ask again; look with: amends reconcile runs " + quote(r.Job)
		return f
	}
	f.what = fmt.Sprintf("run %d of %s has not ended within %s", r.Number, r.Job, wait)
	f.err = errors.New("it goes on without this command; so far " + figures(r))
	f.next = "look with: amends reconcile runs " + quote(r.Job)
	return f
}

// left is the end of a wait that a person broke off.
func left(r *schedule.RunRow) error {
	return &failure{
		exit: exitInterrupted, what: "interrupted", err: fmt.Errorf("run %d of %s stays as it was asked for", r.Number, r.Job),
		next: fmt.Sprintf("look with: amends reconcile runs %s; to stop it: amends schedule pause %s", quote(r.Job), quote(r.Job)),
	}
}

// badly is the failure of a run that did not end well, or nil.
func badly(r *schedule.RunRow) error {
	f := &failure{exit: exitFailed, what: fmt.Sprintf("run %d of %s ended as %s", r.Number, r.Job, r.Result), details: map[string]any{"run": runToJSON(r)}}
	if words := runNote(r); words != "" {
		f.err = errors.New(words)
	}
	switch r.Result {
	case schedule.OK:
		return nil
	case schedule.Refused:
		f.exit, f.next = exitConflict, "a bound was hit, and a person decides"
		if r.Plan != "" {
			f.next += "; look with: amends reconcile show " + brief(r.Plan)
		}
	case schedule.Stopped, schedule.Skipped:
		f.exit, f.next = exitConflict, "look with: amends schedule list"
	case schedule.Partial:
		f.next = "what was left undone is found again by the next run"
	case schedule.Failed:
		f.next = "look at the log of the process that ran it"
	}
	return f
}
