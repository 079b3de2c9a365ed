package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// desk is where a person meets the jobs: their runs, their plans and what they found. It lies in
// the ledger's database.
type desk interface {
	schedule.Store
	schedule.Reader
	plan.Plans
	plan.Drifts
}

// atDesk opens the desk for fn.
func (a *app) atDesk(ctx context.Context, fn func(desk) error) error {
	return a.reconciling(ctx, func(r reconciler) error { return fn(r) })
}

// oneJob wants the name of one job.
func oneJob(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("amends schedule list shows the jobs; try: "+cmd.CommandPath()+" --help", "name the job: "+cmd.CommandPath()+" JOB")
	}
	return atMostOneJob(cmd, args)
}

func atMostOneJob(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s takes one job, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " ")))
	}
	return said("the name of the job", args...)
}

// job is a job and the moment at which it was read.
type job struct {
	schedule.JobState
	schedule.Board
}

// halt is the pause that the job is under: its own, else that of everything.
func (j *job) halt() schedule.Mark {
	if j.Paused.Is() {
		return j.Paused
	}
	return j.Halt
}

// jobOf reads a job, or says which there are.
func jobOf(ctx context.Context, r schedule.Reader, name string) (*job, error) {
	b, err := r.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(b.Jobs, func(s schedule.JobState) bool { return s.Name == name })
	if i >= 0 && name != schedule.Everything {
		return &job{JobState: b.Jobs[i], Board: b}, nil
	}
	f := &failure{
		exit: exitNotFound, what: fmt.Sprintf("there is no job %q", name), err: errors.New("no process with a job of that name ever ran on this database"),
		next: "no process with any job has: start yours, and look at --db and AMENDS_DB",
	}
	if names := namesOf(b.Jobs); len(names) > 0 {
		f.next, f.details = "the jobs are: "+strings.Join(names, ", "), map[string]any{"jobs": names}
	}
	return nil, f
}

func namesOf(jobs []schedule.JobState) []string {
	names := make([]string, len(jobs))
	for i := range jobs {
		names[i] = jobs[i].Name
	}
	return names
}

// runnable returns an error while the job, or all jobs, are paused. A paused job begins no run, so
// the command refuses at once instead of asking for a run that would be refused later.
func (j *job) runnable() error {
	m := j.halt()
	if !m.Is() {
		return nil
	}
	what, next := "job "+j.Name+" is paused", "amends schedule unpause "+quote(j.Name)
	if !j.Paused.Is() {
		what, next = "all jobs are paused", "amends schedule unpause --all"
	}
	return &failure{exit: exitConflict, what: what, err: errors.New(markWords(m)), next: "nothing was asked for; when it may run again: " + next}
}

// markWords says who did something, when and why.
func markWords(m schedule.Mark) string { return fmt.Sprintf("by %s at %s: %s", m.By, iso(m.At), m.Why) }
