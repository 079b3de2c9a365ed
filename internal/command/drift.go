package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/plan"
)

// driftVerbs is the table of what amends can do about drift.
var driftVerbs = []func(*app) *cobra.Command{
	(*app).driftList,
}

func (a *app) drift() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "drift",
		Short: "Show the differences that last",
		Long: `Show what reconciliations found and what is still so: since when, how often in a row, and what is proposed. A
difference that is gone is gone from here, too; the plans tell what was.`,
		Example: `  amends drift list --times 3                      # what three runs in a row have found`,
	}, driftVerbs)
}

func (a *app) driftList() *cobra.Command {
	var q plan.DriftQuery
	var class, after string
	var exitCode bool
	cmd := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"}, Args: noArguments,
		Short: "List differences, those that last longest first",
		Long: `List the differences that the latest runs of jobs have found, those first that were found first: since when they are
known, how many runs in a row found them, what is to be done and what is proposed to a person.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is what to give to --after, null on the last page.`,
		Example: `  amends drift list --job orders
  amends drift list --class duplicate
  amends drift list --times 3 --exit-code          # 6 when anything lasts: for a monitor
  amends drift list -o json | jq -r '.items[] | [.key, .class, .firstAt] | @tsv'`,
	}
	fl := cmd.Flags()
	fl.StringVar(&q.Job, "job", "", "found by this job")
	fl.StringVar(&q.Key, "key", "", "about this key: the id of a work, such as shop:order:10492")
	fl.StringVar(&class, "class", "", "of this class: "+strings.Join(classNames(), ", "))
	fl.IntVar(&q.Times, "times", 1, "found at least so often in a row")
	fl.IntVar(&q.Limit, "limit", 50, "at most this many")
	fl.StringVar(&after, "after", "", "only differences behind this one: the next page")
	fl.BoolVar(&exitCode, "exit-code", false, "end with 6 when there are any")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		wrong := aClass(class)
		if q.Limit < 1 {
			wrong = append(wrong, "--limit is at least 1")
		}
		if q.Times < 1 {
			wrong = append(wrong, "--times is at least 1")
		}
		if after != "" {
			var err error
			if q.After, err = parseDriftCursor(after); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
		if len(wrong) > 0 {
			return usage("", wrong...)
		}
		q.Class = plan.Class(class)
		return a.runDriftList(cmd, q, exitCode)
	}
	return cmd
}

// driftCursor names a difference for the next page; parseDriftCursor reads it. Jobs have no comma
// in their names.
func driftCursor(d *plan.Drift) string {
	return d.First.UTC().Format(time.RFC3339Nano) + "," + d.Job + "," + d.Key
}

func parseDriftCursor(text string) (*plan.Drift, error) {
	parts := strings.SplitN(text, ",", 3)
	if len(parts) == 3 {
		if first, err := time.Parse(time.RFC3339Nano, parts[0]); err == nil {
			return &plan.Drift{Job: parts[1], Finding: plan.Finding{Key: parts[2]}, First: first}, nil
		}
	}
	return nil, fmt.Errorf("--after %q: it is what the page before said", text)
}

func (a *app) runDriftList(cmd *cobra.Command, q plan.DriftQuery, exitCode bool) error {
	limit := q.Limit
	q.Limit++ // one more tells whether there is a next page
	var ds []plan.Drift
	err := a.atDesk(cmd.Context(), func(d desk) (err error) {
		ds, err = d.Drifts(cmd.Context(), q)
		if err == nil && len(ds) == 0 && q.Job != "" {
			_, err = jobOf(cmd.Context(), d, q.Job) // nothing is no comfort when the name is a mistake
		}
		return err
	})
	if err != nil {
		return err
	}
	ds, more := page(ds, limit)
	if err := a.printDrifts(cmd, ds, more); err != nil || !exitCode || len(ds) == 0 {
		return err
	}
	many := ""
	if more {
		many = "at least "
	}
	return &failure{exit: exitFindings, what: many + count(len(ds), "difference"), next: "a proposal is for a person; what is safe is done by the next run of the job"}
}

func (a *app) printDrifts(cmd *cobra.Command, ds []plan.Drift, more bool) error {
	if a.json {
		return a.printJSON(listed(ds, more, driftToJSON, driftCursor))
	}
	if len(ds) == 0 {
		a.sayf("no differences match")
		return nil
	}
	g := grid{header: []string{"job", "key", "class", "since", "times", "to be done", "why", "proposal"}}
	for i := range ds {
		d := &ds[i]
		g.add(d.Job, d.Key, string(d.Class), a.when(d.First), strconv.Itoa(d.Times), string(d.Do), d.Why, d.Propose)
	}
	a.print(&g)
	if more {
		a.sayf("there are more; the next page: %s --after %s", again(cmd), quote(driftCursor(&ds[len(ds)-1])))
	}
	return nil
}

// driftJSON is a difference as JSON.
type driftJSON struct {
	Job string `json:"job"`
	plan.Finding
	First *time.Time `json:"firstAt"`
	Last  *time.Time `json:"lastAt"`
	Times int        `json:"runs"` // runs in a row that found it
}

func driftToJSON(d *plan.Drift) driftJSON {
	return driftJSON{d.Job, d.Finding, utc(d.First), utc(d.Last), d.Times}
}
