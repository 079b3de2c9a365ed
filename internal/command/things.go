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

var destinationVerb = group{
	use:   "destination",
	short: "What the sagas talk to: does it work, and who holds it?",
	long: `A destination is what a step talks to: what its definition names with To, or one of its own, as in
order-to-invoice/invoice. Every process obeys its state, which is kept in the ledger.`,
	example: `  amends destination list
  amends destination probe books --reason "they say that it is mended"`,
	verbs: []maker{destinationListVerb, destinationProbeVerb},
}

var destinationListVerb = verb[desk.Nothing, desk.Destinations]{
	use: "list [flags]", args: noArguments,
	short: "List destinations: which work, which fail, and what waits",
	long: `List the destinations of all definitions that the ledger has seen, each with its state:

  healthy  works that want it are sent there
  limited  it asked to be left alone until then (429, 503)
  failing  twenty in a row failed that never failed there before, or five within more than two minutes: "note" says
           so. One attempt at a time, soon only every minute, finds out when it is back: "until" is the time of the next
  paused   a person holds it; it ends with: amends resume --destination NAME

While it is not healthy, what wants it waits, going forward or back, and spends neither attempts nor a key's window. What
keeps failing beside others that are served says nothing of the destination: it is tried again, one send in ten is kept
for it, and it spends its policy. "waiting" counts works that wait in the ledger to be sent, and "failed" those that wait
for another try (--waits-for retry:NAME), both up to a thousand; parts are those of its limit, and who has how many; "note" says which
of its slots requests without an answer hold, and until when. When
it is mended: amends destination probe NAME.`,
	example: `  amends destination list
  amends destination list --exit-code || page-on-call   # 6: one is not healthy
  amends pause --destination books --reason "they are being moved"`,
	do: (*desk.Desk).Destinations, print: (*app).printDestinations, alarm: "end with 6 when one is not healthy",
}

func (a *app) printDestinations(_ *desk.Nothing, l *desk.Destinations) {
	for _, words := range l.Holds {
		a.paragraph("", words)
	}
	if len(l.Holds) > 0 {
		fmt.Fprintln(a.out)
	}
	if len(l.Items) == 0 {
		a.sayf("no process ever registered a saga on this ledger")
		return
	}
	a.table(l.Items, "destination=Destination, state=State, since=Since, until=Until, waiting=Waiting+, failed=Failed+, parts=Divided, note=Note")
}

var destinationProbeVerb = verb[desk.ProbeIn, desk.Probed]{
	use: "probe NAME --reason WHY [flags]", args: anyNamed("the name of the destination"),
	short: "Try a destination now, whatever it asked for and however often it failed",
	long: `Try a destination now: you know that it is mended, or want to know. What failed there before is due at once, and so is a
destination that asked to be left alone. Where it still fails, one attempt is made, and the waits are as before. Every
process learns of it within about a second.`,
	example: `  amends destination probe books --reason "they say that it is mended"`,
	do:      (*desk.Desk).Probe, print: (*app).printProbed,
}

func (a *app) printProbed(in *desk.ProbeIn, out *desk.Probed) {
	a.fields("scope", "destination:"+out.Destination, "stands at", out.Stood, "order", "probe", "said by", in.Actor+": "+in.Reason,
		"then", "it is tried within about a second; works that failed there and are due now: "+strconv.Itoa(out.Failed))
	fmt.Fprintln(a.out)
	a.paragraph("", "Stored. To see what came of it:")
	a.paragraph("  ", "amends destination list"+dbFlag(a.db))
}

var inboxVerb = group{
	use:   "inbox",
	short: "Show and replay what was heard from sources of truth",
	long: `Show what was heard from sources of truth: webhooks that were verified and stored, what the gate made of each,
and what is known of the objects they speak of.

A delivery is one webhook about one object. The gate judges it once, and says why. What it accepts, and what a
source answers when it is asked, becomes the accepted state of the object, and that state becomes a work: its id is
the object, written as SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID; a colon within a part is written %3A.`,
	example: `  amends inbox list --object shop:order:10492      # what did we hear about the order?
  amends inbox show 4711                           # one delivery: why it did what it did
  amends inbox objects --blocked                   # what waits for a person
  amends inbox replay 4711 --reason "the books are back" --dry-run
  amends inbox release shop --reason "the shop closes"   # withdrawals that are held, see docs/reconciling.md`,
	verbs: []maker{inboxListVerb, inboxShowVerb, inboxObjectsVerb, inboxCountsVerb, inboxReplayVerb, inboxReleaseVerb, inboxDropVerb},
}

var inboxListVerb = verb[desk.InboxIn, desk.List[desk.Delivery]]{
	use: "list [flags]", args: noArguments,
	short: "List deliveries, newest first",
	long: `List the deliveries that were verified and stored, the newest first, with what the gate made of each and why.
Copies of one event are one delivery. Those that the gate has not seen yet are "to be judged".

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is the number to give to --before, null on the last page.`,
	example: `  amends inbox list --object shop:order:10492
  amends inbox list --source shop --disposition malformed --since 24h
  amends inbox list --pending                      # stored and not yet judged
  amends inbox list --since 1d -o json | jq -r '.items[] | [.number, .workId, .disposition] | @tsv'`,
	do:   (*desk.Desk).Inbox,
	none: "no deliveries match", next: "before",
	columns: "number=Number, received=Received, object=WorkID, topic=Topic, version=Version, times=Copies, disposition=Became, because=Because",
}

var inboxShowVerb = verb[desk.DeliveryIn, desk.Hearing]{
	use: "show NUMBER [flags]", args: oneNumber,
	short: "Show one delivery: what became of it, and what is safe to do next",
	long: `Show one delivery: what the gate made of it and why, what is known of its object now, the works that are named by
the object, and what is safe to do next.

Bodies are not shown, only their size and hash. --bodies shows them; they may hold personal data, so mind who is
looking.`,
	example: `  amends inbox show 4711
  amends inbox show 4711 -o json | jq -r .next
  amends inbox show 4711 --bodies`,
	do: (*desk.Desk).Delivery, print: (*app).printHearing,
}

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
func numbersOf(args []string) (numbers []int64, wrong []string) {
	for _, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || n < 1 {
			wrong = append(wrong, fmt.Sprintf("%q is no number of a delivery", arg))
		}
		numbers = append(numbers, n)
	}
	return numbers, wrong
}

// printHearing writes a delivery for people: what it is, what became of it, and what to do.
func (a *app) printHearing(_ *desk.DeliveryIn, h *desk.Hearing) {
	copies, meaning := "", ""
	if h.Copies > 1 {
		copies = fmt.Sprintf("%d, the latest %s", h.Copies, a.both(desk.At(h.Last)))
	}
	if h.Judged != nil {
		meaning = h.Meaning
	}
	a.fields("delivery", strconv.FormatInt(h.Number, 10), "object", h.WorkID, "said", h.Said, "received", a.both(desk.At(h.Received)),
		"copies", copies, "signed", desk.With("with the secret named ", h.Secret), "body", h.Body.String(),
		"judged", h.Became(), "", meaning, "because", h.Because, "judged", a.both(desk.At(h.Judged)))
	a.printEntry(h.Entry)
	fmt.Fprintln(a.out, "\nworks named "+visible(h.WorkID))
	if len(h.Works) == 0 {
		a.paragraph("  ", "None was started.")
	}
	for i := range h.Works {
		w := &h.Works[i]
		words := fmt.Sprintf("%s: %s", w.Saga, finding.Status(w.Status, w.Reason))
		if w.Revision != "" {
			words += ", for revision " + w.Revision
		}
		a.paragraph("  ", words)
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
	held, failed := "", ""
	if e.Holder != "" {
		held = "held by " + e.Holder + " until " + finding.ISO(desk.At(e.Until))
	}
	if e.Error != e.Blocked {
		failed = desk.With(fmt.Sprintf("failed %s: ", finding.Count(e.Attempts, "time")), e.Error)
	}
	a.paragraphs("  ", e.Is, desk.With("owed: ", e.Owed), desk.With("due: ", a.both(desk.At(e.Due))), held, failed, desk.With("blocked: ", e.Blocked))
}

// printBody writes a body that is shown.
func (a *app) printBody(what string, b *desk.Body) {
	if b != nil && b.Content != nil {
		fmt.Fprintln(a.out, "\n"+what)
		a.paragraph("  ", string(b.Content))
	}
}

var inboxObjectsVerb = verb[desk.ObjectsIn, desk.List[*desk.Entry]]{
	use: "objects [OBJECT] [flags]", args: atMostOne("object", "OBJECT", "the object", false, ""),
	short: "List objects that were heard of, and what is owed to them",
	long: `List the objects that were heard of, in the order of their names: the accepted version, what is owed to each, and
when a process works on it next.

"fetch" means that the source is to be asked, "deliver" that the accepted state is to be handed over to become a
work, "pending" that changes wait for one that has not come. All go on by themselves. "blocked" is what waits for a
person: mend the cause, then replay the object's deliveries. "held" is a withdrawal beyond the bound of its source: it
waits for amends inbox release, or drop.`,
	example: `  amends inbox objects --blocked                   # what waits for a person
  amends inbox objects --owing                     # what is still to be done
  amends inbox objects shop:order:10492 -o json`,
	do:   (*desk.Desk).Objects,
	none: "no objects match", next: "after",
	columns: "object=WorkID, version=Version, state=State, owed=Owed, due=Due, failed=Failed, because=Because",
}

var inboxCountsVerb = verb[desk.Nothing, desk.All[desk.Count]]{
	use: "counts [flags]", args: noArguments,
	short: "Count deliveries by source and disposition",
	long: `Count the deliveries that are kept, by source and by what the gate made of them. Copies of one event are counted
once.`,
	example: `  amends inbox counts
  amends inbox counts -o json | jq '[.items[] | select(.disposition == "malformed") | .count] | add'`,
	do:   (*desk.Desk).Counts,
	none: "nothing was heard", columns: "source=Source, disposition=Became, count=Count, last=Last, meaning=Meaning",
}

var inboxReplayVerb = verb[desk.ReplayIn, desk.Replayed]{
	use:   "replay (NUMBER… | --object OBJECT | --source NAME | --since TIME | …) --reason WHY [flags]",
	short: "Let deliveries go through the gate again",
	long: `Let deliveries go through the gate again: after a source was set up, after what blocked an object was mended, or
when what became of a delivery is in doubt. Those are replayed that every flag and the list of numbers selects.

What named no object is read again, as its source is set up now; what it names then is a delivery of its own.

It is safe. The gate judges a replayed delivery against what is known by now, so an old one changes nothing that is
newer; at most the source is asked. Works are started by object and version, so none runs twice. A blocked object
is tried again. It is done as soon as a process that hears runs.`,
	example: `  amends inbox replay 4711 4712 --reason "the source is set up now"
  amends inbox replay --object shop:order:10492 --reason "the books know the customer now"
  amends inbox replay --source shop --since 2026-11-20T10:00:00Z --until 2026-11-20T12:00:00Z --reason "INC-77" --dry-run`,
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
	fmt.Fprintln(a.out)
	if out.DryRun {
		a.paragraph("", "Dry run: nothing was changed.")
		return
	}
	a.paragraph("", fmt.Sprintf("Replayed: %s through the gate again as soon as a process that hears runs. What waits for it:",
		desk.Counted(out.Replayed, "delivery goes", "deliveries go")))
	a.paragraph("  ", "amends inbox list --pending"+dbFlag(a.db))
}

var inboxReleaseVerb = verb[desk.HoldIn, desk.EndedHold]{
	use: "release SOURCE --reason WHY [flags]", args: anyNamed("the name of the source"),
	short: "Let the withdrawals of a source through that are held",
	long: `Let the withdrawals of a source through that are held because they were more than its bound. Each is decided once more
by the state of its object: what its source still wants withdrawn is undone, however many that are. What is withdrawn
from then on is counted from the beginning.

Look first: amends inbox objects --held --source SOURCE.`,
	example: `  amends inbox release shop --reason "the shop closes, Ann says" --dry-run`,
	do:      (*desk.Desk).LetThrough, print: (*app).printEndedHold,
}

var inboxDropVerb = verb[desk.HoldIn, desk.EndedHold]{
	use: "drop SOURCE --reason WHY [flags]", args: anyNamed("the name of the source"),
	short: "Drop the withdrawals of a source that are held",
	long: `Drop the withdrawals of a source that are held because they were more than its bound: they count as told, and nothing is
undone. What the source says later is taken as always, and what is withdrawn from then on is counted from the
beginning. So mend the source first. A nightly comparison still finds what differs, and has its own bounds.`,
	example: `  amends inbox drop shop --reason "a field was renamed; mended in 4.2"`,
	do:      (*desk.Desk).Drop, print: (*app).printEndedHold,
}

func (a *app) printEndedHold(_ *desk.HoldIn, out *desk.EndedHold) {
	if out.Count == 0 {
		a.sayf("no withdrawal of %s is held; nothing was done", out.Source)
		return
	}
	a.fields("held", finding.Count(int(out.Count), "withdrawal")+" of "+out.Source, "order", out.Act, "said by", out.Actor+": "+out.Reason)
	fmt.Fprintln(a.out)
	a.paragraph("", out.Then())
}

var catchUpVerb = verb[desk.Nothing, desk.CaughtUp]{
	use: "catch-up [flags]", args: noArguments,
	short: "After the database's clock went back: make due what waits for it to be there again",
	long: `Make due now what was written while the database's clock was ahead of what it is now, and let the leases of processes
that died meanwhile end in their own time. While the clock is right there is nothing of that, and nothing happens.
"amends check" and "amends status" name it. Correct the clock first.`,
	example: `  amends catch-up`,
	do:      (*desk.Desk).CatchUp,
	print: func(a *app, _ *desk.Nothing, out *desk.CaughtUp) {
		if out.Works+out.Sessions == 0 {
			a.sayf("nothing is ahead of the clock, nothing was changed")
			return
		}
		a.paragraph("", fmt.Sprintf("%s due now, %s ends in its own time", finding.Count(int(out.Works), "work"), finding.Count(int(out.Sessions), "lease")))
	},
}

var recoveryVerb = verb[desk.RecoverIn, desk.Recovered]{
	use: "recover {--restored | --nothing-lost} --reason WHY [flags]", args: noArguments,
	short: "Say what became of the database: restored from a backup, or moved with everything",
	long: `Say, while no process runs, what became of the ledger's database.

--restored: it was put back from a backup, or from a standby that had not received everything, and has forgotten what was
done since. Each step that is not done then counts as in doubt, also of works that slept, waited or were in review: what
can be looked up or sent again under the same key is, and of what is AtMostOnce a person is asked. What was
started since is not in it at all: let "amends reconcile rebuild JOB" take over what stands, before anything else runs.

--nothing-lost: it is another server, or another database, and has everything: a planned move, a major upgrade, a
switch-over. All works go on as they stand. It is refused where a witness
that this command sees, that of its user on this host, knows more than the database.`,
	example: `  amends recover --restored --dry-run
  amends recover --restored --reason "INC-77: last night's dump"
  amends recover --nothing-lost --reason "moved to db2, everything stopped"`,
	do: (*desk.Desk).Recover, print: (*app).printRecovered,
}

func (a *app) printRecovered(_ *desk.RecoverIn, out *desk.Recovered) {
	if out.LastAlive != nil {
		a.paragraph("", "A process was alive at "+finding.ISO(*out.LastAlive)+" the last time, as far as the ledger knows.")
	}
	for i := range out.Works {
		a.paragraph("", out.Works[i].Words())
	}
	if out.Act == "nothing-lost" {
		a.paragraph("", "They go on as they stand.")
	} else {
		a.paragraph("", "Other steps that are not done are looked up, or sent again under the same key. What was started later is not in the ledger: "+
			"before a process runs, amends reconcile rebuild JOB, for each job that compares.")
	}
	if out.DryRun {
		a.sayf("nothing was changed")
	}
}

var versionVerb = verb[desk.Nothing, desk.Version]{
	use: "version [flags]", args: noArguments, free: true,
	short:   "Show which amends this is, the schema versions it needs, and what is stable",
	example: "  amends version -o json | jq -r .version",
	do:      (*desk.Desk).Version,
	print: func(a *app, _ *desk.Nothing, v *desk.Version) {
		commit := ""
		if v.Commit != "" {
			commit = v.Commit + " of " + v.Date
		}
		a.fields("amends", v.Version, "commit", commit, "go", v.Go+" "+v.Platform,
			"schema", fmt.Sprintf("postgres %d, sqlite %d", v.Schema.Postgres, v.Schema.SQLite), "stable", stable)
	},
}

// stable is the promise that CHANGELOG.md makes.
const stable = "the JSON is " + desk.API + ": fields are added, none is renamed or removed. From v0.1.0 on every version reads the ledgers of those before it"

// versionLine is what --version prints.
func versionLine() string { return "amends version " + desk.ThisVersion().Version + "\n" + stable }
