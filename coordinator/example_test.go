package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// byAnna is who acts in the examples.
var byAnna = saga.Actor{Name: "anna", Reason: "an example"}

// errLine is an answer that never came.
var errLine = errors.New("the line went dead")

// exampled runs sagas over a ledger in memory while fn says things to them.
func exampled(fn func(ctx context.Context, c *coordinator.Coordinator) error, steps ...saga.Step[string]) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := coordinator.New(memory.New(nil), &coordinator.Options{Log: log, Poll: 10 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	order, err := saga.Define("order", 1, steps...)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	if err := c.Register(ctx, order); err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	err = fn(ctx, c)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		fmt.Println(err)
	}
}

func booked(name string) saga.Step[string] {
	return saga.Do(name, func(_ context.Context, c saga.Call[string]) (string, error) { return name + "_1", nil }).
		Idempotent().UndoMaybe(func(context.Context, saga.Call[string], *string) error { return nil })
}

// lostMail is a mail of which the first answer is lost: only a person can know whether it went out.
func lostMail() saga.Step[string] {
	return saga.Do("mail", func(_ context.Context, c saga.Call[string]) (string, error) {
		if err := c.Sending(); err != nil || c.Attempt > 1 {
			return "mail_2", err
		}
		return "", errLine
	}).AtMostOnce().NoUndo("a mail cannot be unsent").Timeout(50 * time.Millisecond).Settle(time.Millisecond)
}

// outOfStock is a step that its destination refuses.
func outOfStock() saga.Step[string] {
	return saga.Do("ship", func(context.Context, saga.Call[string]) (string, error) {
		return "", saga.Permanent(errors.New("no stock"))
	}).Idempotent().NoUndo("nothing was shipped")
}

var orderID = saga.ID{Saga: "order", Work: "shop:order:1"}

// beginOrder starts the order, waits until it rests, and says where.
func beginOrder(ctx context.Context, c *coordinator.Coordinator) error {
	if _, err := c.Start(ctx, orderID.Saga, orderID.Work, "book", nil); err != nil {
		return err
	}
	return orderRests(ctx, c)
}

func orderRests(ctx context.Context, c *coordinator.Coordinator) error {
	s, err := c.Wait(ctx, orderID.Saga, orderID.Work)
	fmt.Println(strings.TrimSpace(fmt.Sprint(s.Status, " ", s.Reason)))
	return err
}

// A second start of the same work runs nothing, and returns what is there.
func ExampleCoordinator_Start() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		again, err := c.Start(ctx, orderID.Saga, orderID.Work, "book", nil)
		fmt.Println(again.Duplicate, again.Status)
		return err
	}, booked("invoice"))
	// Output:
	// completed
	// true completed
}

// Another input under the same work orderID is a conflict: the work goes on with its first.
func ExampleCoordinator_Start_conflict() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		_, err := c.Start(ctx, orderID.Saga, orderID.Work, "another book", nil)
		fmt.Println(errors.Is(err, coordinator.ErrConflict))
		return nil
	}, booked("invoice"))
	// Output:
	// completed
	// true
}

// Wait returns when the work has ended, or waits for a person.
func ExampleCoordinator_Wait() {
	exampled(beginOrder, booked("invoice"), outOfStock())
	// Output: compensated
}

// Adopt takes over what another program made: nothing is sent, and a start of the same order finds it.
func ExampleCoordinator_Adopt() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		adopted, err := c.Adopt(ctx, []coordinator.Adoption{{
			Saga: orderID.Saga, Work: orderID.Work, Input: "book", Effects: map[string]coordinator.Effect{"invoice": {ExternalID: "inv_old"}},
			By: saga.Actor{Name: "anna", Reason: "the old script made it"},
		}})
		if err != nil || adopted[0].Err != nil {
			return errors.Join(err, adopted[0].Err)
		}
		s, err := c.Start(ctx, orderID.Saga, orderID.Work, "book", nil)
		fmt.Println(s.Duplicate, s.Status, s.Steps["invoice"].ExternalID)
		return err
	}, booked("invoice"))
	// Output: true completed inv_old
}

// Show tells what came of each step.
func ExampleOperator_Show() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		s, err := c.Show(ctx, orderID)
		fmt.Println(s.Steps["invoice"].Status, s.Steps["invoice"].ExternalID, s.Steps["invoice"].Undo.Status)
		return err
	}, booked("invoice"), outOfStock())
	// Output:
	// compensated
	// undone invoice_1 done
}

// A person looked, and the mail is in the outbox.
func ExampleOperator_Resolve() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		if err := c.Resolve(ctx, orderID, "mail", coordinator.Happened("mail_77"), byAnna); err != nil {
			return err
		}
		return orderRests(ctx, c)
	}, lostMail())
	// Output:
	// review in-doubt
	// completed
}

// It is not there: it is sent again, under a new key.
func ExampleDidNotHappen() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		if err := c.Resolve(ctx, orderID, "mail", coordinator.DidNotHappen(), byAnna); err != nil {
			return err
		}
		return orderRests(ctx, c)
	}, lostMail())
	// Output:
	// review in-doubt
	// completed
}

// The mail did not go out and will not: the work goes on without it.
func ExampleOperator_Skip() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		if err := c.Skip(ctx, orderID, "mail", nil, byAnna); err != nil {
			return err
		}
		return orderRests(ctx, c)
	}, lostMail())
	// Output:
	// review in-doubt
	// completed
}

// What has happened is undone.
func ExampleOperator_Cancel() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		if err := c.Cancel(ctx, orderID, byAnna); err != nil {
			return err
		}
		return orderRests(ctx, c)
	}, booked("invoice"), lostMail())
	// Output:
	// review in-doubt
	// compensated
}

// What was undone runs again, as the same version of its source.
func ExampleOperator_Rerun() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		started, err := c.Rerun(ctx, orderID, "ticket 4711", byAnna)
		fmt.Println(started.Revised)
		return err
	}, booked("invoice"), outOfStock())
	// Output:
	// compensated
	// true
}

// Nothing is sent to a destination until it is resumed.
func ExampleOperator_PauseScope() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := c.PauseScope(ctx, coordinator.OfSaga("order"), byAnna); err != nil {
			return err
		}
		acts, err := c.Acts(ctx, coordinator.OfSaga("order"), 0)
		for _, a := range acts {
			fmt.Println(a.By.Name, a.Paused)
		}
		return err
	}, booked("invoice"))
	// Output: anna true
}

// A work that waits for a time goes on now.
func ExampleOperator_Wake() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if _, err := c.Start(ctx, orderID.Saga, orderID.Work, "book", nil); err != nil {
			return err
		}
		for {
			if err := c.Wake(ctx, orderID, byAnna); !errors.Is(err, coordinator.ErrNotWaiting) {
				if err != nil {
					return err
				}
				return orderRests(ctx, c)
			}
		}
	}, saga.Delay[string]("cooling-off", 24*time.Hour), booked("invoice"))
	// Output: completed
}

// A list has what a filter selects.
func ExampleOperator_List() {
	exampled(func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := beginOrder(ctx, c); err != nil {
			return err
		}
		for one, err := range c.List(ctx, coordinator.Filter{Status: saga.Review}) {
			if err != nil {
				return err
			}
			fmt.Println(one.ID.Work, one.Reason)
		}
		return nil
	}, lostMail())
	// Output:
	// review in-doubt
	// shop:order:1 in-doubt
}
