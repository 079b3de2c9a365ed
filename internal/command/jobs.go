package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	unseen "github.com/amends-dev/amends/internal/visible"
)

// Jobs: when they run, what they find, and what they are asked for.

const requestHelp = `It is stored as a run, with who asked and why, and begun by a process that has the job, as soon as no other run of it
is at work. The command waits for its end. With --no-wait it does not, and when --wait runs out it ends with 7: the
run goes on without it, and "amends reconcile runs JOB" shows what became of it.`

var (
	oneJob       = atMostOne("job", "JOB", "the name of the job", true, "amends schedule list shows the jobs; ")
	atMostOneJob = atMostOne("job", "JOB", "the name of the job", false, "")
)

var scheduleVerb = group{
	use:   "schedule",
	short: "Show, run and pause jobs, and check what a schedule means",
	long: `Show when jobs run, run one now, and pause them.

A job is what the program does by a schedule: its reconciliation above all. Every instant of a schedule is a row in
the ledger's database, and is run once, by whichever process takes it. amends runs nothing itself: it asks, and a
process that has the job does it.`,
	example: `  amends schedule list                             # when, and is anything wrong?
  amends schedule pause --all --reason "the books are closing the year"
  amends schedule check "30 2 * * *" --zone Europe/Vienna`,
	verbs: []maker{scheduleListVerb, scheduleRunVerb, schedulePauseVerb, scheduleUnpauseVerb, scheduleCheckVerb},
}

var scheduleListVerb = verb[desk.JobsIn, desk.Board]{
	use: "list [flags]", args: noArguments,
	short: "List jobs: when they run, and whether anything is wrong",
	long: `List the jobs, in the order of their names, as the newest process described them: when each runs next, when a run
last ended well, how many ended otherwise since, and what a person should know.

"needs a person" says that no run ended well for longer than the job allows. A paused job gets there, too, so that a
forgotten pause is noticed.`,
	example: `  amends schedule list
  amends schedule list --next                      # the next five runs of each
  amends schedule list --exit-code                 # 6 when a job needs a person: for a monitor`,
	do: (*desk.Desk).Jobs, print: (*app).printBoard, alarm: "end with 6 when a job needs a person",
}

func (a *app) printBoard(in *desk.JobsIn, b *desk.Board) {
	if len(b.Jobs) == 0 {
		a.sayf("no process with a job ever ran on this database")
		return
	}
	if b.Halt != nil {
		a.paragraph("", "All jobs are paused "+b.Halt.Words())
		fmt.Fprintln(a.out)
	}
	a.table(b.Jobs, "job=Job, schedule=Schedule, zone=Zone, next=Upcoming, last ok=GoodAt, otherwise since=Failures, note=Note")
	for i := range b.Jobs {
		if in.Next {
			fmt.Fprintln(a.out, "\n"+visible(b.Jobs[i].Job))
			a.printUpcoming(b.Jobs[i].Runs)
		}
	}
}

// printUpcoming writes instants in UTC, and as the clocks of their zone show them.
func (a *app) printUpcoming(runs []time.Time) {
	for _, t := range runs {
		words := finding.ISO(t)
		if t.Location() != time.UTC {
			words += "  " + t.Format("Mon 2006-01-02 15:04:05 MST")
		}
		a.paragraph("  ", fmt.Sprintf("%s  (%s)", words, a.ago(t)))
	}
}

var scheduleCheckVerb = verb[desk.ExpressionIn, desk.Expression]{
	use: "check TEXT [flags]", args: oneText,
	short: "Check what a schedule means, and when it runs next",
	long: `Check an expression before it goes into a program: five fields (minute, hour, day of the month, month of the
year, day of the week), @hourly, @daily, @weekly, @monthly, @yearly, or @every with a duration. It says the next five runs, in UTC and
as the clocks of the zone show them, and warns of what may not have been meant. It needs no database. What is not a
schedule ends the command with 2, and everything that is wrong with it is said.`,
	example: `  amends schedule check "30 2 * * *" --zone Europe/Vienna
  amends schedule check "@every 5m"
  amends schedule check "0 3 1 * 1" --exit-code`,
	do: (*desk.Desk).Expression, print: (*app).printExpression, alarm: "end with 6 when there is a warning",
	free: true,
}

// oneText wants an expression as one argument: a shell takes a star for the files of the folder.
func oneText(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(`try: amends schedule check "30 2 * * *"`, fmt.Sprintf("%s takes one expression, in quotes, not %s", cmd.CommandPath(), finding.Count(len(args), "word")))
	}
	return nil
}

func (a *app) printExpression(_ *desk.ExpressionIn, e *desk.Expression) {
	a.fields("schedule", e.Schedule, "zone", e.Zone)
	for _, w := range e.Warnings {
		a.fields("beware", w)
	}
	fmt.Fprintln(a.out, "\nnext runs")
	a.printUpcoming(e.Runs)
}

var schedulePauseVerb = verb[desk.PauseJobIn, desk.JobPause]{
	use: "pause (JOB | --all) --reason WHY [flags]", args: atMostOneJob,
	short: "Keep a job, or all, from acting until it is unpaused",
	long: `Keep a job from beginning runs, and stop the one that goes on between two of its actions. --all does that to every
job, those that are not known yet among them. It pauses jobs only: works and webhooks go on. To keep everything from the
destinations, too: amends pause --all.

What comes due meanwhile is missed, and made up for by one run when the job is unpaused, unless it is longer ago than
the job makes up for.`,
	example: `  amends schedule pause orders --reason "the shop is being moved"
  amends schedule pause --all --reason "INC-77: no comparison until it is closed"`,
	do: (*desk.Desk).PauseJob, print: func(a *app, _ *desk.PauseJobIn, p *desk.JobPause) { a.printJobPause(p) },
}

var scheduleUnpauseVerb = verb[desk.JobIn, desk.JobPause]{
	use: "unpause (JOB | --all) [flags]", args: atMostOneJob,
	short: "Let a job, or all, run again",
	long: `Let a job run again, or --all. Instants that were missed are made up for by one run, within what the job allows. A job
that was paused by its own name stays paused when all are unpaused.`,
	example: `  amends schedule unpause orders
  amends schedule unpause --all`,
	do: (*desk.Desk).UnpauseJob, print: func(a *app, _ *desk.JobIn, p *desk.JobPause) { a.printJobPause(p) },
}

func (a *app) printJobPause(p *desk.JobPause) {
	who, is, runs := "Job "+p.Job, "is", "It runs"
	if p.Everything() {
		who, is, runs = "All jobs", "are", "They run"
	}
	switch {
	case p.Paused != nil:
		a.paragraph("", fmt.Sprintf("%s %s paused %s", who, is, p.Paused.Words()))
		if p.Before != nil {
			a.paragraph("", "Before, the pause was "+p.Before.Words())
		}
	case p.Before == nil:
		a.paragraph("", fmt.Sprintf("%s %s not paused; nothing was changed.", who, is))
	default:
		a.paragraph("", fmt.Sprintf("%s %s not paused any more. %s again; what was missed is made up for by one run.", who, is, runs))
	}
	if !p.Everything() && p.All != nil {
		a.paragraph("", "Beware: all jobs are paused "+p.All.Words())
	}
}

var scheduleRunVerb = verb[desk.RunIn, desk.Run]{
	use: "run JOB [flags]", args: oneJob,
	short: "Run a job now",
	long: `Run a job now, as its schedule would: within its bounds, and never beside another run of it. A job that is paused is
not run by hand either.

` + requestHelp + `

--ask hands the job a word of its own instead, if it knows one.`,
	example: `  amends schedule run orders --reason "the shop is back"
  amends schedule run orders --no-wait
  amends schedule run archive --ask "month 2026-10" --reason "INC-77"`,
	usage: map[string]string{"reason": `why (default: "by hand"); required with --ask`},
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.RunIn) (*desk.Run, error) {
		defer a.follow(&in.RequestIn)()
		return d.RunNow(ctx, in)
	},
	print: func(a *app, _ *desk.RunIn, r *desk.Run) { a.printRun(r) },
}

// follow tells that a run is asked for, and how far it has come. Both ways to wait are a mistake.
func (a *app) follow(in *desk.RequestIn) (done func()) {
	if in.NoWait && a.cmd.Flags().Changed("wait") {
		in.Wrong = append(in.Wrong, "say --wait or --no-wait, not both")
	}
	var p *progress
	in.Asked = func(r *desk.Run, already bool) {
		if already {
			a.sayf("run %d of %s waits already: %s asked for it: %s", r.Number, r.Job, r.Actor, r.Reason)
		} else {
			a.sayf("run %d of %s is asked for", r.Number, r.Job)
		}
		p = a.progress(r.Stands())
	}
	in.Progress = func(r *desk.Run) {
		p.is(r.Stands())
		p.at(r.Seen, func() string {
			if r.Status != "running" {
				return r.Stands()
			}
			return r.Stands() + "; so far " + r.Figures()
		})
	}
	return func() {
		if p != nil {
			p.done()
		}
	}
}

// printRun writes a run for people.
func (a *app) printRun(r *desk.Run) {
	by := ""
	if r.Actor != "" {
		by = r.Actor + ": " + r.Reason
	}
	a.fields("run", fmt.Sprintf("%d of %s", r.Number, r.Job), "ask", r.Ask, "said by", by)
	if r.Open() {
		a.fields("stands at", r.Status)
		a.paragraph("          ", "amends reconcile runs "+quote(r.Job)+dbFlag(a.db))
		return
	}
	a.fields("result", string(r.Result), "took", r.Took(a.now()), "did", r.Figures(), "plan", r.Plan, "note", r.Words())
}

var reconcileVerb = group{
	use:   "reconcile",
	short: "Compare source, ledger and destination, and repair what is safe to repair",
	long: `Compare what a source of truth says with what the ledger knows and with what the destination has, name every
difference, and repair what is safe to repair.

A job does that, in the program that knows source and destination; amends asks for it. A plan is made first and is
kept under an id. It is applied within bounds: what is over one is withheld until a person approves that very plan.
What cannot be told for certain is for a person in any case. By itself a new job only
plans, until it is approved.`,
	example: `  amends reconcile plan orders                     # what differs, and what would be done? Nothing is changed
  amends reconcile show 5f3a1c2d --class duplicate
  amends reconcile apply orders 5f3a1c2d --reason "read and found right"
  amends reconcile runs orders`,
	verbs: []maker{reconcilePlanVerb, reconcileShowVerb, reconcileApplyVerb, reconcileApproveVerb, reconcileRunsVerb, reconcileRebuildVerb},
}

var reconcilePlanVerb = single(func(a *app) *cobra.Command {
	in, exitCode := new(desk.RequestIn), false
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
	bind(cmd.Flags(), in)
	cmd.Flags().Lookup("reason").Usage = `why (default: "a plan was asked for")`
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when anything differs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.prepare(cmd, in)
		in.Job = args[0]
		defer a.follow(in)()
		return a.at(cmd.Context(), func(d *desk.Desk) error {
			run, err := d.MakePlan(cmd.Context(), in)
			if run == nil {
				return err
			}
			if run.Plan == "" || run.Open() {
				return cmp.Or(a.tell(run, func() { a.printRun(run) }), err)
			}
			return a.planned(cmd.Context(), d, run, err, exitCode)
		})
	}
	return cmd
})

// planned tells the plan that a run made, which ended so.
func (a *app) planned(ctx context.Context, d *desk.Desk, run *desk.Run, end error, exitCode bool) error {
	p, err := d.Plan(ctx, &desk.PlanIn{Plan: run.Plan, Limit: desk.Limit{N: 1}})
	if err != nil {
		return err
	}
	if a.json {
		err = d.WriteJSON(ctx, &unseen.Writer{W: a.out}, p)
	} else {
		err = d.WriteText(ctx, a.out, p)
	}
	if err != nil {
		return err
	}
	a.sayf("nothing was changed; %s", p.Then)
	if d.OnlyPlans(ctx, run.Job) {
		a.sayf("by itself job %s only plans, until: amends reconcile approve %s --reason WHY", run.Job, quote(run.Job))
	}
	if end != nil {
		return end
	}
	if f := p.Drifted(); exitCode && f != nil {
		return f
	}
	return nil
}

var reconcileShowVerb = verb[desk.PlanIn, desk.Plan]{
	use: "show (PLAN | --job JOB) [flags]", args: atMostOne("plan", "PLAN", "the id of the plan", false, ""),
	short: "Show a plan that was made, and what became of it",
	long: `Show a plan that was made: as text with the first findings of each class, who approved it, and what can be done. With
--class, --outcome, --acting or --after the findings themselves are listed, page by page, in the order of their keys, with what
differs, what is proposed and what became of each.

A plan is named by its id or the beginning of it. When there are more findings than --limit, the last line (stderr) is
the command for the next page; with -o json the findings always come, and "next" is the key to give to --after, null on
the last page.`,
	example: `  amends reconcile show 5f3a1c2d
  amends reconcile show --job orders               # its newest plan
  amends reconcile show 5f3a1c2d --class duplicate
  amends reconcile show 5f3a1c2d --outcome failed -o json | jq -r '.items[] | [.key, .error] | @tsv'`,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.PlanIn) (*desk.Plan, error) {
		p, err := d.Plan(ctx, in)
		if err == nil && !a.json && !in.Lists() {
			err = d.WriteText(ctx, a.out, p)
		}
		return p, err
	},
	print: (*app).printPlan,
}

func (a *app) printPlan(in *desk.PlanIn, p *desk.Plan) {
	if !in.Lists() {
		fmt.Fprintln(a.out)
		a.fields("made", a.both(desk.At(p.Made)), "approved", p.Approved.Words(), "next", p.Then)
		return
	}
	if len(p.Items) == 0 {
		a.sayf("no findings match")
	}
	for i := range p.Items {
		a.printRow(&p.Items[i])
	}
	a.more(p.Next, "after")
}

// printRow writes one finding with everything that is known about it.
func (a *app) printRow(r *desk.PlanRow) {
	a.paragraph("", r.Key)
	version := ""
	if r.Revision != "" || r.Applied != "" {
		version = fmt.Sprintf("version: %s at the source, %s in the ledger", cmp.Or(r.Revision, "none"), cmp.Or(r.Applied, "none"))
	}
	a.paragraphs("  ", fmt.Sprintf("%s, %s: %s", r.Class, r.Do, r.Why), desk.With("documents: ", strings.Join(r.Documents, ", ")), version)
	for _, c := range r.Changes {
		a.paragraph("  - ", c.Field+": "+c.Is)
		a.paragraph("  + ", c.Field+": "+c.Want)
	}
	a.paragraphs("  > ", r.Propose)
	a.paragraphs("  ", r.Became())
}

var reconcileApplyVerb = verb[desk.ApplyIn, desk.Applied]{
	use: "apply JOB PLAN --reason WHY [flags]", args: jobAndPlan,
	short: "Let a job carry out a plan, within its bounds",
	long: `Let a job carry out a plan that was made. Each action is looked at again right before it is done: what is not so any
more is dropped as superseded, so that an old plan does no harm. What is over a bound is withheld; --approve lifts the
bounds for this very plan, and says so in the ledger's database. What is for a person stays for a person. A job that
is not approved yet applies a plan that is named, too: the rest of its runs only plan.

` + requestHelp,
	example: `  amends reconcile apply orders 5f3a1c2d --reason "read and found right"
  amends reconcile apply orders 5f3a1c2d --approve --reason "INC-77: the books were restored from last night"`,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.ApplyIn) (*desk.Applied, error) {
		defer a.follow(&in.RequestIn)()
		in.Lifted = func(plan string, lifted bool) {
			if lifted {
				a.sayf("the bounds of plan %s are lifted", plan)
			} else {
				a.sayf("nothing of plan %s is over a bound, so it needs no approval", plan)
			}
		}
		return d.Apply(ctx, in)
	},
	print: (*app).printApplied,
}

func jobAndPlan(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usage("amends reconcile runs shows the plans; try: "+cmd.CommandPath()+" --help", "name the job and its plan: "+cmd.CommandPath()+" JOB PLAN")
	}
	return said("the name of the job or the id of the plan", args...)
}

func (a *app) printApplied(_ *desk.ApplyIn, out *desk.Applied) {
	plan := desk.Brief(out.Plan)
	switch {
	case out.Run != nil && out.Run.Open():
		a.printRun(out.Run)
	case out.Run != nil:
		a.printRun(out.Run)
		if out.Run.Well() {
			fmt.Fprintln(a.out)
			a.paragraph("", fmt.Sprintf("What became of each finding: amends reconcile show %s --outcome applied%s", plan, dbFlag(a.db)))
		}
	default:
		a.paragraph("", fmt.Sprintf("Nothing of plan %s is left to be done by itself, so nothing was asked for.", plan))
		if out.Asking > 0 {
			a.paragraph("", fmt.Sprintf("%s for a person: amends reconcile show %s%s", desk.Counted(out.Asking, "finding is", "findings are"), plan, dbFlag(a.db)))
		}
	}
}

var reconcileApproveVerb = verb[desk.ApproveJobIn, desk.JobApproval]{
	use: "approve JOB --reason WHY [flags]", args: oneJob,
	short: "Let a new job change things, from its next run on",
	long: `Let a job change things, from its next run on. Until it is approved once, its runs only plan: read one of the
plans first, or apply one by hand. Its bounds stay as they are; to lift them for one plan: amends reconcile apply
--approve.`,
	example: `  amends reconcile approve orders --reason "three plans were read and found right"`,
	do:      (*desk.Desk).ApproveJob,
	print: func(a *app, _ *desk.ApproveJobIn, out *desk.JobApproval) {
		if out.Before != nil {
			a.paragraph("", fmt.Sprintf("Job %s was approved already, %s. Nothing was changed.", out.Job, out.Before.Words()))
			return
		}
		a.paragraph("", fmt.Sprintf("Job %s is approved. From its next run on it changes things, within its bounds.", out.Job))
	},
}

var reconcileRunsVerb = verb[desk.RunsIn, desk.List[desk.Run]]{
	use: "runs [JOB] [flags]", args: atMostOneJob,
	short: "List runs of jobs, newest first",
	long: `List the runs of jobs, the newest first: by schedule and by hand, those that wait or are at work, and those that were
skipped, with the reason. "errors" is how many actions failed, "over limit" how many wait for an approval.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is what to give to --before, null on the last page.`,
	example: `  amends reconcile runs orders
  amends reconcile runs --result failed
  amends reconcile runs --open                     # that wait or are at work
  amends reconcile runs orders -o json | jq -r '.items[] | select(.applied > 0) | .plan'`,
	do:   (*desk.Desk).Runs,
	none: "no runs match", next: "before",
	columns: "job=Job, number=Number, scheduled for=Instant, requested=Ask, started=Began, took=Took, result=Status, seen=Seen?, " +
		"planned=Planned?, applied=Applied?, over limit=Refused?, errors=Errors?, plan=Brief, by=By, note=Words",
}

const rebuildHelp = `The job lists its source and its destination whole, and writes into the ledger what stands already:

  - what matches the source exactly is adopted, so that it is never made again; mails count as sent, unless the program knows better;
  - what does not match, or stands twice, is recorded in review, so that nothing is started for it;
  - what the ledger knows already is left as it is.

It makes nothing at the destination, and sends nothing. Its incremental listings start from the beginning afterwards.
Until it has ended the program that has the job must hear no webhook and run no work, and no other may run:
what is heard over an empty ledger is started, whatever stands.`

var reconcileRebuildVerb = verb[desk.RebuildIn, desk.Run]{
	use: "rebuild JOB --reason WHY [flags]", args: oneJob,
	short: "Let a job rebuild a lost ledger from what stands",
	long: `Let a job rebuild a ledger that was lost, or restored from an old backup, before anything else runs on it.
` + rebuildHelp + `

It asks for the name of the job before it begins; without a terminal to ask on, --yes is needed. To be on the safe
side, look afterwards with: amends reconcile plan JOB.

` + requestHelp,
	example: `  amends reconcile rebuild orders --reason "INC-77: the database was lost"
  amends reconcile rebuild orders --reason "INC-77" --yes --no-wait`,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.RebuildIn) (*desk.Run, error) {
		defer a.follow(&in.RequestIn)()
		in.Sure = func(job string) error { return a.confirm(ctx, a.given.In, job) }
		return d.Rebuild(ctx, in)
	},
	print: func(a *app, _ *desk.RebuildIn, r *desk.Run) { a.printRun(r) },
}

// confirm prints what a rebuild does and reads the name of the job as the confirmation. It refuses
// where in is no terminal, because no person can answer there.
func (a *app) confirm(ctx context.Context, in io.Reader, name string) error {
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return usage("read: amends reconcile rebuild --help; then, to go on without being asked: --yes", "there is no terminal to ask for a confirmation on")
	}
	fmt.Fprintf(a.err, "%s\n\nType the name of the job to go on: ", rebuildHelp)
	line, err := readLine(ctx, in)
	if err != nil {
		return err
	}
	if strings.TrimSpace(line) != name {
		return usage("", "that is not the name of the job; nothing was asked for")
	}
	return nil
}

// readLine reads what a person types. A person who breaks it off need not type a line for that.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		line string
		err  error
	}
	typed := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) { // the line is what was typed before
			err = nil
		}
		typed <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case t := <-typed:
		return t.line, t.err
	}
}
