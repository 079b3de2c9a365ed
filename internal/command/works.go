package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What is read of works.

func (a *app) printStatus(_ *desk.StatusIn, s *desk.Status) {
	a.fields("clock", finding.ISO(*s.At)+" (the ledger's)", "running", finding.Count(len(s.Sessions), "coordinator"))
	if len(s.Sessions) > 0 {
		fmt.Fprintln(a.out)
		a.table(s.Sessions, "session=Session, process=Label, opened=Opened, lease until=Expires, holds=Holds, knows=Runs")
	}
	fmt.Fprintln(a.out)
	a.paragraphs("", desk.When(len(s.Findings) == 0, "Everything moves."))
	for _, f := range s.Findings {
		a.paragraph("", f.Words)
		a.paragraph("  ", f.Next)
	}
	works := func(n int, are string) string { return desk.When(n > 0, finding.Works(int64(n))+are) }
	review, paused := works(s.Review, " in review (amends list --review)"), works(s.Paused, " paused (amends list --status paused)")
	a.paragraphs("", desk.With("For a person to decide: ", review+desk.When(review != "" && paused != "", ", ")+paused),
		desk.With("Waiting for a time, an answer or a decision: ", works(s.Waiting, " (amends list --waiting; decisions: amends approvals)")),
		desk.When(s.Retrying > 0, fmt.Sprintf("Tried again by themselves: %d (amends list --status retrying)", s.Retrying)),
		"Retention: "+s.Keeps.Words()+", where no definition says otherwise (amends retention plan)",
		desk.When(s.Sealed, "Bodies are sealed: processes and commands that read or write them need the keys (docs/expiry.md)"),
		desk.With("To be erased: ", works(s.ToErase, " (amends list --tag amends:erase=later), by a run of retention once they have ended and are not held")))
}

func noWork(cmd *cobra.Command, args []string) error {
	if err := said(theWork.empty, args...); err != nil || len(args) == 0 {
		return err
	}
	return usage("one work is shown by: "+program.Command("show", args[0], "")+"; those that begin alike by: amends list --prefix "+quote(args[0]),
		cmd.CommandPath()+" takes no work")
}

var listVerb = verb[desk.ListIn, desk.List[desk.Head]]{
	name: "list", args: noWorkOrApproval,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.ListIn) (*desk.List[desk.Head], error) {
		if len(a.cmd.Flags().Args()) > 0 {
			return nil, approvalsVerb.run(a, d, nil)
		}
		if a.cmd.Flags().Changed("group") {
			if f := a.cmd.Flags(); f.Changed("limit") || f.Changed("after") || f.Changed("newest") || a.output == "ids" {
				return nil, usage("try: amends list --help", "--group has no pages: leave out --limit, --after, --newest and -o ids")
			}
			return nil, groupsVerb.run(a, d, &desk.GroupsIn{ListIn: *in})
		}
		return d.List(ctx, in)
	},
	flags: func(f *pflag.FlagSet, _ *desk.ListIn) {
		f.Bool("group", false, "by saga, status, reason, step and error, the most first: what is in review, unless something else is said")
	},
	print: (*app).printList, none: "no works match",
	columns: "saga=Saga, work=WorkID, status=Status, reason=Reason, updated=Updated, due=Due, note=Note",
}

var groupsVerb = verb[desk.GroupsIn, desk.Groups]{
	do: (*desk.Desk).Groups, none: "no works match", columns: "works=Count, saga=Saga, status=Status, reason=Reason, step=Step, oldest=Oldest, error=Error",
	print: func(a *app, _ *desk.GroupsIn, g *desk.Groups) {
		if g.More {
			a.sayf("there are more works than were looked at: narrow it")
		}
		if len(g.Items) > 0 && g.Items[0].Status == saga.Review && len(g.Items[0].Filter) > 0 {
			filters := ""
			for _, one := range g.Items[0].Filter {
				filters += " --filter " + quote(one)
			}
			a.sayf("the same for all of the first: amends retry%s --dry-run%s", filters, dbFlag(a.db))
		}
	},
}

// noWorkOrApproval are the arguments of list: none, or approval behind --waiting.
func noWorkOrApproval(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("waiting") && slices.Equal(args, []string{"approval"}) {
		return nil
	}
	return noWork(cmd, args)
}

func (a *app) printList(in *desk.ListIn, l *desk.List[desk.Head]) {
	if a.output != "ids" && len(l.Items) > 0 && in.Status == string(saga.Review) {
		a.sayf("what a reason means: amends help situations; what is safe to do with one: amends show WORK")
	}
	if l.Next != nil && !l.Looked.IsZero() {
		a.sayf("looked as far as the work started at %s; to go on: %s --after %s", a.both(l.Looked), again(a.cmd), *l.Next)
		return
	}
	a.more(l.Next, "after")
}

// printInstance writes a work for people: where it stands and what to do first, then how it came to
// that.
func (a *app) printInstance(_ *desk.ShowIn, v *desk.Instance) {
	s := &v.Summary
	object := ""
	if v.SourceObject != nil {
		object = v.SourceObject.News
	}
	a.fields("work", s.WorkID, "saga", fmt.Sprintf("%s, version %d", s.Saga, s.Version), "status", finding.Status(s.Status, s.Reason),
		"because", v.Because, "started", a.both(s.Started), "cause", s.Cause, "tags", strings.Join(s.Tags, ", "), "updated", a.both(s.Updated), "due", a.both(s.Due),
		"deadline", a.both(s.Deadline)+desk.When(s.DeadlinePassed, ", missed"), "held by", desk.With("session ", v.Session), "waits", v.Waits, "missing", v.Missing,
		"revision", s.Revision, "newer", v.Newer, "object", object,
		"input", desk.Either(s.Input.SHA256 == "", "gone", fmt.Sprintf("%d bytes, sha256 %s", s.Input.Bytes, s.Input.SHA256)), "key", desk.When(s.Key != "", s.Key+" (the root of the steps' keys)"))
	if v.About != nil {
		fmt.Fprintln(a.out, "\nto be decided")
		a.printAbout(v.About)
	}
	fmt.Fprintln(a.out)
	a.printSteps(s)
	section(a, "posted, not yet read by a coordinator", v.PendingSignals, func(s *desk.Signal) string { return a.both(desk.At(s.At)) + ": " + s.Words })
	section(a, "blocked duplicates", v.Duplicates, func(d *desk.Duplicate) string {
		return fmt.Sprintf("%d from %s, first %s, last %s", d.Count, d.Of(), finding.ISO(desk.At(d.First)), a.both(desk.At(d.Last)))
	})
	fmt.Fprintln(a.out, "\nnext")
	if v.Decided != "" {
		a.paragraph("  ", v.Decided)
		return
	}
	a.paragraph("  ", v.Advice)
	d := desk.New(nil, dbFlag(a.db))
	for i := range v.Choices { // each on a line of its own, so that it can be copied
		fmt.Fprintf(a.out, "\n  %s:\n    %s\n", v.Choices[i].When, visible(d.Line(&v.Choices[i], v.ID())))
	}
}

func (a *app) printSteps(s *saga.Summary) {
	g := grid{header: []string{"step", "status", "attempts", "external id", "repeat", "key"}}
	var errors []string
	for _, name := range s.Order {
		step := s.Steps[name]
		g.add(name, a.stepStatus(s, &step), strconv.Itoa(step.Attempts), step.ExternalID, string(step.Repeat), step.Key)
		if step.Error != "" {
			errors = append(errors, name+": "+step.Error)
		}
		if u := step.Undo; u != nil {
			g.add("undo of "+name, u.Status, strconv.Itoa(u.Attempts), "", "", u.Key)
			if u.Error != "" {
				errors = append(errors, "undo of "+name+": "+u.Error)
			}
		}
	}
	a.print(&g)
	section(a, "latest errors", errors, func(e *string) string { return *e })
}

func (a *app) stepStatus(s *saga.Summary, step *saga.StepSummary) string {
	status := step.Status
	if status == string(machine.Ready) && s.Status.Terminal() { // it would sound as if it were still to come
		status = "not done"
	}
	status += desk.When(step.Done && step.Evidence != "" && step.Evidence != string(machine.KindDone), " ("+step.Evidence+")")
	switch back := s.Status == saga.Compensating || s.Status.Terminal(); {
	case step.Status == string(machine.Waiting) && back:
		status = "not done"
	case step.Status == string(machine.Waiting):
		status += " until " + a.both(step.Until)
		for i, what := range step.WaitsFor {
			status += []string{", for ", " or "}[min(i, 1)] + what
		}
	}
	return status + desk.When(step.Unconfirmed, ", unconfirmed")
}

// historyIn says of which work, or of which scope.
type historyIn struct {
	desk.Scope
	Bodies bool `flag:"bodies" doc:"show inputs and results, too"`
}

var historyVerb = verb[historyIn, desk.History]{
	name: "history", args: theWork.named(0, 1),
	check: func(a *app, in *historyIn) error {
		return usage("try: amends history --help", named(a.cmd, &in.Scope, "WORK")...)
	},
	by: func(a *app, d *desk.Desk, ctx context.Context, in *historyIn) (*desk.History, error) {
		if work := a.cmd.Flags().Arg(0); work != "" {
			return d.History(ctx, &desk.HistoryIn{Which: desk.Which{Work: work, Saga: in.Saga}, Bodies: in.Bodies})
		}
		acts, err := d.ScopeActs(ctx, &in.Scope)
		if err == nil {
			err = a.tell(acts, func() { a.printScopeActs(acts) })
		}
		return nil, err
	},
	print: (*app).printHistory,
}

// named says what is wrong with how a command line names works or a scope; work is how it names works.
func named(cmd *cobra.Command, s *desk.Scope, work string) []string {
	args, scopes := cmd.Flags().Args(), s.Named()
	if len(args) > 0 && s.Saga != "" { // it says which of several
		scopes--
	}
	switch {
	case len(args) > 0 && scopes > 0:
		return []string{"name works, or say --destination or --all, not both"}
	case len(args) == 0 && scopes == 0:
		return []string{"say which: " + cmd.CommandPath() + " " + work + ", --destination NAME, --saga NAME or --all"}
	case scopes > 1:
		return []string{"say one of --destination, --saga and --all"}
	}
	return nil
}

func (a *app) printHistory(_ *historyIn, h *desk.History) {
	g := grid{header: []string{"seq", "at", "status", "what happened"}}
	for i := range h.Records {
		r := &h.Records[i]
		g.add(strconv.FormatInt(r.Seq, 10), exact(*r.At), finding.Status(r.Status, r.Reason), r.Words)
		if r.Body != nil && r.Body.Content != nil {
			g.add("", "", "", string(r.Body.Content))
		}
	}
	a.fields("work", h.WorkID, "saga", h.Saga)
	fmt.Fprintln(a.out)
	a.print(&g)
}

func (a *app) printScopeActs(out *desk.ScopeActs) {
	a.fields("scope", out.Scope)
	fmt.Fprintln(a.out)
	if len(out.Acts) == 0 {
		a.paragraph("", "It was never paused or resumed as a whole. Those who paused a work are in the history of that work.")
		return
	}
	a.table(out.Acts, "at=At!, act=Act, who=Actor, why=Reason")
}

var duplicatesVerb = verb[desk.DuplicatesIn, desk.Duplicates]{
	name: "duplicates", args: theWork.named(0, 1), do: (*desk.Desk).Duplicates, none: "no duplicate of a work or an object was blocked",
	columns: "saga=Saga, work=WorkID, source=Source, by=By, blocked=Count, first=First, last=Last",
	print: func(a *app, in *desk.DuplicatesIn, l *desk.Duplicates) {
		if in.Since != "" && len(l.Days) > 0 {
			fmt.Fprintln(a.out)
			a.table(l.Days, "day=Day, by=By, source=Source, blocked=Count")
		}
		if l.More {
			a.sayf("there are older ones: say --limit %d", 10*in.Limit.N)
		}
	},
}

// more tells the command for the next page, if there is one.
func (a *app) more(next *string, flag string) {
	if next != nil {
		a.sayf("there are more; the next page: %s --%s %s", again(a.cmd), flag, quote(*next))
	}
}

var checkVerb = verb[desk.CheckIn, desk.Report]{
	name: "check", args: theWork.named(0, 1),
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.CheckIn) (*desk.Report, error) {
		p := a.progress("works checked")
		defer p.done()
		in.Progress = func(works, records int64, findings int) {
			p.at(works, func() string {
				return fmt.Sprintf("%d works checked, %d records, %d findings so far", works, records, findings)
			})
		}
		r, err := d.Check(ctx, in)
		if err != nil {
			return nil, err
		}
		return r, alarmOf(r)
	},
	print: (*app).printReport,
}

func (a *app) printReport(_ *desk.CheckIn, r *desk.Report) {
	for _, f := range r.Findings {
		a.paragraph("", f.Where)
		a.paragraph("  ", f.What)
		a.paragraph("  ", f.Do)
	}
	a.paragraph("", fmt.Sprintf("%s, %s%s: %s", finding.Count(int(r.Works), "work"), finding.Count(int(r.Records), "record"),
		desk.When(r.Acts > 0, ", "+finding.Count(int(r.Acts), "act")), desk.Either(r.Sound, "sound", finding.Count(len(r.Findings), "finding"))))
	if r.Moving > 0 {
		a.paragraph("", fmt.Sprintf("%s moved all the while; only the chain was verified, not the head. Run it again for those.", finding.Count(int(r.Moving), "work")))
	}
}
