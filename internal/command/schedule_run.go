package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// askPlan is what a job is asked for a plan by; askApply comes before the id of one. Jobs read
// them.
const (
	askPlan    = "plan"
	askApply   = "apply"
	askRebuild = "rebuild"
)

func (a *app) scheduleRun() *cobra.Command {
	var r request
	var what string
	cmd := &cobra.Command{
		Use: "run JOB [flags]", Args: oneJob,
		Short: "Run a job now",
		Long: `Run a job now, as its schedule would: within its bounds, and never beside another run of it. A job that is paused is
not run by hand either.

` + requestHelp + `

--ask hands the job a word of its own instead, if it knows one.`,
		Example: `  amends schedule run orders --reason "the shop is back"
  amends schedule run orders --no-wait
  amends schedule run archive --ask "month 2026-10" --reason "INC-77"`,
	}
	r.flags(cmd, `why (default: "by hand"); required with --ask`)
	cmd.Flags().StringVar(&what, "ask", "", "what to ask the job for, in words that it knows (default: what the schedule does)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.by.Reason == "" && (what == "" || what == askPlan) {
			r.by.Reason = "by hand"
		}
		wrong := append(r.faults(cmd), reserved(what)...)
		if len(wrong) > 0 {
			return usage("try: amends schedule run --help", wrong...)
		}
		return a.atDesk(cmd.Context(), func(d desk) error {
			j, err := jobOf(cmd.Context(), d, args[0])
			if err != nil {
				return err
			}
			if err := j.runnable(); err != nil {
				return err
			}
			run, err := a.ask(cmd.Context(), d, j.Name, what, &r)
			if err != nil {
				return err
			}
			return a.printEnd(&run)
		})
	}
	return cmd
}

// reserved refuses words that have a verb of their own: it looks before it asks.
func reserved(what string) []string {
	switch first, _, _ := strings.Cut(what, " "); first {
	case askApply:
		return []string{"a plan is applied by: amends reconcile apply JOB PLAN"}
	case askRebuild:
		return []string{"a ledger is rebuilt by: amends reconcile rebuild JOB"}
	}
	return nil
}
