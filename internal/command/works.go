package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What is read of works.

var statusVerb = verb[desk.StatusIn, desk.Status]{
	use: "status [flags]", args: noWork,
	short: "Is anything running, and does everything move?",
	long: `Say which coordinators run and what they know, and what does not move: works that wait for a definition which none of
them knows, live works whose latest record is old although they are held or overdue, what is dated later than the
ledger's clock, a database without a witness that would notice a restore, or that a reader keeps from cleaning up,
destinations that are not healthy or of whose limit half serves none, what is paused, what a person has while its
deadline has passed, genuine webhooks of the last 24 hours that could not be read or named no object, sources whose clock
is ahead, withdrawals that are held, and works of one saga that wait for one message. amends help situations has a section
for each. What waits for a person is counted, and no finding: amends list --review, amends list --status paused. So is
what waits for a time, an answer or a decision: amends list --waiting.`,
	example: `  amends status
  amends status --still 1h
  amends status --exit-code || page-on-call   # 6: something does not move
  amends status -o json | jq .findings`,
	do: (*desk.Desk).Status, print: (*app).printStatus, alarm: "end with 6 when something does not move",
}

func (a *app) printStatus(_ *desk.StatusIn, s *desk.Status) {
	a.fields("clock", finding.ISO(*s.At)+" (the ledger's)", "running", finding.Count(len(s.Sessions), "coordinator"))
	if len(s.Sessions) > 0 {
		fmt.Fprintln(a.out)
		a.table(s.Sessions, "session=Session, process=Label, opened=Opened, lease until=Expires, holds=Holds, knows=Runs")
	}
	fmt.Fprintln(a.out)
	if len(s.Findings) == 0 {
		a.paragraph("", "Everything moves.")
	}
	for _, f := range s.Findings {
		a.paragraph("", f.Words)
		a.paragraph("  ", f.Next)
	}
	works := func(n int, are string) (words []string) {
		if n > 0 {
			words = []string{finding.Works(int64(n)) + are}
		}
		return words
	}
	decide := append(works(s.Review, " in review (amends list --review)"), works(s.Paused, " paused (amends list --status paused)")...)
	a.paragraphs("", desk.With("For a person to decide: ", strings.Join(decide, ", ")),
		desk.With("Waiting for a time, an answer or a decision: ", strings.Join(works(s.Waiting, " (amends list --waiting; decisions: amends approvals)"), "")))
	if s.Retrying > 0 {
		a.paragraph("", fmt.Sprintf("Tried again by themselves: %d (amends list --status retrying)", s.Retrying))
	}
}

func noWork(cmd *cobra.Command, args []string) error {
	if err := worksSaid(cmd, args); err != nil {
		return err
	}
	if len(args) > 0 {
		return usage("one work is shown by: "+program.Command("show", args[0], "")+"; those that begin alike by: amends list --prefix "+quote(args[0]),
			cmd.CommandPath()+" takes no work")
	}
	return nil
}

var listVerb = single(func(a *app) *cobra.Command {
	cmd := verb[desk.ListIn, desk.List[desk.Head]]{
		use: "list [flags]", args: noWorkOrApproval,
		short: "List works, oldest first",
		long: `List works in the order in which they were started, or with --prefix in that of their ids.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is what to give to --after with the same filters, null on the last page. Works that have ended are looked through
ten thousand at a time: a page may have few of them, or none, and says how far it looked.

With -o ids it prints a line for each, as the verbs that take several works read them from standard input: the work id, the saga and
the run that it is at ("-" where its source has no versions), with a tab between them.`,
		example: `  amends list --review                           # what waits for a person
  amends list --reason in-doubt --saga order-to-invoice
  amends list --prefix shop:order:104 --limit 20
  amends list --external-id inv_5530             # who made inv_5530?
  amends list --status retrying -o json | jq -r '.items[].workId'
  amends list --status compensated --since 24h --newest
  amends list --reason exhausted -o ids | amends retry - --reason "the books are back"`,
		do: (*desk.Desk).List, print: (*app).printList, none: "no works match",
		columns: "saga=Saga, work=WorkID, status=Status, reason=Reason, updated=Updated, due=Due, note=Note",
	}.on(a)
	all, approvals := cmd.RunE, approvalsVerb.on(a)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return approvals.RunE(cmd, nil)
		}
		return all(cmd, args)
	}
	return cmd
})

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

var showVerb = verb[desk.ShowIn, desk.Instance]{
	use: "show WORK [flags]", args: atMostOneWork,
	short: "Show one work: its input, its steps, and what is safe to do next",
	long: `Show one work: what came in (hash and size; of the input itself only what an approval says about it, while
people decide), what was attempted step by step, what succeeded with which external ids, what was said to it
and is not yet read, how many duplicates were blocked, and what is safe to do next. Where the work is named
by an object that webhooks spoke of, "object" is its accepted version, and what is owed to it.

A step's KEY is the idempotency key the destination was given: look for it in the destination's own log.`,
	example: `  amends show shop:order:10492
  amends show shop:order:10492 --saga order-to-invoice
  amends show --external-id inv_5530             # who made inv_5530?
  amends show shop:order:10492 -o json | jq -r .steps.invoice.externalId`,
	do: (*desk.Desk).Show, print: (*app).printInstance,
}

// printInstance writes a work for people: where it stands and what to do first, then how it came to
// that.
func (a *app) printInstance(_ *desk.ShowIn, v *desk.Instance) {
	s := &v.Summary
	deadline, object := a.both(s.Deadline), ""
	if s.Overdue {
		deadline += ", missed"
	}
	if v.Heard != nil {
		object = v.Heard.News
	}
	a.fields("work", s.WorkID, "saga", fmt.Sprintf("%s, version %d", s.Saga, s.Version), "status", finding.Status(s.Status, s.Reason),
		"because", v.Because, "started", a.both(s.Started), "cause", s.Cause, "updated", a.both(s.Updated), "due", a.both(s.Due),
		"deadline", deadline, "held by", desk.With("session ", v.Session), "waits", v.Waits, "missing", v.Missing,
		"revision", s.Revision, "newer", v.Newer, "object", object,
		"input", fmt.Sprintf("%d bytes, sha256 %s", s.Input.Bytes, s.Input.Hash), "key", s.Key+" (the root of the steps' keys)")
	if v.About != nil {
		fmt.Fprintln(a.out, "\nto be decided")
		a.printAbout(v.About)
	}
	fmt.Fprintln(a.out)
	a.printSteps(s)
	if len(v.Signals) > 0 {
		fmt.Fprintln(a.out, "\nposted, not yet read by a coordinator")
		for i := range v.Signals {
			a.paragraph("  ", a.both(desk.At(v.Signals[i].At))+": "+v.Signals[i].Words)
		}
	}
	if len(v.Duplicates) > 0 {
		fmt.Fprintln(a.out, "\nblocked duplicates")
		for i := range v.Duplicates {
			d := &v.Duplicates[i]
			a.paragraph("  ", fmt.Sprintf("%d from %s, first %s, last %s", d.Count, d.Of(), finding.ISO(desk.At(d.First)), a.both(desk.At(d.Last))))
		}
	}
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
	if len(errors) > 0 {
		fmt.Fprintln(a.out, "\nlatest errors")
		for _, e := range errors {
			a.paragraph("  ", e)
		}
	}
}

func (a *app) stepStatus(s *saga.Summary, step *saga.StepSummary) string {
	status := step.Status
	if status == string(machine.Ready) && s.Status.Terminal() { // it would sound as if it were still to come
		status = "not done"
	}
	if step.Done && step.Evidence != "" && step.Evidence != string(machine.KindDone) {
		status += " (" + step.Evidence + ")"
	}
	switch back := s.Status == saga.Compensating || s.Status.Terminal(); {
	case step.Status == string(machine.Waiting) && back:
		status = "not done"
	case step.Status == string(machine.Waiting):
		status += " until " + a.both(step.Until)
		for i, what := range step.WaitsFor {
			status += []string{", for ", " or "}[min(i, 1)] + what
		}
	}
	if step.Unconfirmed {
		status += ", unconfirmed"
	}
	return status
}

var historyVerb = single(func(a *app) *cobra.Command {
	var in struct {
		desk.Scope
		Bodies bool `flag:"bodies" doc:"show inputs and results, too"`
	}
	cmd := &cobra.Command{
		Use: "history (WORK | --destination NAME | --saga NAME | --all) [flags]", Aliases: []string{"timeline"}, Args: atMostOneWork,
		Short: "Show everything that happened to a work, record by record",
		Long: `Show the chain of a work: one line a record, and one record a decision. A record says what was learned
("invoice #2 unknown" is: the outcome of the second attempt of step invoice is unknown), and behind the arrow
which attempt it set in motion, with its deadline and its idempotency key. Attempts with the same key are the
same intent.

Inputs and results are not shown, only their size and hash. --bodies shows them; mind who is looking.

Without a WORK: who paused and resumed a destination, a saga or everything, when and why, the newest 100 first.`,
		Example: `  amends history shop:order:10492
  amends history shop:order:10492 -o json | jq -r '.records[] | [.at, .kind, .step] | @tsv'
  amends history shop:order:10492 --bodies
  amends history --destination books`,
	}
	bind(cmd.Flags(), &in)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := named(cmd, &in.Scope, args, "WORK"); len(wrong) > 0 {
			return usage("try: amends history --help", wrong...)
		}
		return a.at(cmd.Context(), func(d *desk.Desk) error {
			if len(args) == 0 {
				return read(a, d.ScopeActs, cmd.Context(), &in.Scope, a.printScopeActs)
			}
			of := &desk.HistoryIn{Which: desk.Which{Work: args[0], Saga: in.Saga}, Bodies: in.Bodies}
			return read(a, d.History, cmd.Context(), of, a.printHistory)
		})
	}
	return cmd
})

// read reads a document and tells it.
func read[In, Out any](a *app, do func(context.Context, *In) (*Out, error), ctx context.Context, in *In, print func(*Out)) error {
	out, err := do(ctx, in)
	if err != nil {
		return err
	}
	return a.tell(out, func() { print(out) })
}

// named says what is wrong with how a command line names works or a scope; work is how it names works.
func named(cmd *cobra.Command, s *desk.Scope, args []string, work string) (wrong []string) {
	scopes := s.Named()
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

func (a *app) printHistory(h *desk.History) {
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
	use: "duplicates [WORK] [flags]", args: atMostOneWork,
	short: "Count the duplicates that were blocked, most recent first",
	long: `Count the duplicates that were blocked, wherever that was: starts of a work that was known already and got its
recorded result instead of a second run (start), copies of a webhook that had come before (receiver), and webhooks of a
version that was known or older (version). They are counted by work and by who sent them; starts are written about once
a second. Of webhooks the newest 100,000 are looked at, or those of the work, and none with --saga: they are of no saga.`,
	example: `  amends duplicates                              # who sends things twice?
  amends duplicates shop:order:10492
  amends duplicates --prefix shop: -o json | jq '[.items[].count] | add'`,
	none:    "no duplicate was blocked",
	columns: "saga=Saga, work=WorkID, source=Source, by=By, blocked=Count, first=First, last=Last",
	do:      (*desk.Desk).Duplicates,
	print: func(a *app, in *desk.DuplicatesIn, l *desk.Duplicates) {
		if l.More {
			a.sayf("there are older ones: say --limit %d", 10*in.Limit.N)
		}
	},
}

var actsVerb = verb[desk.ActsIn, desk.List[desk.Deed]]{
	use: "acts [flags]", args: noArguments,
	short: "List what people did, latest first",
	long: `List what people did, latest first: what they said to a work, what they paused, resumed and probed, the withdrawals
they released and dropped, the runs of jobs they asked for, and whose inputs and results they looked at in the console. What becomes of it is in the history of each work.`,
	example: `  amends acts
  amends acts --before 2026-11-20 --limit 200
  amends acts -o json | jq -r '.items[] | [.at, .actor, .act, .workId] | @tsv'`,
	do:   (*desk.Desk).Acts,
	none: "no person did anything", columns: "at=At, who=Actor, act=Act, what=About, why=Reason", next: "before",
}

// more tells the command for the next page, if there is one.
func (a *app) more(next *string, flag string) {
	if next != nil {
		a.sayf("there are more; the next page: %s --%s %s", again(a.cmd), flag, quote(*next))
	}
}

var checkVerb = verb[desk.CheckIn, desk.Report]{
	use: "check [WORK] [flags]", args: atMostOneWork,
	short: "Verify every chain and every head of the ledger",
	long: `Verify the ledger: every chain is read from its first record, every hash is computed again, every record must be
one the rules allow where it stands, and every head must show what its chain says. No two works may claim to have
made the same thing, and nothing may be later than the ledger's clock. Without WORK and flags it reads what people
did as well, of which none may be edited or missing ("act 7"). It changes nothing and may run beside coordinators.

Findings end the command with 6, always: a damaged ledger is never a success. One thing it cannot find: a
record, or an act, that was rewritten together with all later hashes of its chain.`,
	example: `  amends check
  amends check shop:order:10492
  amends check --saga order-to-invoice -o json | jq '.findings[].workId'`,
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
	resolution := "sound"
	if !r.Sound {
		resolution = finding.Count(len(r.Findings), "finding")
	}
	seen := finding.Count(int(r.Works), "work") + ", " + finding.Count(int(r.Records), "record")
	if r.Acts > 0 {
		seen += ", " + finding.Count(int(r.Acts), "act")
	}
	a.paragraph("", seen+": "+resolution)
	if r.Moving > 0 {
		a.paragraph("", fmt.Sprintf("%s moved all the while; only the chain was verified, not the head. Run it again for those.", finding.Count(int(r.Moving), "work")))
	}
}
