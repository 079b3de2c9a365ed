package amends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
	"github.com/amends-dev/amends/store/postgres"
)

// engine runs the workload's saga on a coordinator.
type engine struct {
	ledger      ledger.Ledger
	coordinator *coordinator.Coordinator
	stop        context.CancelFunc
	ended       chan error // what Run of the coordinator returned
}

var _ workload.Engine = (*engine)(nil)

// Variant is in what an engine is not as a user opens it.
type Variant struct {
	Single bool // one transaction for each record
	Sealed bool // bodies are
	Slow   bool // the third step takes 400 ms, at a destination of its own
}

// key seals all.
type key struct{}

func (key) Sealing(string) (string, error) { return "2026", nil }
func (key) Key(string) ([]byte, error)     { return make([]byte, store.KeySize), nil }

// singleWriters is how many transactions of one record each run at a time on Postgres when group commit
// is off: as many as a well-filled connection pool allows.
const singleWriters = 32

// Open opens amends on an empty ledger, at the path of a file or the URL of a database.
func Open(ctx context.Context, address string, steps *workload.Steps, v Variant) (workload.Engine, error) {
	var l ledger.Ledger
	var opts coordinator.Options
	var err error
	switch {
	case v.Sealed:
		l, err = store.Open(ctx, address, &store.Options{Migrate: true, Keys: key{}})
	case !v.Single:
		l, err = store.Open(ctx, address, &store.Options{Migrate: true})
	case strings.HasPrefix(address, "postgres"):
		opts = coordinator.Options{Writers: singleWriters, MaxBatch: 1}
		l, err = postgres.Open(ctx, address, &postgres.Options{Writers: singleWriters, Migrate: true})
	default:
		opts = coordinator.Options{MaxBatch: 1}
		l, err = store.Open(ctx, address, &store.Options{Migrate: true})
	}
	if err != nil {
		return nil, err
	}
	delay := time.Duration(0)
	if v.Slow {
		delay = 400 * time.Millisecond
	}
	return start(ctx, l, steps, opts, delay)
}

// start brings up a coordinator on l and returns once it holds a session.
// It takes over l, also when it fails.
func start(ctx context.Context, l ledger.Ledger, steps *workload.Steps, opts coordinator.Options, delay time.Duration) (_ *engine, err error) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	live, opened := context.WithCancel(ctx)
	defer opened()
	opts.Log = log
	opts.Listener = &coordinator.Listener{SessionOpened: func(string) { opened() }}

	e := &engine{ledger: l, ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	definition, err := actions{steps, delay}.definition()
	if err != nil {
		return nil, err
	}
	if e.coordinator, err = coordinator.New(l, &opts); err != nil { //nolint:contextcheck // it ends with its Run
		return nil, err
	}
	if err := e.coordinator.Register(ctx, definition); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = sync.OnceFunc(stop)
	go func() { e.ended <- e.coordinator.Run(running) }()
	select {
	case <-live.Done():
		return e, ctx.Err()
	case err := <-e.ended:
		stop()
		return nil, fmt.Errorf("the coordinator ended at once: %w", err)
	}
}

// Run implements [workload.Engine].
func (e *engine) Run(ctx context.Context, s workload.Saga) error {
	started, err := e.coordinator.Start(ctx, name, s.Work, order{Order: s.Number, Total: 4200, Currency: "EUR"}, nil)
	switch {
	case err != nil:
		return err
	case started.Duplicate:
		return errors.New("the work was in the ledger before")
	}
	end, err := e.coordinator.Wait(ctx, name, s.Work)
	if err == nil && end.Status != saga.Completed {
		err = fmt.Errorf("the work ended as %s %s %s", end.Status, end.Reason, end.Note)
	}
	return err
}

// Close implements [workload.Engine].
func (e *engine) Close() error {
	e.stop()
	return errors.Join(<-e.ended, e.ledger.Close())
}
