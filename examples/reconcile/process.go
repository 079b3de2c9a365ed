package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/sqlite"
)

// process is what runs beside the shop and the books: a coordinator, a processor and the jobs, over one file.
type process struct {
	shop        *Shop
	books       *Books
	db          *sqlite.DB // the ledger, the inbox, plans and jobs
	coordinator *coordinator.Coordinator
	source      *inbox.Source
	processor   *inbox.Processor
	running     *errgroup.Group
	working     bool // the coordinator runs
}

// during runs a process over a file, which is made where there is none, for as long as the story takes. Its jobs run
// from the start, its works when the story says so.
func during(ctx context.Context, file string, shop *Shop, books *Books, story func(context.Context, *process) error) (err error) {
	p := &process{shop: shop, books: books, running: new(errgroup.Group)}
	if p.db, err = sqlite.Open(ctx, file, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.db.Close()) }()
	if err := p.assemble(ctx); err != nil {
		return err
	}
	jobs, err := p.jobs()
	if err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].Schedule = "@yearly" // the story asks for every run itself
	}
	runner, err := schedule.New(p.db, jobs, &schedule.Options{Poll: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	p.running.Go(func() error { return runner.Run(ctx) })
	err = story(ctx, p)
	stop()
	return errors.Join(err, p.running.Wait())
}

// assemble makes the coordinator and the processor.
func (p *process) assemble(ctx context.Context) (err error) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	p.coordinator, err = coordinator.New(p.db, &coordinator.Options{Log: quiet}) //nolint:contextcheck // what it does is bounded by Run's context
	if err != nil {
		return err
	}
	definition, err := invoicing(p.books)
	if err != nil {
		return err
	}
	if err := p.coordinator.Register(ctx, definition); err != nil {
		return err
	}
	return p.processing()
}

// work runs sagas, and processes what comes in.
func (p *process) work(ctx context.Context) {
	p.working = true
	p.running.Go(func() error { return p.coordinator.Run(ctx, p.processor) })
}
