// Command orders-to-accounting moves paid orders of a shop into an accounting system and confirms each by
// e-mail, with everything going wrong on the way: answers that are lost, servers that fail, webhooks that come late,
// twice, forged or at first not at all, orders that are edited and cancelled when their invoice is out, and a sync
// process that is killed again and again. An audit that reads only shop, books and mailbox then says what became of it,
// beside the same orders moved by a sync without a ledger.
//
// Read sync.go first: it is the job. hear.go hears of orders; sides.go and jobs.go compare by the clock; job.go is the
// process that runs all three. play.go is what happens from the first order to the audit, tamper.go its last scenes,
// process.go kills and restarts, operator.go is the person who is asked, and the folders below are the outer world.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/shopsim/naive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run runs the program, as what its environment says it is, and returns its exit status: 0, 1 when the audit
// found something or the run failed, 2 for a wrong command line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if role := os.Getenv(roleVariable); role != "" {
		if err := child(ctx, role, stdin, stderr); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	}
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(stdout)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "orders-to-accounting: wrong command line; -h explains the flags\n%v\n", err)
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
func child(ctx context.Context, role string, stdin io.Reader, stderr io.Writer) error {
	ctx, letGo := leashed(ctx, stdin)
	defer letGo()
	var p place
	if err := json.Unmarshal([]byte(os.Getenv(placeVariable)), &p); err != nil {
		return fmt.Errorf("%s: %w", placeVariable, err)
	}
	number, err := strconv.Atoi(os.Getenv(numberVariable))
	if err != nil {
		return fmt.Errorf("%s: %w", numberVariable, err)
	}
	log := logrus.New()
	log.SetOutput(stderr)
	log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: "2006-01-02T15:04:05.000Z07:00"})
	switch role {
	case "sync":
		return runSync(ctx, p, number, log)
	case "rebuild":
		return runRebuild(ctx, p, log)
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
