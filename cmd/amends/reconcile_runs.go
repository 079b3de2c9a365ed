package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// verdicts are what a run can end with.
var verdicts = []string{
	string(schedule.OK), string(schedule.Partial), string(schedule.Refused), string(schedule.Failed), string(schedule.Stopped), string(schedule.Skipped),
}

func (a *app) reconcileRuns() *cobra.Command {
	var f schedule.Filter
	var verdict string
	cmd := &cobra.Command{
		Use: "runs [JOB] [flags]", Args: atMostOneJob,
		Short: "List runs of jobs, newest first",
		Long: `List the runs of jobs, the newest first: by schedule and by hand, those that wait or are at work, and those that were
skipped, with the reason. "errors" is how many actions failed, "over limit" how many wait for an approval.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is the number to give to --before, null on the last page.`,
		Example: `  amends reconcile runs orders
  amends reconcile runs --verdict failed
  amends reconcile runs --open                     # that wait or are at work
  amends reconcile runs orders -o json | jq -r '.items[] | select(.applied > 0) | .plan'`,
	}
	fl := cmd.Flags()
	fl.StringVar(&verdict, "verdict", "", "with this verdict: "+strings.Join(verdicts, ", "))
	fl.BoolVar(&f.Open, "open", false, "that have not ended")
	fl.IntVar(&f.Limit, "limit", 50, "at most this many")
	fl.Int64Var(&f.Before, "before", 0, "only runs with a smaller number: the next page")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var wrong []string
		if verdict != "" && !slices.Contains(verdicts, verdict) {
			wrong = append(wrong, fmt.Sprintf("there is no verdict %q: it is one of %s", verdict, strings.Join(verdicts, ", ")))
		}
		if verdict != "" && f.Open {
			wrong = append(wrong, "a run that has not ended has no verdict")
		}
		if f.Limit < 1 {
			wrong = append(wrong, "--limit is at least 1")
		}
		if len(wrong) > 0 {
			return usage("", wrong...)
		}
		f.Job, f.Verdict = strings.Join(args, ""), schedule.Verdict(verdict)
		return a.runRuns(cmd, f)
	}
	return cmd
}

func (a *app) runRuns(cmd *cobra.Command, f schedule.Filter) error {
	limit := f.Limit
	f.Limit++ // one more tells whether there is a next page
	var runs []schedule.RunRow
	err := a.atDesk(cmd.Context(), func(d desk) (err error) {
		if f.Job != "" {
			if _, err := jobOf(cmd.Context(), d, f.Job); err != nil {
				return err
			}
		}
		runs, err = d.Runs(cmd.Context(), f)
		return err
	})
	if err != nil {
		return err
	}
	runs, more := page(runs, limit)
	if a.json {
		return a.printJSON(listed(runs, more, runToJSON, func(r *schedule.RunRow) int64 { return r.Number }))
	}
	if len(runs) == 0 {
		a.sayf("no runs match")
		return nil
	}
	a.printRuns(runs)
	if more {
		a.sayf("there are more; the next page: %s --before %d", again(cmd), runs[limit-1].Number)
	}
	return nil
}

func (a *app) printRuns(runs []schedule.RunRow) {
	g := grid{header: []string{"number", "job", "scheduled for", "requested", "started", "took", "result", "seen", "planned", "applied", "over limit", "errors", "plan", "by", "note"}}
	for i := range runs {
		r := &runs[i]
		g.add(strconv.FormatInt(r.Number, 10), r.Job, r.Instant, r.Ask, a.when(r.Began), a.took(r), r.Status(), tally(r.Seen), tally(r.Planned),
			tally(r.Applied), tally(r.Refused), tally(r.Errors), brief(r.Plan), asker(r), runNote(r))
	}
	a.print(&g)
}
