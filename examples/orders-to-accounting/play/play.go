// Package play stages the example orders-to-accounting, and is its command line. It starts two worlds
// of one seed, each a shop with its books and its mailbox, and a sync for each: the [Job] of the
// example, and one without a ledger. While both are at work it kills their processes, has customers
// edit and cancel, and answers the reviews as an operator does. Then it audits both worlds and prints
// what the audits found.
//
// A process of a sync is this program again, started with its role and its [Place] in the environment.
// The processes of the job share nothing with the play but its world and the ledger, which the play
// reads as the command amends does.
//
// The scenes are in the order of time: acts.go is what happens from the first order to the audit,
// stage.go runs one sync over one world, process.go starts and kills its processes, disaster.go loses
// the ledger or the books, operator.go answers the reviews, tamper.go changes the books by hand, and
// report.go prints the outcome.
package play

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/examples/orders-to-accounting/naive"
)

// Job is the sync that is put on the stage: what its processes do, and where the play meets it.
type Job struct {
	// Sync is one sync process. It runs until ctx ends, and may be killed at any moment.
	Sync Process
	// Rebuild rebuilds a ledger that was lost, and returns. No other process of the job runs
	// meanwhile.
	Rebuild Process

	// Webhooks is the path at which a sync process takes the webhooks of the shop.
	Webhooks string
	// Changes is the scheduled job that lists what changed in the shop. It leaves alone what is newer
	// than Safety.
	Changes string
	Safety  time.Duration
	// All is the scheduled job that compares shop, ledger and books.
	All string
}

// Process is what one process does in a place. What it logs goes to a file.
type Process func(ctx context.Context, at Place, log logrus.FieldLogger) error

// Place says where a process finds everything.
type Place struct {
	Shop   string        `json:"shop"`
	Books  string        `json:"books"`
	Mail   string        `json:"mail"`
	Ledger string        `json:"ledger"` // a file, or a Postgres URL
	Door   string        `json:"door"`   // where this process listens for webhooks
	Secret string        `json:"secret"` // which the shop signs them with
	Sweep  bool          `json:"sweep"`  // do not rely on webhooks alone
	Answer time.Duration `json:"answer"` // how long one attempt may take
	Settle time.Duration `json:"settle"` // after which an unanswered request has happened, visibly, or never will
	// ApproveAbove is from how many cents on an order waits for approval; 0: none does.
	ApproveAbove int64     `json:"approveAbove,omitempty"`
	Lost         time.Time `json:"lost"` // when the ledger was lost; nothing that was sent for it is on its way any more
}

// Run runs the program, as what its environment says it is, and returns its exit status: 0, 1 when the
// audit found something or the run failed, 2 for a wrong command line.
func Run(ctx context.Context, job Job, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if role := os.Getenv(roleVariable); role != "" {
		if err := child(ctx, job, role, stdin, stderr); err != nil {
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
	clean, err := perform(ctx, job, o, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "orders-to-accounting:", err)
	}
	if err != nil || !clean {
		return 1
	}
	return 0
}

// child is a process that the supervisor started.
func child(ctx context.Context, job Job, role string, stdin io.Reader, stderr io.Writer) error {
	ctx, letGo := leashed(ctx, stdin)
	defer letGo()
	var at Place
	if err := json.Unmarshal([]byte(os.Getenv(placeVariable)), &at); err != nil {
		return fmt.Errorf("%s: %w", placeVariable, err)
	}
	log := logrus.New()
	log.SetOutput(stderr)
	log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: "2006-01-02T15:04:05.000Z07:00"})
	switch role {
	case "sync":
		return job.Sync(ctx, at, log)
	case "rebuild":
		return job.Rebuild(ctx, at, log)
	case "naive":
		err := naive.Run(ctx, naive.Config{Shop: at.Shop, Books: at.Books, Mail: at.Mail, Timeout: at.Answer, Log: log})
		if ctx.Err() != nil {
			return nil
		}
		return err
	default:
		return fmt.Errorf("%s: no role %q", roleVariable, role)
	}
}

// perform runs both syncs over equal worlds, the operator who answers the reviews, the audit of both
// worlds and the report. It reports whether the amends run is clean; see report.Clean.
func perform(ctx context.Context, job Job, o options, stdout, stderr io.Writer) (clean bool, err error) {
	talk := stdout
	if o.json {
		talk = stderr
	}
	dir, err := os.MkdirTemp("", "amends-")
	if err != nil {
		return false, err
	}
	if o.db == "" {
		o.db = filepath.Join(dir, "ledger.db")
	}
	r := report{Seed: o.seed, Ledger: withoutPassword(o.db), Folder: dir}
	introduce(talk, o)
	began := time.Now()
	pages, err := serve(ctx, o, talk)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, pages.close()) }()
	if err := r.act(ctx, job, o, talk, stderr); err != nil {
		_ = os.Remove(dir) // if nothing came into it
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted. Every process was stopped; what they did so far is in %s", dir)
		}
		return false, err
	}
	r.Seconds = time.Since(began).Seconds()
	if o.json {
		err = r.json(stdout)
	} else {
		err = r.text(stdout)
	}
	if err == nil && o.console {
		fmt.Fprintf(talk, "\nThe console stays up until Ctrl-C: %s\n", pages.url)
		<-ctx.Done()
	}
	return r.Clean(), err
}
