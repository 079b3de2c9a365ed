package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// tried is what a person says who has a destination tried.
var tried = saga.Actor{Name: "anna", Reason: "they say that it is mended"}

// Cancellations that are answered 409 keep no booking waiting; and when the books take them again, a
// person has them tried at once.
func TestCancellationsThatFailStarveNoBooking(t *testing.T) {
	t.Parallel()
	seeded(t, func(t *testing.T, seed uint64, processes int) {
		c := gather(t, seed, processes, saga.Retry{})
		defer c.close()
		booking, err := saga.Define("booking", 1,
			saga.Do("seat", func(ctx context.Context, b saga.Call[order]) (thing, error) {
				return thing{ID: b.Work}, c.books.ask(ctx, b.Work)
			}).
				Idempotent().To("books").
				UndoMaybe(func(ctx context.Context, b saga.Call[order], _ *thing) error { return c.books.ask(ctx, "undo "+b.Work) }),
			saga.Do("ticket", func(_ context.Context, b saga.Call[order]) (thing, error) {
				if strings.HasPrefix(b.Work, "off") {
					return thing{}, saga.Permanent(errors.New("the customer called it off"))
				}
				return thing{ID: b.Work}, nil
			}).Idempotent().NoUndo("nothing is sent"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.ps {
			if err := p.Register(t.Context(), booking); err != nil {
				t.Fatal(err)
			}
		}
		c.books.be(func(what string) error {
			if strings.HasPrefix(what, "undo") {
				return saga.Answered(errors.New("409 Conflict"))
			}
			return nil
		})
		book := func(work string) {
			t.Helper()
			if _, err := c.ps[c.r.IntN(len(c.ps))].Start(t.Context(), "booking", work, order{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			book(fmt.Sprintf("off-%d", i))
		}
		for i := range 40 {
			book(fmt.Sprintf("on-%02d", i))
			pass(3 * time.Second)
		}
		heads, err := ledger.First(t.Context(), c.l, ledger.Filter{Saga: "booking", Prefix: "on-", Limit: 100})
		if err != nil || len(heads) != 40 {
			t.Fatal(len(heads), err)
		}
		for i := range heads {
			if h := &heads[i]; h.Status != saga.Completed || h.Finished.Sub(h.Created) > latency+2*time.Second {
				t.Errorf("%s is %s after %s", h.ID.Work, h.Status, h.Finished.Sub(h.Created))
			}
		}
		pass(10 * time.Minute) // and they have long waits by then
		c.books.be(func(string) error { return nil })
		waited, err := coordinator.NewOperator(c.l).Probe(t.Context(), "books", tried)
		if err != nil || waited != 5 {
			t.Errorf("%d waited, %v", waited, err)
		}
		pass(5 * time.Second)
		if got := in(t, c.l, "booking"); got[saga.Compensated] != 5 {
			t.Errorf("five seconds after a person had the books tried: %v", got)
		}
	})
}

// A person who knows that a destination is back does not wait for the next try; and one who errs
// costs it one request of each kind.
func TestAPersonHasADestinationTried(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]error{
		"fails": saga.Answered(errors.New("500")), "asks to be left alone": saga.HoldBack(saga.RetryAfter(2*time.Hour, saga.NotSent(errors.New("429")))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeded(t, func(t *testing.T, seed uint64, processes int) {
				c := gather(t, seed, processes, saga.Retry{})
				defer c.close()
				op := coordinator.NewOperator(c.l)
				probe := func() {
					t.Helper()
					if _, err := op.Probe(t.Context(), "books", tried); err != nil {
						t.Fatal(err)
					}
				}
				c.books.be(func(string) error { return away })
				c.orders(time.Second, 6*time.Minute)
				before := time.Now()
				probe()
				pass(3 * time.Second)
				if n := c.books.between(&c.books.heard, before, time.Now()); n < 1 || n > 3+processes {
					t.Errorf("%d requests", n)
				}
				c.books.be(func(string) error { return nil })
				probe()
				pass(20 * time.Second)
				if done := c.done(); done != c.n {
					t.Errorf("twenty seconds later %d of %d are done", done, c.n)
				}
			})
		})
	}
}
