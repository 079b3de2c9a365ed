package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// results are what a run can end with.
var results = []string{
	string(schedule.OK), string(schedule.Partial), string(schedule.Refused), string(schedule.Failed), string(schedule.Stopped), string(schedule.Skipped),
}

func (a *app) reconcileRuns() *cobra.Command {
	var f schedule.RunFilter
	var result, before string
	cmd := &cobra.Command{
		Use: "runs [JOB] [flags]", Args: atMostOneJob,
		Short: "List runs of jobs, newest first",
		Long: `List the runs of jobs, the newest first: by schedule and by hand, those that wait or are at work, and those that were
skipped, with the reason. "errors" is how many actions failed, "over limit" how many wait for an approval.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is what to give to --before, null on the last page.`,
		Example: `  amends reconcile runs orders
  amends reconcile runs --result failed
  amends reconcile runs --open                     # that wait or are at work
  amends reconcile runs orders -o json | jq -r '.items[] | select(.applied > 0) | .plan'`,
	}
	fl := cmd.Flags()
	fl.StringVar(&result, "result", "", "with this result: "+strings.Join(results, ", "))
	fl.BoolVar(&f.Open, "open", false, "that have not ended")
	fl.IntVar(&f.Limit, "limit", 50, "at most this many")
	fl.StringVar(&before, "before", "", "the next page, as the page before said it; of a JOB, runs with a smaller number")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var wrong []string
		if result != "" && !slices.Contains(results, result) {
			wrong = append(wrong, fmt.Sprintf("there is no result %q: it is one of %s", result, strings.Join(results, ", ")))
		}
		if result != "" && f.Open {
			wrong = append(wrong, "a run that has not ended has no result")
		}
		if f.Limit < 1 {
			wrong = append(wrong, "--limit is at least 1")
		}
		if before != "" {
			var err error
			if f.Before, err = parseRunCursor(strings.Join(args, ""), before); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
		if len(wrong) > 0 {
			return usage("", wrong...)
		}
		f.Job, f.Result = strings.Join(args, ""), schedule.Result(result)
		return a.runRuns(cmd, f)
	}
	return cmd
}

func (a *app) runRuns(cmd *cobra.Command, f schedule.RunFilter) error {
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
	cursor := func(r *schedule.RunRow) string { return runCursor(f.Job, r) }
	if a.json {
		return a.printJSON(listed(runs, more, runToJSON, cursor))
	}
	if len(runs) == 0 {
		a.sayf("no runs match")
		return nil
	}
	a.printRuns(runs)
	if more {
		a.sayf("there are more; the next page: %s --before %s", again(cmd), quote(cursor(&runs[limit-1])))
	}
	return nil
}

// runCursor names a run for the next page, among those of a job by its number; parseRunCursor reads
// it. Jobs have no comma in their names.
func runCursor(job string, r *schedule.RunRow) string {
	if job != "" {
		return strconv.FormatInt(r.Number, 10)
	}
	return fmt.Sprintf("%s,%s,%d", r.Created.UTC().Format(time.RFC3339Nano), r.Job, r.Number)
}

func parseRunCursor(job, text string) (*schedule.RunRow, error) {
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && job != "" && number > 0 {
		return &schedule.RunRow{Job: job, Number: number}, nil
	}
	if parts := strings.Split(text, ","); len(parts) == 3 {
		created, err := time.Parse(time.RFC3339Nano, parts[0])
		number, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err == nil && err2 == nil && (job == "" || job == parts[1]) {
			return &schedule.RunRow{Created: created, Job: parts[1], Number: number}, nil
		}
	}
	return nil, fmt.Errorf("--before %q: it is what the page before said", text)
}

func (a *app) printRuns(runs []schedule.RunRow) {
	g := grid{header: []string{"job", "number", "scheduled for", "requested", "started", "took", "result", "seen", "planned", "applied", "over limit", "errors", "plan", "by", "note"}}
	for i := range runs {
		r := &runs[i]
		g.add(r.Job, strconv.FormatInt(r.Number, 10), r.Instant, r.Ask, a.when(r.Began), a.took(r), r.Status(), tally(r.Seen), tally(r.Planned),
			tally(r.Applied), tally(r.Refused), tally(r.Errors), brief(r.Plan), asker(r), runNote(r))
	}
	a.print(&g)
}
