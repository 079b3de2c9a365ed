package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

func (a *app) reconcileApprove() *cobra.Command {
	var by saga.Actor
	cmd := &cobra.Command{
		Use: "approve JOB --reason WHY [flags]", Args: oneJob,
		Short: "Let a new job change things, from its next run on",
		Long: `Let a job change things, from its next run on. Until it is approved once, its runs only plan: read one of the
plans first, or apply one by hand. Its bounds stay as they are; to lift them for one plan: amends reconcile apply
--approve.`,
		Example: `  amends reconcile approve orders --reason "three plans were read and found right"`,
	}
	byFlags(cmd, &by, "why; required, and kept with the job")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := byFaults(&by); len(wrong) > 0 {
			return usage("try: amends reconcile approve --help", wrong...)
		}
		return a.atDesk(cmd.Context(), func(d desk) error {
			j, err := jobOf(cmd.Context(), d, args[0])
			if err != nil {
				return err
			}
			before := j.Approved
			if !before.Is() { // the first approval stands
				if err := schedule.Approve(cmd.Context(), d, j.Name, by); err != nil {
					return err
				}
				if j, err = jobOf(cmd.Context(), d, j.Name); err != nil {
					return err
				}
			}
			return a.printApproval(j, before)
		})
	}
	return cmd
}

// approvedJSON is who approved a job.
type approvedJSON struct {
	Job      string    `json:"job"`
	Approved *markJSON `json:"approved"`
	Before   *markJSON `json:"before"` // null: the job was not approved yet
}

func (a *app) printApproval(j *job, before schedule.Mark) error {
	if a.json {
		return a.printJSON(approvedJSON{j.Name, markToJSON(j.Approved), markToJSON(before)})
	}
	if before.Is() {
		a.paragraph("", fmt.Sprintf("Job %s was approved already, %s. Nothing was changed.", j.Name, markWords(before)))
		return nil
	}
	a.paragraph("", fmt.Sprintf("Job %s is approved. From its next run on it changes things, within its bounds.", j.Name))
	return nil
}
