package resume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
	"github.com/amends-dev/amends/store/postgres"
)

// What a step can be.
const (
	Idempotent = "Idempotent"
	Keyed      = "Keyed"
	Find       = "Find"
	AtMostOnce = "AtMostOnce"
)

// What a process tells of itself, a line for each.
const (
	Running  = "running"   // it has its session
	InFlight = "in flight" // every instance that it started has sent its request
)

// Process is one process of a ledger.
type Process struct {
	Address string // of the ledger
	LockDir string // of [postgres.Options]; "" for a SQLite ledger, and for the default
	Step    string // what the step of the saga is
	Start   int    // so many instances are started, and their requests are never answered; 0: it goes on for another
}

// Run runs p until it is killed or ctx ends, and tells out what it has come to.
func (p Process) Run(ctx context.Context, out io.Writer) error {
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	told := func(what string) { _, _ = fmt.Fprintln(out, what) } // the parent sees when it is gone
	c, err := coordinator.New(db, &coordinator.Options{Log: log, Listener: &coordinator.Listener{
		SessionOpened: func(string) { told(Running) },
	}})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	var sent atomic.Int64
	d, err := p.saga(func() {
		if sent.Add(1) == int64(p.Start) {
			told(InFlight)
		}
	})
	if err == nil {
		err = c.Register(ctx, d)
	}
	if err == nil {
		running, ctx := errgroup.WithContext(ctx)
		running.Go(func() error { return c.Run(ctx) })
		running.Go(func() error { return p.begin(ctx, c) })
		err = running.Wait()
	}
	return errors.Join(err, db.Close())
}

func (p Process) open(ctx context.Context) (store.DB, error) {
	if p.LockDir == "" {
		return store.Open(ctx, p.Address, &store.Options{Migrate: true})
	}
	return postgres.Open(ctx, p.Address, &postgres.Options{Migrate: true, LockDir: p.LockDir})
}

// begin starts the instances.
func (p Process) begin(ctx context.Context, c *coordinator.Coordinator) error {
	starts, ctx := errgroup.WithContext(ctx)
	starts.SetLimit(64)
	for n := range p.Start {
		starts.Go(func() error {
			_, err := c.Start(ctx, name, fmt.Sprintf("order:%d", n), order{n}, nil)
			return err
		})
	}
	return starts.Wait()
}

const name = "order-to-invoice"

type order struct {
	Number int `json:"number"`
}

// saga has one step. Who started the instances gets no answer to its requests.
func (p Process) saga(sent func()) (*saga.Definition[order], error) {
	do := func(ctx context.Context, c saga.Call[order]) (string, error) {
		if err := c.Sending(); err != nil {
			return "", err
		}
		if p.Start > 0 {
			sent()
			<-ctx.Done()
			return "", ctx.Err()
		}
		return fmt.Sprintf("inv_%d", c.Input.Number), nil
	}
	find := func(context.Context, saga.Call[order]) (saga.Finding[string], error) {
		return saga.NotFound[string](), nil
	}
	step := saga.Do("invoice", do).NoUndo("it is measured, and not undone")
	switch p.Step {
	case Idempotent:
		step.Idempotent()
	case Keyed:
		step.Keyed(24 * time.Hour).EachRun()
	case Find:
		step.Find(find).EachRun()
	case AtMostOnce:
		step.AtMostOnce()
	}
	return saga.Define(name, 1, step)
}
