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

var scheduleVerb = group{"schedule", []maker{
	plain("list", noArguments, (*desk.Desk).Jobs, (*app).printBoard).exits("end with 6 when a job needs a person"),
	verb[desk.RunIn, desk.Run]{
		name: "run", args: theJob.named(1, 1), do: (*desk.Desk).RunNow, print: printed[desk.RunIn]((*app).printRun),
		usage: map[string]string{"reason": `why (default: "by hand"); required with --ask`},
	},
	plain("backfill", theJob.named(1, 1), (*desk.Desk).Backfill, (*app).printBackfill),
	plain("pause", theJob.named(0, 1), (*desk.Desk).PauseJob, printed[desk.PauseJobIn]((*app).printJobPause)),
	plain("unpause", theJob.named(0, 1), (*desk.Desk).UnpauseJob, printed[desk.JobIn]((*app).printJobPause)),
	verb[desk.ExpressionIn, desk.Expression]{
		name: "check", args: oneText, do: (*desk.Desk).Expression, print: (*app).printExpression, alarm: "end with 6 when there is a warning", free: true,
	},
}}

func (a *app) printBoard(in *desk.JobsIn, b *desk.Board) {
	if len(b.Items) == 0 {
		a.sayf("no process with a job ever ran on this database")
		return
	}
	if b.Paused != nil {
		a.paragraph("", "All jobs are paused "+b.Paused.Words())
		fmt.Fprintln(a.out)
	}
	a.table(b.Items, "job=Job, schedule=Schedule, zone=TimeZone, next=Upcoming, last ok=LastSuccessEndedAt, otherwise since=Failures, note=Note")
	for i := range b.Items {
		if in.Next {
			fmt.Fprintln(a.out, "\n"+visible(b.Items[i].Job))
			a.printUpcoming(b.Items[i].Runs)
		}
	}
}

// printUpcoming writes instants in UTC, and as the clocks of their zone show them.
func (a *app) printUpcoming(runs []time.Time) {
	for _, t := range runs {
		words := desk.When(t.Location() != time.UTC, "  "+t.Format("Mon 2006-01-02 15:04:05 MST"))
		a.paragraph("  ", fmt.Sprintf("%s%s  (%s)", finding.ISO(t), words, a.ago(t)))
	}
}

// oneText wants an expression as one argument: a shell takes a star for the files of the folder.
func oneText(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(`try: amends schedule check "30 2 * * *"`, fmt.Sprintf("%s takes one expression, in quotes, not %s", cmd.CommandPath(), finding.Count(len(args), "word")))
	}
	return nil
}

func (a *app) printExpression(_ *desk.ExpressionIn, e *desk.Expression) {
	a.fields("schedule", e.Schedule, "zone", e.TimeZone)
	for _, w := range e.Warnings {
		a.fields("beware", w)
	}
	fmt.Fprintln(a.out, "\nnext runs")
	a.printUpcoming(e.Runs)
}

func (a *app) printBackfill(in *desk.BackfillIn, b *desk.Backfill) {
	for i := range b.Items {
		fmt.Fprintln(a.out, visible(b.Items[i].ScheduledFor))
	}
	switch {
	case len(b.Items) == 0:
		a.paragraph("", "None is missing: each instant has a run that ended well, or one that is open.")
	case in.DryRun:
		a.then("Dry run: nothing was asked for.")
	default:
		a.then(fmt.Sprintf("%s asked for; they come one by one. How far they are:", desk.Counted(len(b.Items), "run is", "runs are")))
		a.paragraph("  ", "amends reconcile runs "+quote(in.Job)+dbFlag(a.db))
	}
}

func (a *app) printJobPause(p *desk.JobPause) {
	who, is, runs := "Job "+p.Job, "is", "It runs"
	if p.Everything() {
		who, is, runs = "All jobs", "are", "They run"
	}
	switch {
	case p.Paused != nil:
		a.paragraphs("", fmt.Sprintf("%s %s paused %s", who, is, p.Paused.Words()), desk.With("Before, the pause was ", p.Before.Words()))
	case p.Before == nil:
		a.paragraph("", fmt.Sprintf("%s %s not paused; nothing was changed.", who, is))
	default:
		a.paragraph("", fmt.Sprintf("%s %s not paused any more. %s again; what was missed is made up for by one run.", who, is, runs))
	}
	a.paragraphs("", desk.When(!p.Everything(), desk.With("Beware: all jobs are paused ", p.All.Words())))
}

// follow tells that a run is asked for, and how far it has come. Both ways to wait are a mistake.
func (a *app) follow(in *desk.RequestIn) (done func()) {
	in.Wrong.If(in.NoWait && a.cmd.Flags().Changed("wait"), "say --wait or --no-wait, not both")
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
		p.at(r.Seen, func() string { return r.Stands() + desk.When(r.Status == "running", "; so far "+r.Figures()) })
	}
	return func() { p.done() }
}

// printRun writes a run for people.
func (a *app) printRun(r *desk.Run) {
	a.fields("run", fmt.Sprintf("%d of %s", r.Number, r.Job), "ask", r.Requested, "said by", desk.When(r.Actor != "", r.Actor+": "+r.Reason))
	if r.Open() {
		a.fields("stands at", r.Status)
		a.paragraph("          ", "amends reconcile runs "+quote(r.Job)+dbFlag(a.db))
		return
	}
	a.fields("result", string(r.Result), "took", r.Took(a.now()), "did", r.Figures(), "plan", r.Plan, "note", r.Words())
}

var reconcileVerb = group{"reconcile", []maker{
	reconcilePlanVerb, reconcileShowVerb, reconcileApplyVerb,
	plain("approve", theJob.named(1, 1), (*desk.Desk).ApproveJob, (*app).printJobApproval),
	listing("runs", theJob.named(0, 1), (*desk.Desk).Runs, "no runs match", "before", "job=Job, number=Number, scheduled for=ScheduledFor, requested=Requested, started=StartedAt, "+
		"took=Took, result=Status, seen=Seen?, planned=Planned?, applied=Applied?, over limit=OverLimit?, errors=Errors?, plan=Brief, by=By, note=Words"),
	reconcileRebuildVerb,
}}

var reconcilePlanVerb = verb[desk.RequestIn, desk.Run]{
	name: "plan", args: theJob.named(1, 1),
	usage: map[string]string{"reason": `why (default: "a plan was asked for")`},
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.RequestIn) (*desk.Run, error) {
		run, err := d.MakePlan(ctx, in)
		if run == nil || run.Plan == "" || run.Open() {
			return run, err
		}
		return nil, a.planned(ctx, d, run, err)
	},
	print: printed[desk.RequestIn]((*app).printRun), alarm: "end with 6 when anything differs",
}

// planned tells the plan that a run made, which ended so.
func (a *app) planned(ctx context.Context, d *desk.Desk, run *desk.Run, end error) error {
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
	if f := p.Drifted(); end == nil && f != nil && a.exitCode {
		return f
	}
	return end
}

var reconcileShowVerb = verb[desk.PlanIn, desk.Plan]{
	name: "show", args: thing{kind: "plan", empty: "the id of the plan"}.named(0, 1),
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
		a.fields("made", a.both(desk.At(p.FinishedAt)), "approved", p.Approved.Words(), "next", p.Then)
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
	version := fmt.Sprintf("version: %s at the source, %s in the ledger", cmp.Or(r.SourceRevision, "none"), cmp.Or(r.LedgerRevision, "none"))
	a.paragraphs("  ", fmt.Sprintf("%s, %s: %s", r.Class, r.Action, r.Reason), desk.With("documents: ", strings.Join(r.Documents, ", ")),
		desk.When(r.SourceRevision != "" || r.LedgerRevision != "", version))
	for _, c := range r.Changes {
		a.paragraph("  - ", c.Field+": "+c.Actual)
		a.paragraph("  + ", c.Field+": "+c.Desired)
	}
	a.paragraphs("  > ", r.Suggestion)
	a.paragraphs("  ", r.Became())
}

var reconcileApplyVerb = verb[desk.ApplyIn, desk.Applied]{
	name: "apply", args: jobAndPlan,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.ApplyIn) (*desk.Applied, error) {
		in.Lifted = func(plan string, lifted bool) {
			a.sayf(desk.Either(lifted, "the bounds of plan %s are lifted", "nothing of plan %s is over a bound, so it needs no approval"), plan)
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
	if out.Run == nil {
		asking := fmt.Sprintf("%s for a person: amends reconcile show %s%s", desk.Counted(out.Asking, "finding is", "findings are"), plan, dbFlag(a.db))
		a.paragraphs("", fmt.Sprintf("Nothing of plan %s is left to be done by itself, so nothing was asked for.", plan), desk.When(out.Asking > 0, asking))
		return
	}
	if a.printRun(out.Run); out.Run.Well() {
		a.then(fmt.Sprintf("What became of each finding: amends reconcile show %s --outcome applied%s", plan, dbFlag(a.db)))
	}
}

func (a *app) printJobApproval(_ *desk.ApproveJobIn, out *desk.JobApproval) {
	a.paragraph("", desk.Either(out.Before != nil,
		fmt.Sprintf("Job %s was approved already, %s. Nothing was changed.", out.Job, out.Before.Words()),
		fmt.Sprintf("Job %s is approved. From its next run on it changes things, within its bounds.", out.Job)))
}

var reconcileRebuildVerb = verb[desk.RebuildIn, desk.Run]{
	name: "rebuild", args: theJob.named(1, 1),
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.RebuildIn) (*desk.Run, error) {
		in.Sure = func(job string) error { return a.confirm(ctx, a.given.In, job) }
		return d.Rebuild(ctx, in)
	},
	print: printed[desk.RebuildIn]((*app).printRun),
}

// confirm prints what a rebuild does and reads the name of the job as the confirmation. It refuses
// where in is no terminal, because no person can answer there.
func (a *app) confirm(ctx context.Context, in io.Reader, name string) error {
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return usage("read: amends reconcile rebuild --help; then, to go on without being asked: --yes", "there is no terminal to ask for a confirmation on")
	}
	fmt.Fprintf(a.err, "%s\n\nType the name of the job to go on: ", helps()["@rebuild"].long)
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
