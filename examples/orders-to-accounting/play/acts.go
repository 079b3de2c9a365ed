package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/examples/orders-to-accounting/audit"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
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

// act fills in the report.
func (r *report) act(ctx context.Context, job Job, o options, talk, stderr io.Writer) (err error) {
	rec, err := openRecords(ctx, o.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	if err := rec.empty(ctx); err != nil {
		return err
	}
	doors, err := freeAddresses(ctx, o.workers)
	if err != nil {
		return err
	}
	amends, err := newStage(o, r.Folder, "sync", job.Webhooks, doors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, amends.close()) }()
	naive, err := newStage(o, r.Folder, "naive", "", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, naive.close()) }()
	p := &play{
		report: r, options: o, job: job, records: rec, amends: amends, naive: naive, bar: &progress{out: stderr, total: o.orders},
		person: &operator{
			works: rec, world: amends.world, out: talk,
			by:      saga.Actor{Name: "operator of the example", Reason: "looked into the mailbox"},
			settled: answer + amends.procs.place.Settle, letters: amends.file("mailbox.txt"), decides: o.approve, byHand: o.byHand,
		},
	}
	return p.acts(ctx)
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
	c, err := count(ctx, p.records)
	if err != nil {
		return err
	}
	if p.asked, p.undone = c.first, cmp.Or(c.undone, c.first); len(unconfirmed) > 0 {
		p.asked = unconfirmed[0].ID.Work
	}
	return p.audit()
}

// syncs runs both jobs to their end, at the same time.
func (p *play) syncs(ctx context.Context) error {
	defer fmt.Fprintln(p.bar.out)
	p.naive.procs.once = true
	p.amends.disaster = p.disaster(ctx)
	if err := p.amends.procs.start(ctx, p.workers); err != nil {
		return err
	}
	if err := p.naive.procs.start(ctx, 1); err != nil {
		return err
	}
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		return p.amends.watch(both, func() (int, bool, error) {
			done, finished, err := p.progress(both)
			p.bar.set(0, done)
			return done, finished, err
		})
	})
	group.Go(func() error {
		return p.naive.watch(both, func() (int, bool, error) {
			done := 0
			for _, o := range p.naive.world.Shop.Orders() {
				if o.Status == outside.Cancelled || o.InvoiceID != "" {
					done++
				}
			}
			p.bar.set(1, done)
			return done, done == p.orders, nil
		})
	})
	return group.Wait()
}

// progress says how many orders are done with amends, and whether all are and nothing more is to come.
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

// heardOut reports whether everything that the customers changed was told or swept, heard, and handed
// to the coordinator.
func (p *play) heardOut(ctx context.Context) (bool, error) {
	quiet, err := p.amends.world.Quiet()
	if err != nil || !quiet {
		p.quiet = time.Time{}
		return false, err
	}
	if p.quiet.IsZero() {
		p.quiet = time.Now()
	}
	if p.sweepsAlone || p.loseLedger { // webhooks come in the end, but not those that were forgotten
		// The shop's times are whole seconds, and a sweep leaves the newest alone.
		since := p.quiet.Add(p.job.Safety + 2*time.Second)
		rows, err := p.records.Runs(ctx, schedule.RunFilter{Job: p.job.Changes, Result: schedule.OK, Limit: 1})
		if err != nil || len(rows) == 0 || !rows[0].Began.After(since) {
			return false, err
		}
	}
	if err := p.release(ctx); err != nil {
		return false, err
	}
	pending, err := p.records.Deliveries(ctx, intake.DeliveryFilter{Unjudged: true, Limit: 1})
	if err != nil || len(pending) > 0 {
		return false, err
	}
	owing, err := p.records.Entries(ctx, intake.EntryFilter{Owing: true, Limit: 1})
	return len(owing) == 0, err
}

// release lets through what the shop withdrew beyond its bound, as amends inbox release does: the operator has looked, and the
// customers did cancel.
func (p *play) release(ctx context.Context) error {
	held, err := p.records.Holdings(ctx)
	for _, h := range held {
		n, failed := p.records.EndHold(ctx, h.Source, intake.ActRelease, saga.Actor{Name: p.person.by.Name, Reason: "the customers did cancel"})
		p.Released, err = p.Released+int(n), errors.Join(err, failed)
	}
	return err
}

// audit stops everything and looks at both worlds.
func (p *play) audit() error {
	if err := errors.Join(p.amends.procs.stop(), p.naive.procs.stop()); err != nil {
		return err
	}
	world := p.amends.world
	p.Kills, p.Stalls, p.Restarts = p.amends.procs.counts()
	p.Naive.Kills, _, p.Naive.Restarts = p.naive.procs.counts()
	p.Faults, p.Webhooks, p.Changes = world.Faults.Tally(), world.Webhooks(), world.Changes()
	tampered := p.Silent
	for _, done := range p.Tampered {
		if classes[done.Deed] == "" { // the others were decided on, and the books are as they should be
			tampered = append(tampered, done.Reference)
		}
	}
	p.Result = audit.World(world, audit.Known{Tampered: tampered, MayLackReceipt: p.lost})
	p.Naive.Result = audit.World(p.naive.world, audit.Known{})
	return nil
}

// census counts the works of the ledger by where they stand.
type census struct {
	works    int
	live     int
	finished int
	review   []ledger.Instance
	first    string // the first by its id
	undone   string // one of the works that were compensated, if any
}

// count reads every head of the ledger.
func count(ctx context.Context, r ledger.Catalogue) (c census, err error) {
	for f := (ledger.Filter{Limit: 1000}); ; {
		page, err := r.List(ctx, f)
		for i := range page.Instances {
			c.add(&page.Instances[i])
		}
		if f.After = page.Next; err != nil || page.Next == "" {
			return c, err
		}
	}
}

func (c *census) add(h *ledger.Instance) {
	c.works++
	if c.first == "" || h.ID.Work < c.first {
		c.first = h.ID.Work
	}
	switch {
	case h.Posted > h.Consumed:
		c.live++ // a signal was posted that the coordinator has not read yet
	case h.Status.Terminal():
		c.finished++
		if h.Status == saga.Compensated {
			c.undone = cmp.Or(c.undone, h.ID.Work)
		}
	case h.Status.Parked():
		c.review = append(c.review, *h)
	default:
		c.live++
	}
}

// progress says how many orders each sync has done, with a line for each fifth.
type progress struct {
	out   io.Writer
	total int

	mu       sync.Mutex
	done     [2]int // with a ledger, and without
	reported int
}

func (p *progress) set(which, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[which] = min(done, p.total)
	if part := 5 * (p.done[0] + p.done[1]) / (2 * p.total); part > p.reported {
		p.reported = part
		fmt.Fprintf(p.out, "orders done: %d with amends, %d without a ledger\n", p.done[0], p.done[1])
	}
}

// freeAddresses finds loopback addresses at which n processes can listen. A process that is killed and
// started again listens at its own address. So they lie below the ports that systems give to outgoing
// connections, one of which could take the address meanwhile.
func freeAddresses(ctx context.Context, n int) (found []string, err error) {
	var held []net.Listener // all are held until all are found
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for tries := 0; len(held) < n; tries++ {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		switch {
		case err == nil:
			held, found = append(held, l), append(found, l.Addr().String())
		case tries == 1000:
			return nil, fmt.Errorf("find a free port: %w", err)
		}
	}
	return found, nil
}
