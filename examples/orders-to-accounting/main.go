// Command orders-to-accounting moves paid orders of a shop into an accounting system and confirms
// each by e-mail, with everything going wrong on the way: answers that are lost, servers that fail,
// webhooks that come late, twice, forged or at first not at all, orders that are edited and
// cancelled when their invoice is out, and a sync process that is killed again and again. An audit
// that reads only shop, books and mailbox then says what became of it, beside the same orders moved
// by a sync without a ledger.
//
// Read sync.go first: it is the saga. hear.go hears of orders by webhooks. sides.go reads shop and
// books as the reconciler needs them, jobs.go names what is compared by the clock, and memo.go is
// what an invoice says of itself. job.go is the process that runs all three. Everything else stages
// the run: package play starts the processes and kills them, audit looks at what they did, naive is the
// sync without a ledger, and internal/outside is the shop, the books and the mailbox.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/amends-dev/amends/examples/orders-to-accounting/play"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // so small a heap is collected ninety times a second otherwise
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	status := play.Run(ctx, staged, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// staged is what the play runs, and where it meets it.
var staged = play.Job{
	Sync: runSync, Rebuild: runRebuild,
	Webhooks: "/webhooks/" + sourceName, Changes: jobChanges, Safety: sweepLag, All: jobAll,
}
