package play

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/amends-dev/amends/examples/orders-to-accounting/audit"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// report is what the run says at its end. Its JSON is what -json prints.
type report struct {
	audit.Result
	Unconfirmed int                   `json:"unconfirmed"`        // works in review before the person came
	Resolved    int                   `json:"resolved"`           // answers the person gave
	Released    int                   `json:"released,omitempty"` // withdrawals that were held, and the person let through
	Approved    int                   `json:"approved,omitempty"` // votes of the person, with -approve
	Kills       int                   `json:"kills"`
	Stalls      int                   `json:"stalls"` // with -stalls
	Restarts    int                   `json:"restarts"`
	Seed        uint64                `json:"seed"`
	Seconds     float64               `json:"seconds"`
	Ledger      string                `json:"ledger"`
	Folder      string                `json:"folder"` // shop, books, mailbox and logs of both runs
	Faults      map[outside.Fault]int `json:"faults"`
	Webhooks    outside.Tally         `json:"webhooks"`
	Changes     outside.Changes       `json:"changes"`          // by customers, after the order was invoiced
	Lost        *loss                 `json:"lost,omitempty"`   // with -lose-ledger
	Outage      *outage               `json:"outage,omitempty"` // with -outage
	Reconciled  schedule.Outcome      `json:"reconciled"`       // the comparison of everything at the end
	Repaired    int                   `json:"repaired"`         // by comparisons before that one: after a loss there may be something
	Silent      []string              `json:"silent,omitempty"` // deleted in the shop without a word; listed for a person
	Tampered    []outside.Done        `json:"-"`
	Found       []found               `json:"found,omitempty"`     // what people did in the books then, and what the reconciler calls it
	Beside      []string              `json:"beside,omitempty"`    // findings that belong to no deed
	Decisions   int                   `json:"decisions,omitempty"` // of the operator on them
	Undecided   []string              `json:"undecided,omitempty"` // what still differs then
	Naive       naiveReport           `json:"naive"`

	asked, undone string // works worth a look: one that was unconfirmed, one that was compensated
}

// classes maps each deed to the class that the reconciler has to report for it. "" means no
// finding: a note is not compared, and an invoice without our mark is left alone.
var classes = map[outside.Deed]plan.Class{
	outside.Edited: plan.Diverged, outside.Noted: "", outside.Voided: plan.PhantomDone, outside.Deleted: plan.PhantomDone,
	outside.Copied: plan.Duplicate, outside.Handmade: "",
}

// Clean reports whether the audit found nothing, an outage undid nothing, and the reconciler found
// each deed and nothing else.
func (r *report) Clean() bool {
	named := !slices.ContainsFunc(r.Found, func(f found) bool { return f.Class != classes[f.Deed] })
	waited := r.Outage == nil || r.Outage.Undone == 0 && r.Outage.Review == 0
	return r.Result.Clean() && r.Reconciled.Planned == 0 && named && len(r.Beside) == 0 && len(r.Undecided) == 0 && waited
}

// naiveReport is the same audit of the run without a ledger.
type naiveReport struct {
	audit.Result
	Kills    int `json:"kills"`
	Restarts int `json:"restarts"`
}

func (r *report) json(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(r)
}

// introduce says what is about to happen.
func introduce(w io.Writer, o options) {
	told := "The shop tells of every change by a\nsigned webhook: late, out of order, some twice, some at first not at all."
	switch {
	case o.sweepsAlone:
		told = "Every\nwebhook of the shop is lost; a sweep every ten seconds finds what changed."
	case o.outage:
		told += fmt.Sprintf("\nHalf-way the books are out of order for %s, as they might be for two hours;\nthose of the sync without a ledger are not.", outageLasts)
	case o.loseLedger:
		told += "\nHalf-way everything that the sync remembers is deleted."
	}
	fmt.Fprintf(w, `%s from a shop into the books, and a receipt goes out for each.
Shop, books and mailbox are HTTP servers on this machine; %.0f %% of requests meet
a fault, and the sync is killed %s. %s
A sync without a ledger does the same in a world of its own, in which customers
edit and cancel no order afterwards, because it would not hear of that. Seed %d.

`, desk.Counted(o.orders, "paid order goes", "paid orders go"), 100*o.faults, desk.Counted(o.kills, "time", "times"), told, o.seed)
}

// text prints both audits side by side, and where to look further.
func (r *report) text(w io.Writer) error {
	fmt.Fprintf(w, "After %.0f seconds, shop, books and mailbox say (the audit reads nothing else):\n\n", r.Seconds)
	fmt.Fprintf(w, "%50s%19s\n", "with amends", "without a ledger")
	row := func(what string, amends, naive int) { fmt.Fprintf(w, "  %-37s%11d%19d\n", what, amends, naive) }
	row("orders", r.Orders, r.Naive.Orders)
	row("live invoices", r.Invoices, r.Naive.Invoices)
	row("receipts", r.Receipts, r.Naive.Receipts)
	row("cancelled, invoice voided", r.Compensated, r.Naive.Compensated)
	row("edits after the order was invoiced", r.Changes.Meanwhile+r.Changes.Edits, 0)
	row("killed with SIGKILL", r.Kills, r.Naive.Kills)
	fmt.Fprintln(w)
	row("duplicates: one too many", r.Duplicates, r.Naive.Duplicates)
	row("missing: invoice, mark or receipt", r.Missing, r.Naive.Missing)
	row("orphans: for a cancelled order", r.Orphans, r.Naive.Orphans)
	row("mismatches: amount, address or mark", r.Mismatches, r.Naive.Mismatches)
	if r.Result.Clean() {
		fmt.Fprintf(w, "\nWith amends: each paid order has one invoice, over what the order says now, and\none receipt; others have no invoice.\n")
	} else {
		fmt.Fprintf(w, "\nWith amends, the audit found:\n")
		list(w, r.Findings)
	}
	if r.Approved > 0 {
		fmt.Fprintf(w, "%d times an order of more than %d.00 waited until finance had looked at it.\n", r.Approved, approveAbove/100)
	}
	if r.Released > 0 {
		fmt.Fprintf(w, "%s held, because the shop withdrew more at once than its bound lets through, until the\noperator had looked.\n",
			desk.Counted(r.Released, "cancelled order was", "cancelled orders were"))
	}
	if len(r.Naive.Findings) > 0 {
		fmt.Fprintf(w, "Without a ledger, for example:\n")
		list(w, oneOfEach(r.Naive.Findings))
	}
	r.heard(w)
	r.reconciled(w)
	return r.further(w)
}

// heard says what became of the webhooks.
func (r *report) heard(w io.Writer) {
	h := r.Webhooks
	fmt.Fprintf(w, "\nThe shop's %s took %s, %d of them needless copies;\n%s before they left, %d met no answer and came again.\n",
		desk.Counted(h.Made, "webhook", "webhooks"), desk.Counted(h.Sent, "delivery", "deliveries"), h.Copies,
		desk.Counted(h.Dropped, "was lost", "were lost"), h.Unheard)
	fmt.Fprintf(w, "Of %s, %d refused and %d believed.\n", desk.Counted(h.Forged, "forged one", "forged ones"), h.Refused, h.Believed)
}

// reconciled says what the reconciler found, and what became of a ledger that was lost.
func (r *report) reconciled(w io.Writer) {
	if r.Outage != nil {
		r.Outage.told(w)
	}
	if r.Lost != nil {
		fmt.Fprintf(w, "\nHalf-way the ledger was deleted, with %s in it. Rebuilt from shop and\nbooks it had %d; nothing was made or sent for that. %s count as sent,\nbecause the outcome is unknown: %d of them were not.\n",
			desk.Counted(r.Lost.Works, "work", "works"), r.Lost.Adopted, desk.Counted(r.Lost.Unconfirmed, "receipt", "receipts"), r.ReceiptsUnconfirmed)
	}
	if r.Reconciled.Result == "" {
		return
	}
	fmt.Fprintf(w, "\nAt the end shop, ledger and books were compared: %s, %s to do.\n",
		desk.Counted(int(r.Reconciled.Seen), "order", "orders"), desk.Counted(int(r.Reconciled.Planned), "thing", "things"))
	if r.Repaired > 0 {
		fmt.Fprintf(w, "Comparisons before that one had %s to do.\n", desk.Counted(r.Repaired, "thing", "things"))
	}
	for _, order := range r.Silent {
		fmt.Fprintf(w, "  %-50s orphan: deleted without a word, for a person\n", order)
	}
	if len(r.Found) > 0 {
		r.deeds(w)
	}
	for _, b := range r.Beside {
		fmt.Fprintf(w, "  found, and it belongs to no deed: %s\n", b)
	}
}

// deeds says what people did in the books, and what the reconciler calls it.
func (r *report) deeds(w io.Writer) {
	fmt.Fprintf(w, "Then people laid hands on the books, and it was compared once more:\n\n")
	var others []string
	for _, f := range r.Found {
		if f.Class == "" && classes[f.Deed] == "" {
			others = append(others, fmt.Sprintf("%s (%s)", f.Invoice, f.Deed))
			continue
		}
		fmt.Fprintf(w, "  %-9s %-9s %-31s %s\n", f.Deed, f.Invoice, f.Reference, cmp.Or(string(f.Class), "NOT FOUND"))
	}
	fmt.Fprintf(w, "  not our business: %s\n", strings.Join(others, ", "))
	if r.Decisions > 0 && len(r.Undecided) == 0 {
		fmt.Fprintf(w, "The operator decided on each. Compared once more, nothing differs.\n")
	}
	for _, left := range r.Undecided {
		fmt.Fprintf(w, "  decided on, and it still differs: %s\n", left)
	}
}

// further names the ledger, what can be asked of it, and where the rest is.
func (r *report) further(w io.Writer) error {
	db := program.Word(r.Ledger)
	fmt.Fprintf(w, "\nThe ledger is %s. Ask it:\n\n", r.Ledger)
	verbs := []string{"list", "show " + r.asked, "history " + r.undone, "inbox list --object " + r.undone}
	switch {
	case r.Decisions > 0:
		verbs = append(verbs, "acts", "reconcile runs")
	case r.Reconciled.Result != "":
		verbs = append(verbs, "drift list", "reconcile runs")
	}
	for _, verb := range verbs {
		fmt.Fprintf(w, "  go run ./cmd/amends %s --db %s\n", verb, db)
	}
	_, err := fmt.Fprintf(w, "\nShops, books, mailboxes and logs of both are in %s.\n", r.Folder)
	return err
}

// oneOfEach returns the first finding of each kind.
func oneOfEach(findings []audit.Finding) []audit.Finding {
	var first []audit.Finding
	seen := map[audit.Kind]bool{}
	for _, f := range findings {
		if !seen[f.Kind] {
			seen[f.Kind] = true
			first = append(first, f)
		}
	}
	return first
}

// list prints findings, as many as a person reads.
func list(w io.Writer, findings []audit.Finding) {
	const most = 10
	for _, f := range findings[:min(most, len(findings))] {
		fmt.Fprintf(w, "  %s\n", f)
	}
	if more := len(findings) - most; more > 0 {
		fmt.Fprintf(w, "  and %d more; -json prints all\n", more)
	}
}
