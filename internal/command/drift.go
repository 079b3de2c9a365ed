package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/plan"
)

// What differs, and what people decide about it.

var driftVerb = group{
	name: "drift",
	verbs: []maker{
		listing("list", noArguments, (*desk.Desk).Drifts, "no differences match", "after", "job=Job, key=Key, class=Class, since=First, "+
			"times=Runs, to be done=Action, why=Reason, proposal=Suggestion, decide=Decisions").exits("end with 6 when there are any"),
		listing("decided", theJob.named(1, 1), (*desk.Desk).Decisions, "nothing was decided", "after",
			"key=Key, class=Class, decided=Verdict, at=At, by=Actor, reason=Reason, until=Until, became=Became, finding=Finding"),
		decision(plan.Accept, "document"), decision(plan.Hide, "document"), decision(plan.Remake, "document", "until"), decision(plan.Ours, "document", "until"),
		decision(plan.Keep, "class", "until"), decision(plan.Void, "document", "until"),
		decision(plan.Reopen, "document", "until", "class", "finding", "wait", "no-wait"),
	},
}

// decision is the verb that decides on findings with a verdict. hidden are flags that it refuses.
func decision(verdict plan.Verdict, hidden ...string) maker {
	return verb[desk.DecideIn, desk.Decided]{
		name: string(verdict), args: jobAndKey, hidden: hidden,
		by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.DecideIn) (*desk.Decided, error) {
			args := a.cmd.Flags().Args()
			in.Verdict, in.Job, in.Key = string(verdict), args[0], strings.Join(args[1:], "")
			return d.Decide(ctx, in)
		},
		print: (*app).printDecided,
	}
}

// jobAndKey wants a job, and may have the key of a finding.
func jobAndKey(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage("amends drift list shows the findings of jobs; try: "+cmd.CommandPath()+" --help", "name the job: "+cmd.CommandPath()+" JOB KEY")
	case len(args) > 2:
		return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s takes a job and one key, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " ")))
	}
	return cmp.Or(said("the name of the job", args[0]), said("the key", args[1:]...))
}

func (a *app) printDecided(in *desk.DecideIn, out *desk.Decided) {
	for i := range out.Items {
		d := &out.Items[i]
		a.fields("key", d.Key, "was", string(d.Class), "finding", d.Finding, "decided", d.Verdict+", "+d.Actor+": "+d.Reason, "then", d.Then, "became", d.Became())
	}
	if out.Left > 0 {
		a.sayf("%s no such decision: amends drift list --job %s --class %s",
			desk.Counted(out.Left, "finding of the class takes", "findings of the class take"), quote(in.Job), quote(in.Class))
	}
	switch {
	case out.DryRun:
		a.paragraph("", "Dry run: nothing was stored.")
	case out.Run != nil && out.Run.Open():
		a.paragraph("", "Stored. A process that has the job carries it out; what became of it: amends drift decided "+quote(in.Job)+dbFlag(a.db))
	case out.Run == nil && len(out.Items) > 0:
		a.paragraph("", "Stored.")
	}
}
