package play

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/shopsim/audit"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// play is one run of the example: two syncs over worlds that are equal and share nothing.
type play struct {
	*report
	options

	job     Job
	records *records
	amends  *stage
	naive   *stage
	person  *operator
	bar     *progress

	lost  []string  // works whose receipt has an unknown outcome since the ledger was lost
	quiet time.Time // since when World.Quiet was true; zero: it was not at the last look
}

// acts is the play from the first order to the audit.
func (p *play) acts(ctx context.Context) error {
	if err := p.syncs(ctx); err != nil {
		return err
	}
	unconfirmed, resolved, err := p.person.review(ctx)
	if err != nil {
		return err
	}
	p.Unconfirmed, p.Resolved, p.Approved = len(unconfirmed), resolved, p.person.approved
	if err := p.tamper(ctx); err != nil {
		return err
	}
	if p.asked, p.undone, err = examples(ctx, p.records, unconfirmed); err != nil {
		return err
	}
	return p.audit(ctx)
}

// syncs runs both jobs to their end, at the same time.
func (p *play) syncs(ctx context.Context) error {
	defer p.bar.end()
	p.amends.show, p.naive.show = p.bar.amends, p.bar.naive
	p.naive.procs.once = true
	switch half := p.orders / 2; {
	case p.loseLedger:
		p.amends.disaster = disaster{
			due: func(done int) bool { return done >= half },
			strike: func(now context.Context) (bool, error) {
				if err := p.lose(now); err != nil {
					return false, err
				}
				return true, p.amends.procs.start(ctx, p.workers) // not now: the processes outlive the syncs
			},
		}
	case p.outage:
		o := &outage{p: p}
		p.amends.disaster = disaster{due: o.due, strike: o.strike}
		p.amends.world.BooksOutAfter(max(1, half))
	}
	if err := p.amends.procs.start(ctx, p.workers); err != nil {
		return err
	}
	if err := p.naive.procs.start(ctx, 1); err != nil {
		return err
	}
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return p.amends.watch(both, func() (int, bool, error) { return p.progress(both) }) })
	group.Go(func() error {
		return p.naive.watch(both, func() (int, bool, error) {
			t, err := p.naive.world.Progress(both)
			return t.Synced + t.Cancelled, t.Synced == t.Paid, err
		})
	})
	return group.Wait()
}

// progress says how many orders are done with amends, and whether all are and nothing more is to
// come.
func (p *play) progress(ctx context.Context) (done int, finished bool, err error) {
	quiet, err := p.heardOut(ctx) // asked before what follows from it
	if err != nil {
		return 0, false, err
	}
	c, err := p.person.look(ctx)
	p.person.sees(c.review)
	all := c.works >= p.orders || p.Lost != nil // a work that was undone and forgotten has nothing to be known by
	return c.finished + len(c.review), quiet && all && c.live == 0, err
}

// heardOut reports whether everything that the customers changed was told or swept, heard, and
// handed to the coordinator.
func (p *play) heardOut(ctx context.Context) (bool, error) {
	quiet, err := p.amends.world.Quiet(ctx)
	if err != nil || !quiet {
		p.quiet = time.Time{}
		return false, err
	}
	if p.quiet.IsZero() {
		p.quiet = time.Now()
	}
	if p.sweepsAlone || p.loseLedger { // webhooks come in the end, but not those that were forgotten
		// The shop's times are whole seconds, and a sweep leaves the newest alone.
		if swept, err := p.sweptSince(ctx, p.quiet.Add(p.job.Safety+2*time.Second)); err != nil || !swept {
			return false, err
		}
	}
	pending, err := p.records.Deliveries(ctx, intake.DeliveryFilter{Unjudged: true, Limit: 1})
	if err != nil || len(pending) > 0 {
		return false, err
	}
	owing, err := p.records.Entries(ctx, intake.EntryFilter{Owing: true, Limit: 1})
	return len(owing) == 0, err
}

// sweptSince reports whether a sweep of what changed in the shop began after a time, and went well.
func (p *play) sweptSince(ctx context.Context, since time.Time) (bool, error) {
	rows, err := p.records.Runs(ctx, schedule.RunFilter{Job: p.job.Changes, Result: schedule.OK, Limit: 1})
	return err == nil && len(rows) > 0 && rows[0].Began.After(since), err
}

// audit stops everything and looks at both worlds.
func (p *play) audit(ctx context.Context) (err error) {
	if err := errors.Join(p.amends.procs.stop(), p.naive.procs.stop()); err != nil {
		return err
	}
	p.Kills, p.Restarts = p.amends.procs.counts()
	p.Stalls = p.amends.procs.stalled()
	p.Naive.Kills, p.Naive.Restarts = p.naive.procs.counts()
	p.Faults = p.amends.world.Faults()
	if p.Webhooks, err = p.amends.world.Webhooks(ctx); err != nil {
		return err
	}
	p.Changes = p.amends.world.Changes()
	known := []audit.Option{audit.Tampered(append(p.Tampered.References(), p.Silent...)...), audit.MayLackReceipt(p.lost...)}
	if p.Result, err = audit.World(ctx, p.amends.world, known...); err != nil {
		return err
	}
	p.Naive.Result, err = audit.World(ctx, p.naive.world)
	return err
}

// examples names two works worth a look: one that a person was asked about and one that was undone,
// or else others.
func examples(ctx context.Context, l ledger.Catalogue, unconfirmed []ledger.Instance) (asked, undone string, err error) {
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
