package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

func (a *app) schedulePause() *cobra.Command {
	var by saga.Actor
	var all bool
	cmd := &cobra.Command{
		Use: "pause (JOB | --all) --reason WHY [flags]", Args: atMostOneJob,
		Short: "Keep a job, or all, from acting until it is unpaused",
		Long: `Keep a job from beginning runs, and stop the one that goes on between two of its actions. --all does that to every
job, those that are not known yet among them. It pauses jobs only: works and webhooks go on. To keep everything from the
destinations, too: amends pause --all.

What comes due meanwhile is missed, and made up for by one run when the job is unpaused, unless it is longer ago than
the job makes up for.`,
		Example: `  amends schedule pause orders --reason "the shop is being moved"
  amends schedule pause --all --reason "INC-77: no comparison until it is closed"`,
	}
	cmd.Flags().BoolVar(&all, "all", false, "all jobs")
	byFlags(cmd, &by, "why; required, and shown to a user who asks for a run")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, wrong := jobOrAll(args, all)
		if wrong = append(wrong, byFaults(&by)...); len(wrong) > 0 {
			return usage("try: amends schedule pause --help", wrong...)
		}
		return a.setPause(cmd.Context(), name, func(ctx context.Context, d desk) error {
			return schedule.Pause(ctx, d, name, by)
		})
	}
	return cmd
}

func (a *app) scheduleUnpause() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "unpause (JOB | --all) [flags]", Args: atMostOneJob,
		Short: "Let a job, or all, run again",
		Long: `Let a job run again, or --all. Instants that were missed are made up for by one run, within what the job allows. A job
that was paused by its own name stays paused when all are unpaused.`,
		Example: `  amends schedule unpause orders
  amends schedule unpause --all`,
	}
	cmd.Flags().BoolVar(&all, "all", false, "all jobs that were not paused by their own names")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, wrong := jobOrAll(args, all)
		if len(wrong) > 0 {
			return usage("try: amends schedule unpause --help", wrong...)
		}
		return a.setPause(cmd.Context(), name, func(ctx context.Context, d desk) error {
			return schedule.Unpause(ctx, d, name)
		})
	}
	return cmd
}

// jobOrAll is the name of the job that is meant, or of everything.
func jobOrAll(args []string, all bool) (name string, wrong []string) {
	switch {
	case len(args) == 1 && all:
		return "", []string{"name one job, or say --all, not both"}
	case len(args) == 1:
		return args[0], nil
	case all:
		return schedule.Everything, nil
	}
	return "", []string{"say which: JOB, or --all"}
}

// pauseJSON is what is paused after a command, and what was before.
type pauseJSON struct {
	Job    string    `json:"job"`    // "": all
	Paused *markJSON `json:"paused"` // null: it is not
	Before *markJSON `json:"before"`
	All    *markJSON `json:"all"` // the pause of everything
}

// setPause pauses or unpauses, and tells what stands then.
func (a *app) setPause(ctx context.Context, name string, change func(context.Context, desk) error) error {
	return a.atDesk(ctx, func(d desk) error {
		before, _, err := pauseOf(ctx, d, name)
		if err != nil {
			return err
		}
		if err := change(ctx, d); err != nil {
			return err
		}
		now, all, err := pauseOf(ctx, d, name)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(pauseJSON{name, markToJSON(now), markToJSON(before), markToJSON(all)})
		}
		a.printPause(name, before, now, all)
		return nil
	})
}

// pauseOf is the pause of a job by its own name, or of everything; and that of everything.
func pauseOf(ctx context.Context, d desk, name string) (own, all schedule.Mark, err error) {
	if name == schedule.Everything {
		b, err := d.Jobs(ctx)
		return b.Halt, b.Halt, err
	}
	j, err := jobOf(ctx, d, name)
	if err != nil {
		return schedule.Mark{}, schedule.Mark{}, err
	}
	return j.Paused, j.Halt, nil
}

func (a *app) printPause(name string, before, now, all schedule.Mark) {
	who, is, runs := fmt.Sprintf("Job %s", name), "is", "It runs"
	if name == schedule.Everything {
		who, is, runs = "All jobs", "are", "They run"
	}
	switch {
	case now.Is():
		a.paragraph("", fmt.Sprintf("%s %s paused %s", who, is, markWords(now)))
		if before.Is() {
			a.paragraph("", "Before, the pause was "+markWords(before))
		}
	case !before.Is():
		a.paragraph("", fmt.Sprintf("%s %s not paused; nothing was changed.", who, is))
	default:
		a.paragraph("", fmt.Sprintf("%s %s not paused any more. %s again; what was missed is made up for by one run.", who, is, runs))
	}
	if name != schedule.Everything && all.Is() {
		a.paragraph("", "Beware: all jobs are paused "+markWords(all))
	}
}
