package desk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// recovers is a store in memory as a whole one, of which the jobs may not be read.
type recovers struct {
	*memory.DB
	ledgertest.Keeps

	broken bool
}

func (r recovers) Jobs(ctx context.Context) (schedule.Board, error) {
	if r.broken {
		return schedule.Board{}, errors.New("no answer")
	}
	return r.DB.Jobs(ctx)
}

func (recovers) Recover(context.Context, ledger.Recovery) (ledger.Recovered, error) {
	return ledger.Recovered{}, nil
}

func (recovers) StartTx(context.Context, ledger.Tx, ledger.Entry) (ledger.Answer, error) {
	return ledger.Answer{}, nil
}

// What needs people is told once each: approvals when a quarter of their time is left, and again when they are twice as many; a job whose
// latest run left to a person what it would have done. What is healthy needs none, and what cannot
// be read hides nothing else.
func TestNeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		log := logrus.New()
		log.SetLevel(logrus.PanicLevel)
		p, err := saga.Define("payment", 1, saga.Approve[int]("pay").By("finance").Votes(1).Within(40*time.Minute),
			saga.Do("charge", func(context.Context, saga.Call[int]) (struct{}, error) { return struct{}{}, nil }).Idempotent().NoID().NoUndo("it is a test"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := coordinator.New(db, &coordinator.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Register(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		result := schedule.OK
		jobs, err := schedule.New(db, []schedule.Job{{Name: "orders", Schedule: "@every 5m", Work: func(context.Context, *schedule.Run) (schedule.Outcome, error) {
			return schedule.Outcome{Result: result, Note: "40 would be voided"}, nil
		}}}, &schedule.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- c.Run(ctx) }()
		go func() { ended <- jobs.Run(ctx) }()
		pass := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // virtual time
			synctest.Wait()
		}
		needs := func() (all []string) {
			found, partial, err := New(recovers{db, ledgertest.Keeps{}, false}, "").Needs(t.Context(), 3)
			if err != nil || len(partial) > 0 {
				t.Fatal(partial, err)
			}
			for _, a := range found {
				if a.Kind != "witness" { // memory has none
					all = append(all, fmt.Sprint(a.About, " ", a.Count))
				}
			}
			return all
		}
		start := func(n int) {
			if _, err := c.Start(t.Context(), "payment", fmt.Sprint(n), n, nil); err != nil {
				t.Fatal(err)
			}
		}
		start(1)
		pass(6 * time.Minute)
		start(2)
		if got := needs(); len(got) != 0 {
			t.Errorf("while all is well: %q", got)
		}
		pass(26 * time.Minute)
		if got := needs(); !slices.Equal(got, []string{"approval/payment/pay 1"}) {
			t.Errorf("with one near its end: %q", got)
		}
		result = schedule.Refused
		pass(6 * time.Minute)
		if got := needs(); !slices.Equal(got, []string{"job/orders 1", "approval/payment/pay 2", "approval/payment/pay/2 2"}) {
			t.Errorf("with two: %q", got)
		}
		found, partial, err := New(recovers{db, ledgertest.Keeps{}, true}, "").Needs(t.Context(), 3)
		told := func(a Alert) bool { return a.About == "approval/payment/pay" }
		if err == nil || !slices.Equal(partial, []string{"job/"}) || !slices.ContainsFunc(found, told) {
			t.Errorf("where jobs cannot be read: %+v, partly %q, %v", found, partial, err)
		}
		stop()
		<-ended
		<-ended
	})
}
