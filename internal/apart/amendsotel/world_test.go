package amendsotel_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/amends-dev/amends/amendsotel"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

const (
	day       = 24 * time.Hour
	hang      = 10 * time.Minute
	lease     = 2 * time.Minute       // and not 15 s, so that days pass quickly
	secret    = "4111-1111-1111-1111" // what is in every body
	invoicing = "order-to-invoice"
)

// watch has the spans that ended, and counts those that are open.
type watch struct {
	*tracetest.InMemoryExporter

	tracers *sdktrace.TracerProvider

	mu   sync.Mutex
	open int
	late time.Duration // the longest time between the begin of a span and its end, by the clock
	at   time.Time
}

func watched() *watch {
	w := &watch{InMemoryExporter: tracetest.NewInMemoryExporter()}
	w.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.InMemoryExporter), sdktrace.WithSpanProcessor(w))
	return w
}

func (w *watch) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	w.at = time.Now()
}

func (w *watch) OnEnd(sdktrace.ReadOnlySpan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	w.late = max(w.late, time.Since(w.at))
}

func (w *watch) Shutdown(context.Context) error   { return nil }
func (w *watch) ForceFlush(context.Context) error { return nil }

// opened is how many spans are open, and for how long the longest was.
func (w *watch) opened() (int, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.late
}

// shop invoices orders. The first attempt of an invoice ends without an answer, and the mail of the
// order "odd" is refused.
func shop(t *testing.T, rest ...saga.Step[string]) saga.Program {
	t.Helper()
	invoice := func(_ context.Context, c saga.Call[string]) (string, error) {
		if <-time.After(2 * time.Second); c.Attempt == 1 {
			return "", errors.New("EOF")
		}
		return "inv_1", nil
	}
	storno := func(context.Context, saga.Call[string], *string) error {
		<-time.After(time.Second)
		return nil
	}
	mail := func(_ context.Context, c saga.Call[string]) (string, error) {
		if c.Work == "odd" {
			return "", saga.Permanent(errors.New("no such address"))
		}
		return "mail_1 to " + secret, nil
	}
	steps := append([]saga.Step[string]{saga.Do("invoice", invoice).Idempotent().UndoMaybe(storno).ID(func(id string) string { return id })}, rest...)
	d, err := saga.Define(invoicing, 1, append(steps, saga.Do("mail", mail).Idempotent().NoUndo("a mail cannot be unsent").NoID())...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// hanging has a step whose first attempt takes longer than a lease.
func hanging(t *testing.T) saga.Program {
	t.Helper()
	run := func(_ context.Context, c saga.Call[string]) (string, error) {
		if c.Attempt == 1 {
			<-time.After(hang)
		}
		return "done", nil
	}
	d, err := saga.Define(invoicing, 1, saga.Do("hang", run).Idempotent().NoUndo("it has no effect").NoID().Timeout(5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// process is one that runs until it is stopped.
type process struct {
	*coordinator.Coordinator

	stop func()
	bury func() // for one whose ledger is gone: it cannot bring its instances to rest
}

func boot(t *testing.T, db ledger.Ledger, w *watch, programs ...saga.Program) *process {
	t.Helper()
	c, err := coordinator.New(db, &coordinator.Options{Log: silent(), Listener: amendsotel.New(w.tracers, nil), Poll: time.Minute, Lease: lease, Margin: lease / 8})
	if err == nil {
		err = c.Register(t.Context(), programs...)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	end := func() error {
		cancel()
		return <-ended
	}
	return &process{
		Coordinator: c,
		stop: func() {
			if err := end(); err != nil {
				t.Error(err)
			}
		},
		bury: func() {
			if end() == nil {
				t.Error("the process was to die, and came to rest")
			}
		},
	}
}

func (p *process) start(t *testing.T, work, revision string) {
	t.Helper()
	if _, err := p.Start(t.Context(), invoicing, work, secret+revision, &saga.StartOptions{Revision: revision}); err != nil {
		t.Fatal(err)
	}
}

func (p *process) wait(t *testing.T, work string, want saga.Status) {
	t.Helper()
	sum, err := p.Wait(t.Context(), invoicing, work)
	if err != nil || sum.Status != want {
		t.Fatalf("%s: %v, %v; want %s", work, sum.Status, err, want)
	}
}

// of is what a span says under a key; "" when it says nothing.
func of(s *tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.Emit()
		}
	}
	return ""
}

func silent() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
