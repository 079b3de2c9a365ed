package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

func (a *app) inboxShow() *cobra.Command {
	var bodies bool
	cmd := &cobra.Command{
		Use: "show NUMBER [flags]", Args: oneNumber,
		Short: "Show one delivery: what became of it, and what is safe to do next",
		Long: `Show one delivery: what the gate made of it and why, what is known of its object now, the works that are named by
the object, and what is safe to do next.

Bodies are not shown, only their size and hash. --bodies shows them; they may hold personal data, so mind who is
looking.`,
		Example: `  amends inbox show 4711
  amends inbox show 4711 -o json | jq -r .next
  amends inbox show 4711 --bodies`,
	}
	cmd.Flags().BoolVar(&bodies, "bodies", false, "show the body of the delivery and of the accepted state, too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		numbers, _ := numbersOf(args) // oneNumber has looked at it
		h, err := a.lookAtDelivery(cmd.Context(), numbers[0])
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(h.json(a, bodies))
		}
		a.printHearing(h, bodies)
		return nil
	}
	return cmd
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

// hearing is one delivery and what came of it, read at one moment.
type hearing struct {
	intake.Delivery
	entry     *intake.Entry     // nil: nothing is known of the object
	works     []ledger.Instance // named by the object
	knowledge *knowledge
}

func (a *app) lookAtDelivery(ctx context.Context, number int64) (*hearing, error) {
	var h hearing
	err := a.listening(ctx, func(e ear) (err error) {
		if h.Delivery, err = e.Delivery(ctx, number); err == nil {
			h.entry, err = e.Entry(ctx, h.Object)
		}
		return err
	})
	if err != nil {
		return nil, noDelivery(err, number)
	}
	var p ledger.Page
	p, h.knowledge, err = a.heads(ctx, ledger.Filter{Work: h.Object.String()})
	h.works = p.Instances
	return &h, err
}

// hearingJSON is a hearing as JSON.
type hearingJSON struct {
	deliveryJSON
	Entry *entryJSON `json:"entry"` // null: nothing is known of the object
	Works []headJSON `json:"works"`
	Next  string     `json:"next"`
}

func (h *hearing) json(a *app, bodies bool) hearingJSON {
	j := hearingJSON{
		deliveryJSON: deliveryToJSON(&h.Delivery, bodies), Entry: entryToJSON(h.entry, bodies),
		Works: make([]headJSON, len(h.works)),
	}
	for i := range h.works {
		j.Works[i] = headToJSON(&h.works[i], h.knowledge)
	}
	words, command := h.next(a.now(), a.db)
	if j.Next = words; command != "" {
		j.Next += " " + command
	}
	return j
}

// printHearing writes a delivery for people: what it is, what became of it, and what to do.
func (a *app) printHearing(h *hearing, bodies bool) {
	a.field("delivery", strconv.FormatInt(h.Number, 10))
	a.field("object", h.Object.String())
	a.field("said", h.said())
	a.field("received", a.both(h.Received))
	if h.Copies > 1 {
		a.field("copies", fmt.Sprintf("%d, the latest %s", h.Copies, a.both(h.Last)))
	}
	if h.Secret != "" {
		a.field("signed", "with the secret named "+h.Secret)
	}
	a.field("body", sized(h.Body))
	a.field("judged", disposition(&h.Delivery))
	if words := meaningOf(h.Outcome); words != "" && !h.Judged.IsZero() {
		a.field("", words)
	}
	if h.Because != "" {
		a.field("because", h.Because)
	}
	if !h.Judged.IsZero() {
		a.field("judged", a.both(h.Judged))
	}
	a.printEntry(h.entry)
	a.printWorks(h)
	if bodies {
		a.printBodies(h)
	}
	fmt.Fprintln(a.out, "\nnext")
	words, command := h.next(a.now(), a.db)
	a.paragraph("  ", words)
	if command != "" {
		fmt.Fprintf(a.out, "\n    %s\n", visible(command))
	}
}

// said describes the content of the delivery as it was received, before the gate judges it.
func (h *hearing) said() string {
	words := map[intake.Payload]string{
		intake.Whole: "the whole object", intake.Delta: "a change to the object", intake.Thin: "that the object changed",
	}[h.Payload]
	switch {
	case h.Deleted:
		words = "that the object is gone"
	case words == "":
		words = "nothing that can be judged"
	}
	if v := h.Version.Revision(); v != "" {
		words += ", version " + v
	}
	if h.Topic != "" {
		words = h.Topic + ": " + words
	}
	if h.ID != "" {
		words += ", as event " + h.ID
	}
	if !h.At.IsZero() {
		words += ", of " + iso(h.At)
	}
	return words
}

// printEntry tells what is known of the object now.
func (a *app) printEntry(e *intake.Entry) {
	fmt.Fprintln(a.out, "\nthe object now")
	if e == nil {
		a.paragraph("  ", "Nothing is known of it.")
		return
	}
	words := state(e)
	if v := e.Version.Revision(); v != "" {
		words += ", version " + v
	}
	switch {
	case e.Rank > 0:
		words += ", as its source said when it was asked"
	case state(e) != "not known":
		words += ", as an event said"
	}
	if n := e.Newest; n.Compare(e.Version) > 0 {
		words += "; version " + n.Revision() + " was spoken of"
	}
	a.paragraph("  ", words)
	if o := owed(e); o != "" {
		a.paragraph("  ", "owed: "+o)
	}
	if !e.Due.IsZero() {
		a.paragraph("  ", "due: "+a.both(e.Due))
	}
	if e.Holder != "" {
		a.paragraph("  ", "held by "+e.Holder+" until "+iso(e.Until))
	}
	if e.LastError != "" && e.LastError != e.Blocked {
		a.paragraph("  ", fmt.Sprintf("failed %s: %s", count(e.Attempts, "time"), e.LastError))
	}
	if e.Blocked != "" {
		a.paragraph("  ", "blocked: "+e.Blocked)
	}
}

// printWorks tells which works are named by the object.
func (a *app) printWorks(h *hearing) {
	fmt.Fprintln(a.out, "\nworks named "+visible(h.Object.String()))
	if len(h.works) == 0 {
		a.paragraph("  ", "None was started.")
	}
	for i := range h.works {
		w := &h.works[i]
		words := fmt.Sprintf("%s: %s", w.ID.Saga, standing(w.Status, w.Reason))
		if w.Revision != "" {
			words += ", for revision " + w.Revision
		}
		a.paragraph("  ", words)
		fmt.Fprintf(a.out, "    %s\n", visible(showCommand(w.ID, a.db)))
	}
}

func (a *app) printBodies(h *hearing) {
	if len(h.Body) > 0 {
		fmt.Fprintln(a.out, "\nbody of the delivery")
		a.paragraph("  ", string(h.Body))
	}
	if h.entry != nil && len(h.entry.Body) > 0 {
		fmt.Fprintln(a.out, "\naccepted state of the object")
		a.paragraph("  ", string(h.entry.Body))
	}
}

// next says what happens by itself and what is safe to do, and the command for it, if there is one.
func (h *hearing) next(now time.Time, db string) (words, command string) {
	replay := func(reason string) string {
		return fmt.Sprintf("amends inbox replay %d%s --reason %q", h.Number, dbFlag(db), reason)
	}
	switch e := h.entry; {
	case h.Judged.IsZero():
		return "It is judged as soon as a process that hears runs. See that one does.", ""
	case e != nil && e.Blocked != "":
		return "Nothing more is done for the object until something new is heard of it. Mend the cause, then let this delivery go through the gate again:",
			replay("what was mended")
	case e != nil && e.Held > 0:
		return "Its withdrawal is held: its source withdraws more than its bound. Release what is held of the source, or drop it; first see how much that is:",
			"amends inbox release " + quote(h.Object.Source) + dbFlag(db) + " --reason WHY --dry-run"
	case h.Outcome == intake.Unknown && h.Object.ID == "":
		return "It names no object, as a test or a greeting does not. If it should, the program looks in a wrong place: correct that, and let it be read again:",
			replay("the Mapping looks in the right place now")
	case h.Outcome == intake.Unknown:
		return "Set its source, tenant or type up in the program that hears. Then let it go through the gate again:", replay("it is set up now")
	case h.Outcome == intake.Malformed:
		return "Look at it with --bodies, and see whether the program looks in the right place. If it did not, and does now, a replay reads it again. Else what it should have said " +
			"can be learned only from its source: let that send it again, or wait for the next delivery about the object or the next reconciliation.", ""
	case e != nil && (e.Owing() || len(e.Parked) > 0):
		return soon(e, now), ""
	}
	for i := range h.works {
		if w := &h.works[i]; w.Status == saga.Review {
			return fmt.Sprintf("Nothing is left to do with what was heard. Its work is in review (%s) and waits for a person:", w.Reason), showCommand(w.ID, db)
		}
	}
	return "Nothing: the object is as its source last told. Replaying the delivery is safe, and changes nothing that is newer.", ""
}

// soon says when what is owed to an object is done, by itself.
func soon(e *intake.Entry, now time.Time) string {
	words := "What is owed to the object is done by itself"
	if !e.Owing() {
		words = "Changes of the object wait for one that has not come; unless it comes, its source is asked instead"
	}
	const late = time.Minute // processes that hear look every second
	switch {
	case e.Holder != "" && e.Until.After(now):
		return words + "; it is being worked on. Nothing to do."
	case !e.Due.IsZero() && now.Sub(e.Due) > late:
		return words + fmt.Sprintf("; that is overdue since %s. See that a process runs that hears its source.", iso(e.Due))
	case e.Due.After(now):
		return words + fmt.Sprintf(" at %s. Nothing to do.", iso(e.Due))
	}
	return words + " as soon as a process that hears looks. Nothing to do."
}

// noDelivery explains an unknown number.
func noDelivery(err error, number int64) error {
	if !errors.Is(err, intake.ErrNotFound) {
		return err
	}
	return &failure{
		exit: exitNotFound, what: fmt.Sprintf("there is no delivery %d", number),
		next: "it never was, or it is older than what is kept; look with: amends inbox list",
	}
}
