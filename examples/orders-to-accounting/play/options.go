package play

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
)

// options is the command line.
type options struct {
	orders  int
	seed    uint64
	faults  float64
	kills   int
	stalls  int
	edits   float64
	chaos   float64
	workers int
	db      string
	json    bool

	deaf        bool // to everything but webhooks
	sweepsAlone bool // no webhook ever arrives
	loseLedger  bool
	tampers     bool
	outage      bool
	approve     bool
	console     bool
	byHand      bool
}

// flags are the flags that fill in o, and their defaults.
func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("orders-to-accounting", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.orders, "orders", 300, "paid `orders` in the shop")
	f.Uint64Var(&o.seed, "seed", 0, "the `number` from which shop, faults and kills are drawn; 0 chooses one")
	f.Float64Var(&o.faults, "faults", 0.15, "`share` of requests that meet a fault, 0 to 1")
	f.IntVar(&o.kills, "kills", 8, "how many `times` a sync process is killed with SIGKILL")
	f.IntVar(&o.stalls, "stalls", 0, fmt.Sprintf("how many `times` a sync process is stopped for %s, twice its lease, and goes on (SIGSTOP, SIGCONT)", stall))
	f.Float64Var(&o.edits, "edits", 0.1, "`share` of orders that are edited after they were invoiced; half as many are cancelled")
	f.Float64Var(&o.chaos, "chaos", 0.3, "`share` of webhooks that are dropped at first, and share that comes twice or more; all are late and shuffled")
	f.BoolVar(&o.deaf, "webhooks-only", false, "the sync hears of orders by webhooks alone, and never sweeps the shop")
	f.BoolVar(&o.sweepsAlone, "reconcile-only", false, "no webhook ever arrives; the reconciler finds every change by itself")
	f.BoolVar(&o.loseLedger, "lose-ledger", false, "half-way the ledger is deleted, and rebuilt from shop and books")
	f.BoolVar(&o.tampers, "tamper", true, "at the end people edit, void, delete and copy invoices in the books, and the reconciler finds them")
	f.BoolVar(&o.outage, "outage", false, fmt.Sprintf("half-way the books are out of order for %s, as they might be for two hours", outageLasts))
	f.BoolVar(&o.approve, "approve", false, fmt.Sprintf("orders of more than %d.%02d wait for approval before they are invoiced; the operator of the example looks at each and approves", approveAbove/100, approveAbove%100))
	f.BoolVar(&o.console, "console", false, "show the run in a browser: print the address of a console, and stay up after the audit until Ctrl-C")
	f.BoolVar(&o.byHand, "by-hand", false, "with -console: leave the reviews to you; the audit waits until you have settled them")
	f.IntVar(&o.workers, "workers", 0, "sync `processes`; 0 is 3 on Postgres and 1 on SQLite, which takes no more")
	f.StringVar(&o.db, "db", "", "the `ledger`: a Postgres URL or a file; it must hold nothing yet (default a new file)")
	f.BoolVar(&o.json, "json", false, "print one JSON object to standard output, and the rest to standard error")
	return f
}

func usage(w io.Writer) {
	fmt.Fprint(w, `Usage: orders-to-accounting [flags]

Moves the paid orders of a shop into the books and confirms each by e-mail, while
answers are lost, servers fail, customers edit and cancel, webhooks come late, twice
or forged, and the sync process is killed. Then an audit that never reads the ledger compares shop, books and mailbox, beside
the same orders moved by a sync without a ledger.

`)
	f := new(options).flags()
	f.SetOutput(w)
	f.PrintDefaults()
	fmt.Fprint(w, `
Exit status: 0 when the audit of amends finds nothing, 1 when it finds anything or
the run fails, 2 for a wrong command line.
`)
}

// parse reads the command line. Its error names everything that is wrong with the values.
func parse(args []string) (o options, err error) {
	f := o.flags()
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q belongs to no flag", f.Arg(0))
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1<<32-1) + 1
	}
	if o.workers == 0 {
		o.workers = 1
		if isPostgres(o.db) {
			o.workers = 3
		}
	}
	share := func(f float64) bool { return f >= 0 && f <= 1 } // NaN is none
	var faults []error
	for _, must := range []struct {
		hold bool
		what string
	}{
		{o.orders >= 1, "-orders must be at least 1"},
		{share(o.faults), "-faults must lie between 0 and 1"},
		{share(o.edits), "-edits must lie between 0 and 1"},
		{share(o.chaos), "-chaos must lie between 0 and 1"},
		{!o.deaf || !o.sweepsAlone, "-webhooks-only and -reconcile-only: then the sync would never hear of an order"},
		{!o.deaf || !o.loseLedger, "-lose-ledger needs the sweeps that -webhooks-only switches off"},
		{!o.outage || !o.loseLedger, "-outage and -lose-ledger: one disaster at a time"},
		{!o.byHand || o.console, "-by-hand needs -console: that is where you settle the reviews"},
		{!o.console || !o.loseLedger, "-console and -lose-ledger: the console would show the ledger that was lost"},
		{o.kills >= 0, "-kills must not be negative"},
		{o.stalls >= 0, "-stalls must not be negative"},
		{o.workers >= 1, "-workers must be at least 1, or 0 for the default"},
		{o.workers <= 1 || isPostgres(o.db), "-workers: a SQLite ledger takes one sync process; give a Postgres URL with -db for more"},
	} {
		if !must.hold {
			faults = append(faults, errors.New(must.what))
		}
	}
	return o, errors.Join(faults...)
}
