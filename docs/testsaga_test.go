package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// Sale is the input of the saga under test.
type Sale struct{ Cents int64 }

// Bill is what the books make of a sale.
type Bill struct{ ID string }

// ExternalID is what the books call it.
func (b Bill) ExternalID() string { return b.ID }

// ledgers are books that lose the answer to the first request, and refuse a second bill for one sale.
type ledgers struct {
	bills map[string]Bill // by work id
	asked int
	mails int
}

func (l *ledgers) bill(_ context.Context, c saga.Call[Sale]) (Bill, error) {
	if err := c.Sending(); err != nil { // from here on the outcome may be unknown
		return Bill{}, err
	}
	l.asked++
	if _, there := l.bills[c.Work]; there {
		return Bill{}, errors.New("a second bill for one sale")
	}
	l.bills[c.Work] = Bill{ID: "bill-" + c.Work}
	return Bill{}, errors.New("connection reset") // it was made, and the answer is lost
}

func (l *ledgers) find(_ context.Context, c saga.Call[Sale]) (saga.Finding[Bill], error) {
	if b, there := l.bills[c.Work]; there {
		return saga.Found(b), nil
	}
	return saga.NotFound[Bill](), nil
}

func (l *ledgers) void(_ context.Context, c saga.Call[Sale], _ Bill) error {
	delete(l.bills, c.Work)
	return nil
}

func (l *ledgers) mail(context.Context, saga.Call[Sale]) (struct{}, error) {
	l.mails++
	return struct{}{}, nil
}

func sale(l *ledgers) (*saga.Definition[Sale], error) {
	return saga.Define("sale", 1,
		saga.Do("bill", l.bill).Find(l.find).Once().Undo(l.void),
		saga.Delay[Sale]("grace", 3*24*time.Hour), // the customer may cancel
		saga.Do("mail", l.mail).NoID().AtMostOnce().NoUndo("a mail cannot be taken back"),
	)
}

// In a bubble of testing/synctest three days pass at once, and every wait, retry and time-out in its order.
func TestSale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledgers{bills: map[string]Bill{}}
		c := running(t, l)
		if _, err := c.Start(t.Context(), "sale", "shop:order:1", Sale{Cents: 900}, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s, err := c.Wait(t.Context(), "sale", "shop:order:1") // until it has ended, or a person is needed
		if err != nil || s.Status != saga.Completed {
			t.Fatalf("%+v, %v", s, err)
		}
		if l.asked != 1 || len(l.bills) != 1 || l.mails != 1 || time.Since(began) < 3*24*time.Hour {
			t.Errorf("after %s: asked %d times, %d bills, %d mails", time.Since(began), l.asked, len(l.bills), l.mails)
		}
	})
}

// A customer who cancels within the three days gets no mail, and the bill is void.
func TestSaleIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledgers{bills: map[string]Bill{}}
		c := running(t, l)
		id := saga.ID{Saga: "sale", Work: "shop:order:2"}
		if _, err := c.Start(t.Context(), id.Saga, id.Work, Sale{Cents: 900}, nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(24 * time.Hour)
		if err := c.Cancel(t.Context(), id, saga.Actor{Name: "customer", Reason: "changed her mind"}); err != nil {
			t.Fatal(err)
		}
		s, err := c.Wait(t.Context(), id.Saga, id.Work)
		if err != nil || s.Status != saga.Compensated || len(l.bills) != 0 || l.mails != 0 {
			t.Errorf("%+v, %v: %d bills, %d mails", s, err, len(l.bills), l.mails)
		}
	})
}

// running is a coordinator over a ledger in memory, which ends with the test.
func running(t *testing.T, l *ledgers) *coordinator.Coordinator {
	t.Helper()
	d, err := sale(l)
	if err != nil {
		t.Fatal(err)
	}
	c, err := coordinator.New(memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}
