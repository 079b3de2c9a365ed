package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

func (a *app) reconcilePlan() *cobra.Command {
	var r request
	var exitCode bool
	cmd := &cobra.Command{
		Use: "plan JOB [flags]", Args: oneJob,
		Short: "Ask a job what differs, and what it would do; nothing is changed",
		Long: `Ask a job for a plan: it lists its source and its destination, compares them with the ledger, and says what differs
and what it would do. It changes nothing anywhere.

` + requestHelp + `

The plan goes to stdout, as text with the first findings of each class, or with -o json whole. Equal sides give the
same plan, byte for byte, under the same id.`,
		Example: `  amends reconcile plan orders
  amends reconcile plan orders --exit-code         # 6 when anything differs
  amends reconcile plan orders -o json | jq -r '.findings[] | select(.action == "review") | .key'`,
	}
	r.flags(cmd, `why (default: "a plan was asked for")`)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when anything differs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.by.Reason == "" {
			r.by.Reason = "a plan was asked for"
		}
		if wrong := r.faults(cmd); len(wrong) > 0 {
			return usage("try: amends reconcile plan --help", wrong...)
		}
		return a.runPlan(cmd.Context(), args[0], &r, exitCode)
	}
	return cmd
}

func (a *app) runPlan(ctx context.Context, name string, r *request, exitCode bool) error {
	return a.atDesk(ctx, func(d desk) error {
		j, err := jobOf(ctx, d, name)
		if err != nil {
			return err
		}
		if err := j.runnable(); err != nil {
			return err
		}
		run, err := a.ask(ctx, d, j.Name, askPlan, r)
		if err != nil {
			return err
		}
		if run.Plan == "" || run.Open() {
			return a.printEnd(&run)
		}
		return a.planned(ctx, d, j, &run, exitCode)
	})
}

// planned tells the plan that a run made.
func (a *app) planned(ctx context.Context, d desk, j *job, run *schedule.RunRow, exitCode bool) error {
	p, err := planOf(ctx, d, run.Plan)
	if err != nil {
		return err
	}
	if err := a.writePlan(ctx, d, &p); err != nil {
		return err
	}
	a.sayf("nothing was changed; %s", a.nextOfPlan(&p))
	if !j.Approved.Is() {
		a.sayf("by itself job %s only plans, until: amends reconcile approve %s --reason WHY", j.Name, quote(j.Name))
	}
	switch {
	case run.Result != schedule.OK && run.Result != schedule.Refused: // that a bound is hit is what a plan is made to show
		return badly(run)
	case exitCode:
		return drifted(&p)
	}
	return nil
}

// drifted is the finding that not everything is as it should be, or nil.
func drifted(p *plan.Stored) error {
	n := p.Drifts()
	if n == 0 {
		return nil
	}
	what := fmt.Sprintf("%d keys of %s are not as they should be", n, p.Job)
	if n == 1 {
		what = fmt.Sprintf("1 key of %s is not as it should be", p.Job)
	}
	return &failure{exit: exitFindings, what: what, next: "look with: amends reconcile show " + brief(p.ID)}
}
