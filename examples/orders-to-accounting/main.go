// Command orders-to-accounting moves paid orders of a shop into an accounting system and confirms each by
// e-mail, with everything going wrong on the way: answers that are lost, servers that fail, orders that are
// cancelled meanwhile, and a sync process that is killed again and again. An audit that reads only shop, books
// and mailbox then says what became of it, beside the same orders moved by a sync without a ledger.
//
// Read sync.go first: it is the job. job.go is the process that runs it, process.go kills and restarts it,
// operator.go is the person who is asked, and the folders below are the outer world.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/examples/orders-to-accounting/naive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run runs the program, as what its environment says it is, and returns its exit status: 0, 1 when the audit
// found something or the run failed, 2 for a wrong command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if role := os.Getenv(roleVariable); role != "" {
		if err := child(ctx, role, stderr); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	}
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	clean, err := perform(ctx, o, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "orders-to-accounting:", err)
	}
	if err != nil || !clean {
		return 1
	}
	return 0
}

// child is a process that the supervisor started.
func child(ctx context.Context, role string, stderr io.Writer) error {
	var p place
	if err := json.Unmarshal([]byte(os.Getenv(placeVariable)), &p); err != nil {
		return fmt.Errorf("%s: %w", placeVariable, err)
	}
	log := logrus.New()
	log.SetOutput(stderr)
	log.SetFormatter(&logrus.JSONFormatter{})
	switch role {
	case "sync":
		return runSync(ctx, p, log)
	case "naive":
		err := naive.Run(ctx, naive.Config{
			ShopURL: p.Shop, BooksURL: p.Books, MailAddr: p.Mail, From: "shop@orders.example", Timeout: p.Answer, Log: log,
		})
		if ctx.Err() != nil {
			return nil
		}
		return err
	default:
		return fmt.Errorf("%s: no role %q", roleVariable, role)
	}
}

// options is the command line.
type options struct {
	orders  int
	seed    uint64
	faults  float64
	kills   int
	workers int
	db      string
	json    bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("orders-to-accounting", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.orders, "orders", 300, "paid orders in the shop")
	f.Uint64Var(&o.seed, "seed", 0, "what the world is made from; 0 chooses one and prints it")
	f.Float64Var(&o.faults, "faults", 0.15, "share of requests that meet a fault, 0 to 1")
	f.IntVar(&o.kills, "kills", 8, "how often a sync process is killed with SIGKILL")
	f.IntVar(&o.workers, "workers", 0, "sync processes; SQLite takes one (default: 1, with Postgres 3)")
	f.StringVar(&o.db, "db", "", "the ledger: a file that does not exist yet, or a Postgres URL (default: a file in a new temporary folder)")
	f.BoolVar(&o.json, "json", false, "print one JSON object to standard output; the talk goes to standard error")
	if err := f.Parse(args); err != nil {
		return o, err
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
	err := o.check(f.Args())
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	return o, err
}

func (o *options) check(rest []string) error {
	var faults []error
	wrong := func(bad bool, msg string) {
		if bad {
			faults = append(faults, errors.New(msg))
		}
	}
	wrong(len(rest) > 0, "there are arguments without a flag")
	wrong(o.orders < 1, "-orders must be at least 1")
	wrong(o.faults < 0 || o.faults > 1, "-faults must lie between 0 and 1")
	wrong(o.kills < 0, "-kills must not be negative")
	wrong(o.workers < 1, "-workers must be at least 1")
	wrong(o.workers > 1 && !isPostgres(o.db), "-workers: a SQLite ledger takes one sync process; give a Postgres URL with -db for more")
	return errors.Join(faults...)
}
