package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/rest"
	"github.com/amends-dev/amends/saga"
)

// perform runs both syncs over equal worlds, the operator who answers the reviews, the audit of
// both worlds and the report. It reports whether the amends run is clean; see report.Clean.
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
	if err := r.act(ctx, job, o, dir, talk, stderr); err != nil {
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

// act fills in the report.
func (r *report) act(ctx context.Context, job Job, o options, dir string, talk, stderr io.Writer) (err error) {
	rec, err := openRecords(ctx, o.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	if err := rec.empty(ctx); err != nil {
		return err
	}
	doors, err := rest.FreeAddresses(ctx, o.workers)
	if err != nil {
		return err
	}
	amends, err := newStage(ctx, o, dir, "sync", job.Webhooks, doors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, amends.close()) }()
	naive, err := newStage(ctx, o, dir, "naive", "", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, naive.close()) }()
	play := &play{
		report: r, options: o, job: job, records: rec, amends: amends, naive: naive, bar: newProgress(stderr, o.orders),
		person: &operator{
			works: rec, shop: amends.world.Shop(), books: amends.world.Books(), mailbox: amends.world.Mailbox(), out: talk,
			by:      saga.Actor{Name: "operator of the example", Reason: "looked into the mailbox"},
			settled: answer + amends.procs.place.Settle, now: time.Now, letters: filepath.Join(dir, "sync", "mailbox"), decides: o.approve, byHand: o.byHand,
		},
	}
	return play.acts(ctx)
}
