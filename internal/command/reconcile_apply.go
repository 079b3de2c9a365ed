package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

func (a *app) reconcileApply() *cobra.Command {
	var r request
	var approve bool
	cmd := &cobra.Command{
		Use: "apply JOB PLAN --reason WHY [flags]", Args: jobAndPlan,
		Short: "Let a job carry out a plan, within its bounds",
		Long: `Let a job carry out a plan that was made. Each action is looked at again right before it is done: what is not so any
more is dropped as superseded, so that an old plan does no harm. What is over a bound is withheld; --approve lifts the
bounds for this very plan, and says so in the ledger's database. What is for a person stays for a person. A job that
is not approved yet applies a plan that is named, too: the rest of its runs only plan.

` + requestHelp,
		Example: `  amends reconcile apply orders 5f3a1c2d --reason "read and found right"
  amends reconcile apply orders 5f3a1c2d --approve --reason "INC-77: the books were restored from last night"`,
	}
	r.flags(cmd, "why; required, and kept with the run")
	cmd.Flags().BoolVar(&approve, "approve", false, "do what is over the bounds, too, of this very plan")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := r.faults(cmd); len(wrong) > 0 {
			return usage("try: amends reconcile apply --help", wrong...)
		}
		return a.atDesk(cmd.Context(), func(d desk) error {
			return a.apply(cmd.Context(), d, args[0], args[1], &r, approve)
		})
	}
	return cmd
}

func jobAndPlan(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usage("amends reconcile runs shows the plans; try: "+cmd.CommandPath()+" --help", "name the job and its plan: "+cmd.CommandPath()+" JOB PLAN")
	}
	return said("the name of the job or the id of the plan", args...)
}

// apply asks a job to carry out a plan, when there is anything left of it that may be.
func (a *app) apply(ctx context.Context, d desk, name, id string, r *request, approve bool) error {
	p, err := applicable(ctx, d, name, id)
	if err != nil {
		return err
	}
	left, err := d.Findings(ctx, plan.FindingQuery{Plan: p.Ref(), Acting: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return a.nothingLeft(&p)
	}
	if approve {
		if err := a.lift(ctx, d, &p, r); err != nil {
			return err
		}
	}
	run, err := a.ask(ctx, d, p.Job, askApply+" "+p.ID, r)
	if err != nil {
		return err
	}
	return a.applied(&run, &p)
}

// applicable reads a plan that can be carried out, or says why it cannot.
func applicable(ctx context.Context, d desk, name, id string) (plan.Stored, error) {
	j, err := jobOf(ctx, d, name)
	if err != nil {
		return plan.Stored{}, err
	}
	if err := j.runnable(); err != nil {
		return plan.Stored{}, err
	}
	p, err := planOf(ctx, d, id)
	if err != nil {
		return p, err
	}
	f := &failure{exit: exitConflict}
	switch {
	case p.Job != j.Name:
		f.what, f.next = fmt.Sprintf("plan %s is one of job %s, not of %s", brief(p.ID), p.Job, j.Name), "nothing was asked for"
	case p.Refused != "":
		f.what, f.err = fmt.Sprintf("nothing of plan %s may be done", brief(p.ID)), errors.New(p.Refused)
		f.next = "mend that first, then plan again: amends reconcile plan " + quote(j.Name)
	default:
		return p, nil
	}
	return p, f
}

// lift lifts the bounds for a plan that is over one.
func (a *app) lift(ctx context.Context, d desk, p *plan.Stored, r *request) error {
	if len(p.Withheld) == 0 {
		a.sayf("nothing of plan %s is over a bound, so it needs no approval", brief(p.ID))
		return nil
	}
	if err := d.Approve(ctx, p.ID, saga.Actor{Name: r.by.Name, Reason: r.by.Reason}); err != nil {
		return err
	}
	a.sayf("the bounds of plan %s are lifted", brief(p.ID))
	return nil
}

// appliedJSON is what became of a plan.
type appliedJSON struct {
	Plan     string   `json:"plan"`
	Withheld bool     `json:"overLimit"` // some of it is over a bound
	Run      *runJSON `json:"run"`       // null: nothing was left to do
}

// nothingLeft tells that everything which is done by itself was done already.
func (a *app) nothingLeft(p *plan.Stored) error {
	if a.json {
		return a.printJSON(appliedJSON{Plan: p.ID, Withheld: len(p.Withheld) > 0})
	}
	a.paragraph("", fmt.Sprintf("Nothing of plan %s is left to be done by itself, so nothing was asked for.", brief(p.ID)))
	if n := asks(&p.Plan); n > 0 {
		a.paragraph("", fmt.Sprintf("%s for a person: amends reconcile show %s%s", counted(int(n), "finding is", "findings are"), brief(p.ID), dbFlag(a.db)))
	}
	return nil
}

// applied tells how the run that carried out a plan ended.
func (a *app) applied(run *schedule.RunRow, p *plan.Stored) error {
	if !a.json {
		if err := a.printEnd(run); err != nil || run.Open() {
			return err
		}
		fmt.Fprintln(a.out)
		a.paragraph("", fmt.Sprintf("What became of each finding: amends reconcile show %s --outcome applied%s", brief(p.ID), dbFlag(a.db)))
		return nil
	}
	j := runToJSON(run)
	if err := a.printJSON(appliedJSON{Plan: p.ID, Withheld: len(p.Withheld) > 0, Run: &j}); err != nil || run.Open() {
		return err
	}
	return badly(run)
}
