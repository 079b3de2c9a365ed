package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/amends-dev/amends/examples/orders-to-accounting/audit"
	"github.com/amends-dev/amends/examples/orders-to-accounting/faults"
	"github.com/amends-dev/amends/ledger"
)

// report is what the run says at its end. Its JSON is what -json prints.
type report struct {
	audit.Result
	Unconfirmed int                 `json:"unconfirmed"` // works in review before the person came
	Resolved    int                 `json:"resolved"`    // verdicts the person gave
	Kills       int                 `json:"kills"`
	Restarts    int                 `json:"restarts"`
	Seed        uint64              `json:"seed"`
	Seconds     float64             `json:"seconds"`
	Ledger      string              `json:"ledger"`
	Folder      string              `json:"folder"` // shop, books, mailbox and logs of both runs
	Faults      map[faults.Kind]int `json:"faults"`
	Naive       naiveReport         `json:"naive"`
}

// naiveReport is the same audit of the run without a ledger.
type naiveReport struct {
	audit.Result
	Kills    int `json:"kills"`
	Restarts int `json:"restarts"`
}

// person lets the operator answer every review.
func (r *report) person(ctx context.Context, talk io.Writer, o *operator, l ledger.Reader) (err error) {
	if r.Unconfirmed > 0 {
		fmt.Fprintf(talk, "%d receipts were on their way when something died, and nobody can tell by asking a mail server.\n"+
			"A person looks into the mailbox and says so (amends resolve):\n", r.Unconfirmed)
	}
	r.Resolved, err = o.settle(ctx, l)
	if r.Resolved > 0 {
		fmt.Fprintln(talk)
	}
	return err
}

func (r *report) json(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(r)
}

// text prints both audits side by side.
func (r *report) text(w io.Writer) error {
	fmt.Fprintf(w, "\nWhat shop, books and mailbox say now (the audit reads nothing else):\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(what string, amends, naive int) { fmt.Fprintf(t, "%s\t%d\t%d\t\n", what, amends, naive) }
	fmt.Fprintf(t, "\twith amends\twithout a ledger\t\n")
	row("orders", r.Orders, r.Naive.Orders)
	row("live invoices", r.Invoices, r.Naive.Invoices)
	row("receipts", r.Receipts, r.Naive.Receipts)
	row("invoices voided for cancelled orders", r.Compensated, r.Naive.Compensated)
	row("killed with SIGKILL", r.Kills, r.Naive.Kills)
	fmt.Fprintf(t, "\t\t\t\n")
	row("duplicates", r.Duplicates, r.Naive.Duplicates)
	row("missing", r.Missing, r.Naive.Missing)
	row("orphans", r.Orphans, r.Naive.Orphans)
	row("mismatches", r.Mismatches, r.Naive.Mismatches)
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Clean() {
		fmt.Fprintf(w, "\nWith amends: one invoice and one e-mail for each paid order, none for cancelled ones.\n")
	} else {
		fmt.Fprintf(w, "\nWith amends, the audit found:\n")
		some(w, r.Findings)
	}
	if len(r.Naive.Findings) > 0 {
		fmt.Fprintf(w, "\nWithout a ledger, among others:\n")
		some(w, r.Naive.Findings)
	}
	fmt.Fprintf(w, "\nThe ledger is %s. It can be asked about each order:\n\n", r.Ledger)
	for _, verb := range []string{"list", "show shop:order:10001", "history shop:order:10001"} {
		fmt.Fprintf(w, "  go run ./cmd/amends %s --db %s\n", verb, r.Ledger)
	}
	_, err := fmt.Fprintf(w, "\nShop, books, mailbox and logs of both runs are in %s. %.0f seconds, seed %d.\n", r.Folder, r.Seconds, r.Seed)
	return err
}

// some prints the first findings.
func some(w io.Writer, findings []audit.Finding) {
	const most = 5
	for i, f := range findings {
		if i == most {
			fmt.Fprintf(w, "  and %d more\n", len(findings)-most)
			return
		}
		fmt.Fprintf(w, "  %s\n", f)
	}
}
