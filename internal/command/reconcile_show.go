package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/plan"
)

// outcomes are what can become of a finding.
var outcomes = []string{
	string(plan.Applied), string(plan.Superseded), string(plan.Failed), string(plan.Withheld), string(plan.ForPerson),
}

// showing says which findings of which plan are shown.
type showing struct {
	job            string
	class, outcome string
	query          plan.FindingQuery
}

func (a *app) reconcileShow() *cobra.Command {
	var s showing
	cmd := &cobra.Command{
		Use: "show (PLAN | --job JOB) [flags]", Args: atMostOnePlan,
		Short: "Show a plan that was made, and what became of it",
		Long: `Show a plan that was made: as text with the first findings of each class, who approved it, and what can be done. With
--class, --outcome, --acting or --after the findings themselves are listed, page by page, in the order of their keys, with what
differs, what is proposed and what became of each.

A plan is named by its id or the beginning of it. When there are more findings than --limit, the last line (stderr) is
the command for the next page; with -o json the findings always come, and "next" is the key to give to --after, null on
the last page.`,
		Example: `  amends reconcile show 5f3a1c2d
  amends reconcile show --job orders               # its newest plan
  amends reconcile show 5f3a1c2d --class duplicate
  amends reconcile show 5f3a1c2d --outcome failed -o json | jq -r '.items[] | [.key, .error] | @tsv'`,
	}
	fl := cmd.Flags()
	fl.StringVar(&s.job, "job", "", "the newest plan of this job")
	fl.StringVar(&s.class, "class", "", "findings of this class: "+strings.Join(classNames(), ", "))
	fl.StringVar(&s.outcome, "outcome", "", "findings of which this became: "+strings.Join(outcomes, ", "))
	fl.BoolVar(&s.query.Acting, "acting", false, "findings about which something is still to be done by itself")
	fl.IntVar(&s.query.Limit, "limit", 50, "at most this many findings")
	fl.StringVar(&s.query.After, "after", "", "only findings with keys behind this one: the next page")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wrong := s.faults()
		if (len(args) == 1) == (s.job != "") {
			wrong = append(wrong, "say which plan: its id, or --job JOB for the newest")
		}
		if len(wrong) > 0 {
			return usage("try: amends reconcile show --help", wrong...)
		}
		return a.atDesk(cmd.Context(), func(d desk) error {
			p, err := s.plan(cmd.Context(), d, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return a.runShowPlan(cmd, d, &p, &s)
		})
	}
	return cmd
}

func atMostOnePlan(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s takes one plan, not %d", cmd.CommandPath(), len(args)))
	}
	return said("the id of the plan", args...)
}

// classNames are the classes of which findings are kept.
func classNames() []string {
	var names []string
	for _, c := range plan.Classes {
		if c != plan.InSync {
			names = append(names, string(c))
		}
	}
	return names
}

// aClass says what is wrong with the name of a class.
func aClass(name string) []string {
	if name == "" || slices.Contains(classNames(), name) {
		return nil
	}
	if name == string(plan.InSync) {
		return []string{"what is in-sync is counted and not kept; a class that is kept is one of " + strings.Join(classNames(), ", ")}
	}
	return []string{fmt.Sprintf("there is no class %q: it is one of %s", name, strings.Join(classNames(), ", "))}
}

// faults completes the query and says what is wrong with it.
func (s *showing) faults() []string {
	wrong := aClass(s.class)
	if s.outcome != "" && !slices.Contains(outcomes, s.outcome) {
		wrong = append(wrong, fmt.Sprintf("there is no outcome %q: it is one of %s", s.outcome, strings.Join(outcomes, ", ")))
	}
	if s.query.Limit < 1 {
		wrong = append(wrong, "--limit is at least 1")
	}
	s.query.Class, s.query.Outcome = plan.Class(s.class), plan.Outcome(s.outcome)
	return wrong
}

// lists reports whether findings are wanted, and not the plan as a whole.
func (s *showing) lists() bool {
	return s.class != "" || s.outcome != "" || s.query.Acting || s.query.After != ""
}

func (s *showing) plan(ctx context.Context, d desk, id string) (plan.Stored, error) {
	if s.job == "" {
		return planOf(ctx, d, id)
	}
	p, err := d.Latest(ctx, s.job)
	if !errors.Is(err, plan.ErrNotFound) {
		return p, err
	}
	if _, err := jobOf(ctx, d, s.job); err != nil {
		return p, err
	}
	return p, &failure{exit: exitNotFound, what: "job " + s.job + " has made no plan yet", next: "amends reconcile plan " + quote(s.job)}
}

func (a *app) runShowPlan(cmd *cobra.Command, d desk, p *plan.Stored, s *showing) error {
	if !a.json && !s.lists() {
		if err := a.writePlan(cmd.Context(), d, p); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
		a.field("made", a.both(p.Made))
		if words := approval(p); words != "" {
			a.field("approved", words)
		}
		a.field("next", a.nextOfPlan(p))
		return nil
	}
	q := s.query
	q.Plan = p.Ref()
	q.Limit++ // one more tells whether there is a next page
	rows, err := d.Findings(cmd.Context(), q)
	if err != nil {
		return err
	}
	rows, more := page(rows, s.query.Limit)
	if a.json {
		return a.printJSON(planToJSON(p, rows, more))
	}
	if len(rows) == 0 {
		a.sayf("no findings match")
	}
	for i := range rows {
		a.printRow(&rows[i])
	}
	if more {
		a.sayf("there are more; the next page: %s --after %s", again(cmd), quote(rows[len(rows)-1].Key))
	}
	return nil
}

// planJSON is a plan and a page of its findings as JSON.
type planJSON struct {
	Plan     plan.Plan  `json:"plan"`
	Number   int64      `json:"number,string"`
	Made     *time.Time `json:"finishedAt"`
	Approved *markJSON  `json:"approved"` // the bounds were lifted; null: they were not
	listing[rowJSON]
}

// rowJSON is a finding and what became of it as JSON.
type rowJSON struct {
	plan.Finding
	Outcome plan.Outcome `json:"outcome"` // "": nothing yet
	Error   string       `json:"error"`
	At      *time.Time   `json:"outcomeAt"` // of the outcome
}

func planToJSON(p *plan.Stored, rows []plan.Row, more bool) planJSON {
	j := planJSON{Plan: p.Plan, Number: p.Number, Made: utc(p.Made), listing: listed(rows, more,
		func(r *plan.Row) rowJSON { return rowJSON{r.Finding, r.Outcome, r.Error, utc(r.At)} },
		func(r *plan.Row) string { return r.Key })}
	if p.Approved.Name != "" {
		j.Approved = &markJSON{utc(p.When), p.Approved.Name, p.Approved.Reason}
	}
	return j
}
