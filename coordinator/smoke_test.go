package coordinator_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/ledger/memory"
	"github.com/amends-dev/amends/saga"
)

type order struct{ Number, Total int }
type made struct{ ID string }

func (m made) ExternalID() string { return m.ID }

func TestSmoke(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	if testing.Verbose() {
		log.SetOutput(t.Output())
	}
	l := memory.New(nil)
	c, err := coordinator.New(l, &coordinator.Options{Log: log, Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	refuse := false
	def, err := saga.Define("order-to-invoice", 1,
		saga.Do("customer", func(ctx context.Context, c saga.Call[order]) (made, error) { return made{"cus_1"}, nil }).Idempotent().NoUndo("they outlive their orders"),
		saga.Do("invoice", func(ctx context.Context, c saga.Call[order]) (made, error) {
			return made{"inv_" + c.ExternalID("customer")}, nil
		}).
			Find(func(ctx context.Context, c saga.Call[order]) (saga.Finding[made], error) {
				return saga.NotFound[made](), nil
			}).
			Undo(func(ctx context.Context, c saga.Call[order], m *made) error { return nil }),
		saga.Do("mark", func(ctx context.Context, c saga.Call[order]) (made, error) {
			if refuse {
				return made{}, saga.Permanent(errors.New("cancelled meanwhile"))
			}
			return made{"m"}, nil
		}).Idempotent().Pivot().Undo(func(ctx context.Context, c saga.Call[order], m *made) error { return nil }),
		saga.Do("receipt", func(ctx context.Context, c saga.Call[order]) (made, error) { return made{"mail"}, nil }).AtMostOnce(),
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Register(ctx, def); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	for i, want := range []saga.Status{saga.Completed, saga.Compensated} {
		refuse = i == 1
		id := []string{"o1", "o2"}[i]
		r, err := c.Start(ctx, "order-to-invoice", id, order{1, 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Wait(ctx, "order-to-invoice", id)
		if err != nil || s.Status != want {
			t.Fatal(s, err, r)
		}
		t.Logf("%+v", s)
		r, err = c.Start(ctx, "order-to-invoice", id, order{1, 2}, nil)
		if err != nil || !r.Duplicate {
			t.Fatal(r, err)
		}
		if _, err = c.Start(ctx, "order-to-invoice", id, order{1, 3}, nil); !errors.Is(err, coordinator.ErrConflict) {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
