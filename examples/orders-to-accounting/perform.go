package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/world"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/reconcile"
)

// perform is the whole play: both syncs over equal worlds, the person who answers what nobody else can, the audit
// of both worlds and the report. It says whether the audit of the amends run is clean.
func perform(ctx context.Context, o options, stdout, stderr io.Writer) (clean bool, err error) {
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
	if err := r.act(ctx, o, dir, talk, stderr); err != nil {
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
	return r.Clean(), err
}

// withoutPassword is the ledger's address as it may be printed.
func withoutPassword(db string) string {
	if u, err := url.Parse(db); err == nil && isPostgres(db) {
		return u.Redacted()
	}
	return db
}

// act fills in the report.
func (r *report) act(ctx context.Context, o options, dir string, talk, stderr io.Writer) (err error) {
	l, err := openEmpty(ctx, o.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	box, err := openInbox(ctx, o.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	doors, err := freeDoors(ctx, o.workers)
	if err != nil {
		return err
	}
	amends, err := newStage(ctx, o, dir, "sync", doors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, amends.close()) }()
	naive, err := newStage(ctx, o, dir, "naive", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, naive.close()) }()
	person := &operator{
		desk: coordinator.NewOperator(l), ledger: l, mailbox: amends.world.Mailbox(), out: talk,
		by:      coordinator.By{Actor: "operator of the example", Reason: "looked into the mailbox"},
		settled: answer + amends.procs.place.Settle, now: time.Now,
	}
	if err := r.syncs(ctx, o, amends, naive, person, box, newProgress(stderr, o.orders)); err != nil {
		return err
	}
	unconfirmed, resolved, err := person.review(ctx)
	if err != nil {
		return err
	}
	r.Unconfirmed, r.Resolved = len(unconfirmed), resolved
	if r.asked, r.undone, err = examples(ctx, l, unconfirmed); err != nil {
		return err
	}
	return r.audit(ctx, amends, naive)
}

// examples names two works worth a look: one that a person was asked about and one that was undone, or else others.
func examples(ctx context.Context, l ledger.Reader, unconfirmed []ledger.Head) (asked, undone string, err error) {
	c, err := count(ctx, l)
	if err != nil {
		return "", "", err
	}
	asked, undone = c.first, cmp.Or(c.undone, c.first)
	if len(unconfirmed) > 0 {
		asked = unconfirmed[0].ID.Work
	}
	return asked, undone, nil
}

// openEmpty opens the ledger, and refuses one in which there is something.
func openEmpty(ctx context.Context, db string) (store, error) {
	l, err := openLedger(ctx, db)
	if err != nil {
		return nil, err
	}
	there, err := l.List(ctx, ledger.Filter{Limit: 1})
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("the ledger %s holds works already, of an earlier run or of your own; give -db a new one", withoutPassword(db))
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// syncs runs both jobs to their end, at the same time and in worlds that do not know of each other.
func (r *report) syncs(ctx context.Context, o options, amends, naive *stage, person *operator, box inbox, bar *progress) error {
	defer bar.end()
	amends.show, naive.show = bar.amends, bar.naive
	naive.procs.once = true
	if err := amends.procs.start(ctx, o.workers); err != nil {
		return err
	}
	if err := naive.procs.start(ctx, 1); err != nil {
		return err
	}
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		return amends.watch(both, func() (int, bool, error) {
			quiet, err := heardOut(both, amends.world, box) // asked before what follows from it
			if err != nil {
				return 0, false, err
			}
			c, err := count(both, person.ledger)
			person.sees(c.review)
			return c.finished + len(c.review), quiet && c.works >= o.orders && c.live == 0, err
		})
	})
	group.Go(func() error {
		return naive.watch(both, func() (int, bool, error) {
			t, err := naive.world.Progress(both)
			return t.Synced + t.Cancelled, t.Synced == t.Paid, err
		})
	})
	return group.Wait()
}

// heardOut reports whether everything that the customers changed was told, heard, and handed to the coordinator.
func heardOut(ctx context.Context, w *world.World, box inbox) (bool, error) {
	if quiet, err := w.Quiet(ctx); err != nil || !quiet {
		return false, err
	}
	pending, err := box.Deliveries(ctx, reconcile.DeliveryFilter{Unjudged: true, Limit: 1})
	if err != nil || len(pending) > 0 {
		return false, err
	}
	owing, err := box.Entries(ctx, reconcile.EntryFilter{Owing: true, Limit: 1})
	return len(owing) == 0, err
}

// audit stops everything and looks at both worlds.
func (r *report) audit(ctx context.Context, amends, naive *stage) (err error) {
	if err := errors.Join(amends.procs.stop(), naive.procs.stop()); err != nil {
		return err
	}
	r.Kills, r.Restarts = amends.procs.counts()
	r.Naive.Kills, r.Naive.Restarts = naive.procs.counts()
	r.Faults = amends.world.Faults()
	if r.Webhooks, err = amends.world.Webhooks(ctx); err != nil {
		return err
	}
	r.Changes = amends.world.Changes()
	if r.Result, err = amends.world.Audit(ctx); err != nil {
		return err
	}
	r.Naive.Result, err = naive.world.Audit(ctx)
	return err
}
