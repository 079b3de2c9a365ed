package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/plan"
)

// What differs, and what people decide about it.

var driftVerb = group{
	use:   "drift",
	short: "Show the differences that last, and decide on them",
	long: `Show what reconciliations found and what is still so: since when, how often in a row, and what is proposed; and decide
on what is for a person. A difference that is gone is gone from here, too; the plans tell what was.

A decision is on the finding as it was shown. It is on record with who and why before anything is done, and what is done is done after
one more look: where it is not so any more, nothing is. It holds until the document or its object changes.`,
	example: `  amends drift list --times 3                      # what three runs in a row have found, and what can be decided
  amends drift accept orders shop:order:10492 --reason "agreed with the customer by telephone"
  amends drift ours orders --class diverged --dry-run --reason INC-77`,
	verbs: []maker{
		driftListVerb, driftDecidedVerb,
		decision{
			plan.Accept, "What stands is right, until it or its object changes",
			`Say that what stands is right, though it is not what it should be: the comparison leaves it alone until the document or its
object changes, or until --until. What the ledger does not know yet is adopted as it is, so that no webhook makes it again.`,
			`  amends drift accept orders shop:order:10492 --reason "agreed with the customer by telephone"
  amends drift accept orders --class adopt-mismatch --reason "the old system's invoices stay as they are"`,
		},
		decision{
			plan.Hide, "Leave it alone until a time",
			`Leave a difference alone until --until, without saying what is right. The first comparison behind that time finds
it again, and an earlier one if it changes.`,
			`  amends drift ignore orders shop:order:10492 --until 2026-12-24 --reason "the customer is asked"`,
		},
		decision{
			plan.Remake, "Have a document made again that is gone",
			`Have the instance run once more, so that it makes the document that is gone. A mail that was sent is not sent again.`,
			`  amends drift again orders shop:order:10492 --reason "it was deleted by mistake"`,
		},
		decision{
			plan.Ours, "Have what it should say written over it",
			`Have the instance write over the document what it should say. What the ledger does not know yet is adopted first. A document
that is posted or paid is not written over.`,
			`  amends drift ours orders shop:order:10492 --reason "nothing was agreed with the customer"`,
		},
		decision{
			plan.Keep, "Keep one of several documents, and void the others",
			`Keep one of several documents under one key, and have the others voided, by the program's Destination.Void. If the ledger made one of
them, that one is kept.`,
			`  amends drift keep orders shop:order:10492 --document inv_5530 --reason "the old script ran twice"`,
		},
		decision{
			plan.Void, "Undo what stands",
			`Have what stands undone: by its instance where that made it, else the document is voided by the program's Destination.Void. A document that is
posted or paid is not voided.`,
			`  amends drift undo orders shop:order:10492 --reason "the order was a test"`,
		},
		decision{
			plan.Reopen, "Say that what was decided does not hold any more",
			`Take an earlier decision back: the next comparison finds the difference again. What was carried out stays so.`,
			`  amends drift reopen orders shop:order:10492 --reason "the customer called again"`,
		},
	},
}

var driftListVerb = verb[desk.DriftIn, desk.Drifts]{
	use: "list [flags]", args: noArguments,
	short: "List differences, those that last longest first",
	long: `List the differences that the latest runs of jobs have found, those first that were found first: since when they are
known, how many runs in a row found them, what is to be done and what is proposed to a person.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is what to give to --after, null on the last page.`,
	example: `  amends drift list --job orders
  amends drift list --class duplicate
  amends drift list --times 3 --exit-code          # 6 when anything lasts: for a monitor
  amends drift list -o json | jq -r '.items[] | [.key, .class, .firstAt] | @tsv'`,
	do:   (*desk.Desk).Drifts,
	none: "no differences match", next: "after",
	columns: "job=Job, key=Key, class=Class, since=First, times=Times, to be done=Do, why=Why, proposal=Propose, decide=Takes", alarm: "end with 6 when there are any",
}

var driftDecidedVerb = verb[desk.DecisionsIn, desk.List[desk.DecidedOn]]{
	use: "decided JOB [flags]", args: oneJob,
	short: "List what was decided, and what became of it",
	long: `List what was decided on the findings of a job, the latest decision on each key, in the order of their keys: by whom and why, until when it
holds, and what became of what was carried out. What is older is in: amends acts.`,
	example: `  amends drift decided orders
  amends drift decided orders --key shop:order:10492`,
	do:   (*desk.Desk).Decisions,
	none: "nothing was decided", next: "after",
	columns: "key=Key, class=Class, decided=Verdict, at=At, by=Actor, reason=Reason, until=Until, became=Became, finding=Finding",
}

// decision is a verb that decides on findings.
type decision struct {
	verdict plan.Verdict

	short, long, example string
}

func (v decision) on(a *app) *cobra.Command {
	in := &desk.DecideIn{Verdict: string(v.verdict)}
	about := "(KEY | --class CLASS)"
	unsaid := []string{"document", "until"}
	switch v.verdict { //nolint:exhaustive // the others say nothing of their own
	case plan.Accept:
		unsaid = unsaid[:1]
	case plan.Hide:
		about, unsaid = about+" --until TIME", unsaid[:1]
	case plan.Keep:
		about, unsaid = "KEY --document ID", []string{"class", "until"}
	case plan.Reopen:
		about, unsaid = "KEY", append(unsaid, "class", "finding", "wait", "no-wait")
	}
	long := v.long
	if v.verdict != plan.Reopen && v.verdict != plan.Hide {
		long += "\n\n" + requestHelp
	}
	cmd := &cobra.Command{Use: fmt.Sprintf("%s JOB %s --reason WHY [flags]", v.verdict, about), Short: v.short, Long: long, Example: v.example, Args: jobAndKey}
	bind(cmd.Flags(), in)
	for _, name := range unsaid { // it is refused with its reason
		cmd.Flags().Lookup(name).Hidden = true
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.prepare(cmd, in)
		in.Job, in.Key = args[0], strings.Join(args[1:], "")
		defer a.follow(&in.RequestIn)()
		return a.at(cmd.Context(), func(d *desk.Desk) error {
			out, err := d.Decide(cmd.Context(), in)
			if out == nil {
				return err
			}
			return cmp.Or(a.tell(out, func() { a.printDecided(in, out) }), err)
		})
	}
	return cmd
}

// jobAndKey wants a job, and may have the key of a finding.
func jobAndKey(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage("amends drift list shows the findings of jobs; try: "+cmd.CommandPath()+" --help", "name the job: "+cmd.CommandPath()+" JOB KEY")
	case len(args) > 2:
		return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s takes a job and one key, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " ")))
	}
	if err := said("the name of the job", args[0]); err != nil {
		return err
	}
	return said("the key", args[1:]...)
}

func (a *app) printDecided(in *desk.DecideIn, out *desk.Decided) {
	for i := range out.Items {
		d := &out.Items[i]
		a.fields("key", d.Key, "was", string(d.Class), "finding", d.Finding, "decided", d.Verdict+", "+d.Actor+": "+d.Reason, "then", d.Then, "became", d.Became())
	}
	if out.Left > 0 {
		a.sayf("%s of the class %s no such decision: amends drift list --job %s --class %s", finding.Count(out.Left, "finding"), takes(out.Left), quote(in.Job), quote(in.Class))
	}
	switch {
	case out.DryRun:
		a.paragraph("", "Dry run: nothing was stored.")
	case out.Run != nil && out.Run.Open():
		a.paragraph("", "Stored. A process that has the job carries it out; what became of it: amends drift decided "+quote(in.Job)+dbFlag(a.db))
	case out.Run == nil && len(out.Items) > 0:
		a.paragraph("", "Stored.")
	}
}

func takes(n int) string {
	if n == 1 {
		return "takes"
	}
	return "take"
}
