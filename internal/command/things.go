package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
)

// Destinations, what was heard, and what becomes of the database.

var destinationVerb = group{"destination", []maker{
	plain("list", noArguments, (*desk.Desk).Destinations, (*app).printDestinations).exits("end with 6 when one is not healthy"),
	plain("probe", thing{empty: "the name of the destination"}.named(0, many), (*desk.Desk).Probe, (*app).printProbed),
}}

var alertsVerb = group{"alerts", []maker{
	listing("list", noArguments, (*desk.Desk).Alerts, "nothing needs a person", "", "about=About, works=Count, since=Since, told=Told, words=Words"),
	plain("test", noArguments, (*desk.Desk).TestAlert, (*app).printTried),
}}

func (a *app) printTried(_ *desk.TestAlertIn, out *desk.AlertTried) {
	a.then("Stored. A process that runs alerts (package alert) sends it, and within a minute or two that it is over. What became of it:")
	a.paragraph("  ", "amends show "+quote(out.WorkID)+" --saga "+desk.AlertSaga+dbFlag(a.db))
}

func (a *app) printDestinations(_ *desk.Nothing, l *desk.Destinations) {
	if a.paragraphs("", l.Holds...); len(l.Holds) > 0 {
		fmt.Fprintln(a.out)
	}
	if len(l.Items) == 0 {
		a.sayf("no process ever registered a saga on this ledger")
		return
	}
	a.table(l.Items, "destination=Destination, state=State, since=Since, until=Until, waiting=Waiting+, failed=Failed+, parts=Divided, note=Note")
}

func (a *app) printProbed(in *desk.ProbeIn, out *desk.Probed) {
	a.fields("scope", "destination:"+out.Destination, "stands at", out.Stood, "order", "probe", "said by", in.Actor+": "+in.Reason,
		"then", "it is tried within about a second; works that failed there and are due now: "+strconv.Itoa(out.Failed))
	a.then("Stored. To see what came of it:")
	a.paragraph("  ", "amends destination list"+dbFlag(a.db))
}

var inboxVerb = group{"inbox", []maker{
	listing("list", noArguments, (*desk.Desk).Inbox, "no deliveries match", "before",
		"number=Number, received=Received, object=WorkID, topic=Topic, version=Version, times=Copies, disposition=Became, because=Reason"),
	plain("show", oneNumber, (*desk.Desk).Delivery, (*app).printHearing),
	listing("objects", thing{kind: "object", empty: "the object"}.named(0, 1), (*desk.Desk).Objects, "no objects match", "after",
		"object=WorkID, version=Version, state=State, owed=Owed, due=Due, failed=Failed, because=Because"),
	listing("counts", noArguments, (*desk.Desk).Counts, "nothing was heard", "", "source=Source, disposition=Became, count=Count, last=Last, meaning=Meaning"),
	inboxReplayVerb,
	plain("release", theSource.named(0, many), (*desk.Desk).LetThrough, (*app).printEndedHold),
	plain("drop", theSource.named(0, many), (*desk.Desk).Drop, (*app).printEndedHold),
}}

var theSource = thing{empty: "the name of the source"}

func oneNumber(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("amends inbox list shows the numbers; try: "+cmd.CommandPath()+" --help", "name one delivery by its number: "+cmd.CommandPath()+" NUMBER")
	}
	_, wrong := numbersOf(args)
	if len(wrong) > 0 {
		return usage("amends inbox list shows the numbers; for an object: amends inbox list --object "+quote(args[0]), wrong...)
	}
	return nil
}

// numbersOf reads the numbers of deliveries.
func numbersOf(args []string) (numbers []int64, wrong desk.Wrong) {
	for _, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		wrong.If(err != nil || n < 1, fmt.Sprintf("%q is no number of a delivery", arg))
		numbers = append(numbers, n)
	}
	return numbers, wrong
}

// printHearing writes a delivery for people: what it is, what became of it, and what to do.
func (a *app) printHearing(_ *desk.DeliveryIn, h *desk.Hearing) {
	copies := desk.When(h.Copies > 1, fmt.Sprintf("%d, the latest %s", h.Copies, a.both(desk.At(h.Last))))
	a.fields("delivery", strconv.FormatInt(h.Number, 10), "object", h.WorkID, "said", h.Said, "received", a.both(desk.At(h.Received)),
		"copies", copies, "signed", desk.With("with the secret named ", h.SignedBy), "body", h.Body.String(),
		"judged", h.Became(), "", desk.When(h.ProcessedAt != nil, h.Meaning), "because", h.Reason, "judged", a.both(desk.At(h.ProcessedAt)))
	a.printEntry(h.Entry)
	fmt.Fprintln(a.out, "\nworks named "+visible(h.WorkID))
	a.paragraphs("  ", desk.When(len(h.Works) == 0, "None was started."))
	for i := range h.Works {
		w := &h.Works[i]
		a.paragraph("  ", fmt.Sprintf("%s: %s", w.Saga, finding.Status(w.Status, w.Reason))+desk.With(", for revision ", w.Revision))
		fmt.Fprintf(a.out, "    %s\n", visible(h.Shows[i]))
	}
	a.printBody("body of the delivery", h.Body)
	if h.Entry != nil {
		a.printBody("accepted state of the object", h.Entry.Body)
	}
	fmt.Fprintln(a.out, "\nnext")
	a.paragraph("  ", h.Advice)
	if h.Command != "" {
		fmt.Fprintf(a.out, "\n    %s\n", visible(h.Command))
	}
}

// printEntry tells what is known of an object now.
func (a *app) printEntry(e *desk.Entry) {
	fmt.Fprintln(a.out, "\nthe object now")
	if e == nil {
		a.paragraph("  ", "Nothing is known of it.")
		return
	}
	held := desk.When(e.LeaseHolder != "", "held by "+e.LeaseHolder+" until "+finding.ISO(desk.At(e.LeasedUntil)))
	failed := desk.When(e.Error != e.Blocked, desk.With(fmt.Sprintf("failed %s: ", finding.Count(e.FailedAttempts, "time")), e.Error))
	a.paragraphs("  ", e.Is, desk.With("owed: ", e.Owed), desk.With("due: ", a.both(desk.At(e.Due))), held, failed, desk.With("blocked: ", e.Blocked))
}

// printBody writes a body that is shown.
func (a *app) printBody(what string, b *desk.Body) {
	if b != nil && b.Content != nil {
		fmt.Fprintln(a.out, "\n"+what)
		a.paragraph("  ", string(b.Content))
	}
}

var inboxReplayVerb = verb[desk.ReplayIn, desk.Replayed]{
	name: "replay",
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.ReplayIn) (*desk.Replayed, error) {
		in.Numbers, in.Wrong = numbersOf(a.cmd.Flags().Args())
		return d.Replay(ctx, in)
	},
	print: (*app).printReplayed,
}

func (a *app) printReplayed(_ *desk.ReplayIn, out *desk.Replayed) {
	if out.Deliveries == 0 {
		a.sayf("no deliveries match; nothing was replayed")
		return
	}
	a.fields("selected", fmt.Sprintf("%s of %s", desk.Counted(out.Deliveries, "delivery", "deliveries"), finding.Count(out.Objects, "object")),
		"judged", out.Judged(), "said by", out.Actor+": "+out.Reason)
	if out.DryRun {
		a.then("Dry run: nothing was changed.")
		return
	}
	a.then(fmt.Sprintf("Replayed: %s through the gate again as soon as a process that hears runs. What waits for it:",
		desk.Counted(out.Replayed, "delivery goes", "deliveries go")))
	a.paragraph("  ", "amends inbox list --pending"+dbFlag(a.db))
}

func (a *app) printEndedHold(_ *desk.HoldIn, out *desk.EndedHold) {
	if out.Withdrawals == 0 {
		a.sayf("no withdrawal of %s is held; nothing was done", out.Source)
		return
	}
	a.fields("held", finding.Count(int(out.Withdrawals), "withdrawal")+" of "+out.Source, "order", out.Act, "said by", out.Actor+": "+out.Reason)
	a.then(out.Then())
}

func (a *app) printCaughtUp(_ *desk.Nothing, out *desk.CaughtUp) {
	if out.Works+out.Sessions == 0 {
		a.sayf("nothing is ahead of the clock, nothing was changed")
		return
	}
	a.paragraph("", fmt.Sprintf("%s due now, %s ends in its own time", finding.Count(int(out.Works), "work"), finding.Count(int(out.Sessions), "lease")))
}

func (a *app) printRecovered(_ *desk.RecoverIn, out *desk.Recovered) {
	if out.LastAlive != nil {
		a.paragraph("", "A process was alive at "+finding.ISO(*out.LastAlive)+" the last time, as far as the ledger knows.")
	}
	for i := range out.Works {
		a.paragraph("", out.Works[i].Words())
	}
	a.paragraph("", desk.Either(out.Act == "nothing-lost", "They go on as they stand.", "Other steps that are not done are looked up, or sent again "+
		"under the same key. What was started later is not in the ledger: before a process runs, amends reconcile rebuild JOB, for each job that compares."))
	if out.DryRun {
		a.sayf("nothing was changed")
	}
}

var versionVerb = verb[desk.Nothing, desk.Version]{
	name: "version", args: noArguments, free: true, do: (*desk.Desk).Version,
	print: func(a *app, _ *desk.Nothing, v *desk.Version) {
		a.fields("amends", v.Version, "commit", desk.When(v.Commit != "", v.Commit+" of "+v.Date), "go", v.Go+" "+v.Platform,
			"schema", fmt.Sprintf("postgres %d, sqlite %d", v.Schema.Postgres, v.Schema.SQLite), "stable", stable)
	},
}

// stable is the promise that CHANGELOG.md makes.
const stable = "the JSON is " + desk.API + ": fields are added, none is renamed or removed. From v0.1.0 on every version reads the ledgers of those before it"

// versionLine is what --version prints.
func versionLine() string { return "amends version " + desk.ThisVersion().Version + "\n" + stable }
