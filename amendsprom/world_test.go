package amendsprom_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

const invoicing = "order-to-invoice"

// shop is a process that turns orders into invoices. The invoice of an order takes two seconds, and
// the mail of the order "doubtful" ends with an error that leaves it open whether it went out.
type shop struct {
	*coordinator.Coordinator

	stop func()
}

func open(t *testing.T, db *memory.DB, l *coordinator.Listener) *shop {
	t.Helper()
	c, err := coordinator.New(db, &coordinator.Options{Log: silent(), Listener: l})
	if err != nil {
		t.Fatal(err)
	}
	d, err := saga.Define(invoicing, 1,
		saga.Do("invoice", func(context.Context, saga.Call[string]) (string, error) {
			<-time.After(2 * time.Second)
			return "inv_1", nil
		}).Idempotent().NoUndo("the books keep it").To("books"),
		saga.Do("mail", func(_ context.Context, c saga.Call[string]) (string, error) {
			if c.Input == "doubtful" {
				return "", errors.New("EOF")
			}
			return "mail_1", nil
		}).AtMostOnce().NoUndo("a mail cannot be unsent"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return &shop{Coordinator: c}
}

// run runs the process until it is stopped.
func (s *shop) run(t *testing.T) *shop {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	return s
}

func (s *shop) start(t *testing.T, work, input string) {
	t.Helper()
	_, err := s.Start(t.Context(), invoicing, work, input, &saga.StartOptions{Source: "webhook"})
	if err != nil && !errors.Is(err, coordinator.ErrConflict) {
		t.Fatal(err)
	}
}

func (s *shop) wait(t *testing.T, work string) {
	t.Helper()
	if _, err := s.Wait(t.Context(), invoicing, work); err != nil {
		t.Fatal(err)
	}
}

// history puts into db what every metric has something to say about.
func history(t *testing.T, db *memory.DB, l *coordinator.Listener) {
	t.Helper()
	s := open(t, db, l).run(t)
	for _, work := range []string{"fine", "doubtful"} {
		s.start(t, work, work)
		s.wait(t, work)
	}
	s.start(t, "fine", "fine")
	s.start(t, "fine", "fine")
	s.start(t, "fine", "another order under the same name")
	<-time.After(time.Second) // it has read of that, at its next poll
	s.stop()

	ctx, op, by := t.Context(), coordinator.NewOperator(db), saga.Actor{Name: "ann", Reason: "because"}
	if err := op.PauseScope(ctx, coordinator.OfDestination("books"), by); err != nil {
		t.Fatal(err)
	}
	if err := op.Cancel(ctx, saga.ID{Saga: invoicing, Work: "doubtful"}, by); err != nil {
		t.Fatal(err)
	}
	heard(t, db)
	err := db.Turn(ctx, "orders", func(now time.Time, a *schedule.Agenda) error {
		a.State.First, a.State.Good = now, schedule.Good{Instant: "1", At: now, Ended: now}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	open(t, db, nil).start(t, "later", "later") // no process runs that would take it up
	<-time.After(90 * time.Second)
}

// heard puts two events into the inbox, one of them three times and the other one of a known
// version, and a third that is not judged.
func heard(t *testing.T, db *memory.DB) {
	t.Helper()
	event := func(id string) intake.Event {
		return intake.Event{Object: intake.Object{Source: "shop", Type: "order", ID: id}, Dedupe: intake.DigestOf(id), Received: time.Now()}
	}
	for _, id := range []string{"1", "1", "2", "1"} {
		if err := db.Accept(t.Context(), []intake.Event{event(id)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Judge(t.Context(), 10, func(_ time.Time, ds []intake.Delivery, _ map[intake.Object]*intake.Entry) error {
		ds[0].Outcome, ds[1].Outcome = intake.Applied, intake.Stale
		return nil
	})
	if err == nil {
		err = db.Accept(t.Context(), []intake.Event{event("3")})
	}
	if err == nil {
		err = db.Update(t.Context(), event("1").Object, func(_ time.Time, e *intake.Entry) error { e.Held = 1; return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ledgerOf is a registry with what a ledger says.
func ledgerOf(db amendsprom.Database) *prometheus.Registry {
	reg := prometheus.NewPedanticRegistry()
	amendsprom.Ledger(reg, db, &amendsprom.LedgerOptions{Log: silent()})
	return reg
}

func silent() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
