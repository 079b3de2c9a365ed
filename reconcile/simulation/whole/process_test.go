package whole

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// mode is who brings news, and what goes wrong.
type mode struct {
	name     string
	webhooks bool // the shop tells
	stripped bool // and says no more than that something changed
	sweeps   bool // the shop is asked what changed
	compares bool // everything is compared
	loss     bool // ledger and inbox are lost on the way
}

// process is one life of a program with a coordinator, a processor, an incremental sweep and a
// reconciler.
type process struct {
	power

	coordinator *coordinator.Coordinator
	processor   *inbox.Processor
	reconciler  *reconcile.Reconciler

	over <-chan struct{} // it was crashed or told to stop
	done chan struct{}   // nothing of it moves any more
	errs []error         // of rounds in which nobody failed; read behind done
}

// sweepEvery and compareEvery are how long the rounds are apart.
const (
	sweepEvery   = 2 * time.Minute
	compareEvery = 10 * time.Minute
	grace        = time.Hour
)

// boot makes a process that dies at its n-th boundary, or never if n is 0. It does not run yet.
func (s *scene) boot(ctx context.Context, n int64) (context.Context, *process, error) {
	p := &process{done: make(chan struct{})}
	p.left.Store(n)
	ctx, p.cut = context.WithCancel(ctx)
	p.over = ctx.Done()
	ledger := &ledgerPort{s.db, &p.power}
	store := &storePort{s.db, &p.power, &s.watch}
	silent := logrus.New()
	silent.SetOutput(io.Discard)

	var err, err2, err3 error
	p.coordinator, err = coordinator.New(ledger, &coordinator.Options{Log: silent, Poll: 10 * time.Second, Lease: time.Minute})
	if err != nil {
		return ctx, p, err
	}
	program, err := (&desk{&p.power, s.books, s.post}).program()
	if err != nil {
		return ctx, p, err
	}
	err = p.coordinator.Register(ctx, program)
	all := reconcile.Bound{Count: 1_000_000, Percent: 100}
	source := &inbox.Source{
		Name: object.Source, Saga: sagaName, Fetch: s.shop.hear, Decide: decide, Apply: p.coordinator.Apply, Limits: inbox.Limits{PerSecond: 1000}, Begin: time.Unix(0, 0),
		// A process that has lost what it had received believes the shop alone: an old webhook of
		// an order that is gone would make it again.
		Policy: inbox.Policy{Settle: settle, Max: 5 * time.Minute, AlwaysFetch: s.rebuilds > 0},
	}
	p.reconciler, err2 = reconcile.New(store, reconcile.Config{
		Name: "orders", Source: source, Type: object.Type, All: s.pages(p, s.shop.all), Changed: s.pages(p, s.shop.changed),
		Destination: s.destinationOf(p), Coordinator: p.coordinator, Step: "invoice",
		Fields: reconcile.FieldsOf(func(c content) plan.Fields { return plan.Fields{"total": c.Total} }),
	}, &reconcile.Options{Log: silent, Mapping: "1", Effects: effects, Partitions: s.shop.partitions, Grace: grace, Create: all, Update: all, Destroy: all})
	p.processor, err3 = inbox.New(store, []*inbox.Source{source}, &inbox.Options{Poll: 10 * time.Second, Workers: 32, Log: silent})
	return ctx, p, errors.Join(err, err2, err3)
}

// pages lists the shop for the reconciler of a process, in pages of a twentieth.
func (s *scene) pages(p *process, list func(context.Context, scan.Query) (scan.Page, error)) func(context.Context, reconcile.Query) ([]reconcile.Listed, string, error) {
	one := call(&p.power, list)
	return func(ctx context.Context, q reconcile.Query) ([]reconcile.Listed, string, error) {
		q.Limit = min(q.Limit, max(20, s.size.orders/20))
		page, err := one(ctx, scan.Query(q))
		return page.Objects, page.Next, err
	}
}

// destinationOf are the books as the reconciler of a process asks them.
func (s *scene) destinationOf(p *process) reconcile.Destination {
	marked := call(&p.power, s.books.marked)
	return reconcile.Destination{
		Limits: inbox.Limits{PerSecond: 1000}, Settle: settle, Partitions: s.books.partitions,
		Find: call(&p.power, s.books.under),
		Marked: func(ctx context.Context, q reconcile.Query) ([]reconcile.Document, string, error) {
			page, err := marked(ctx, scan.Query(q))
			return page.Documents, page.Next, err
		},
	}
}

// hear is a question of the processor's.
func (s *shop) hear(ctx context.Context, o intake.Object) (inbox.Fetched, error) {
	known, err := s.fetch(ctx, o.ID)
	if err != nil || known == nil {
		return inbox.Fetched{Gone: err == nil}, err
	}
	return inbox.Fetched{Version: known.Version, Body: known.Body}, nil
}

// approved is a run that the schedule wants, of a job that a person has approved.
func approved() *schedule.Run { return &schedule.Run{At: time.Now(), Approved: true} }

// run runs a process until ctx ends or it dies.
func (p *process) run(ctx context.Context, s *scene) {
	defer close(p.done)
	ended := make(chan error, 2)
	go func() { ended <- p.coordinator.Run(ctx) }()
	go func() { ended <- p.processor.Run(ctx) }()
	p.rounds(ctx, s)
	for range 2 {
		if err := <-ended; err != nil && !p.dead.Load() {
			p.errs = append(p.errs, err)
		}
	}
}

// rounds sweeps and compares at their times.
func (p *process) rounds(ctx context.Context, s *scene) {
	for next := time.Now(); pause(ctx, sweepEvery) == nil; {
		calm := s.shop.isCalm() && s.books.isCalm()
		var err error
		if s.mode.sweeps {
			var r schedule.Outcome
			if r, err = p.reconciler.SyncChanges(ctx, nil); err == nil && r.Result != schedule.OK {
				err = fmt.Errorf("sweep: %+v", r)
			}
		}
		if s.mode.compares && !time.Now().Before(next) {
			next = time.Now().Add(compareEvery)
			r, failed := p.reconciler.Run(ctx, approved())
			again := strings.Contains(r.Note, "it is listed again") // what was made a moment ago is counted, and not shown yet
			if err = errors.Join(err, failed); err == nil && (r.Result == schedule.Partial && !again || r.Result == schedule.Failed) {
				err = fmt.Errorf("reconcile: %+v", r)
			}
		}
		if err != nil && calm && ctx.Err() == nil {
			p.errs = append(p.errs, err)
		}
	}
}
