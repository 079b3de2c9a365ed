package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// story is what happens, and what is said of it.
type story struct {
	*process
	out   io.Writer
	shown string // of the books
}

// act is one part of it.
type act func(ctx context.Context, s *story) error

func (s *story) tell(ctx context.Context, acts ...act) error {
	for _, a := range acts {
		if err := a(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func unheard(ctx context.Context, s *story) error {
	for _, o := range []Order{{ID: "41", Total: "20.00"}, {ID: "42", Total: "25.00"}, {ID: "43", Total: "8.50"}, {ID: "44", Total: "12.00"}, {ID: "45", Total: "99.00"}} {
		s.shop.Put(o)
	}
	s.say("Five orders are in the shop, and no webhook has come. A new job only plans.")
	if err := s.ask(ctx, "orders-compared", ""); err != nil {
		return err
	}
	s.say("Anna has read the plan, and approves the job.")
	if err := schedule.Approve(ctx, s.db, "orders-compared", "anna", "the plan was read and found right"); err != nil {
		return err
	}
	return s.tell(ctx, compared, compared)
}

func compared(ctx context.Context, s *story) error { return s.ask(ctx, "orders-compared", "") }

func lost(ctx context.Context, s *story) error {
	s.shop.Put(Order{ID: "46", Total: "5.00"})
	s.say("One more comes in, and its webhook is lost. The listing of what changed shows it.")
	return s.ask(ctx, "orders-changed", "", "46")
}

func tampered(ctx context.Context, s *story) error {
	s.books.Edit("inv-42", func(inv *Invoice) { inv.Total = "2.50" })
	s.books.Delete("inv-43")
	s.shop.Put(Order{ID: "44", Total: "12.00", Cancelled: true})
	s.shop.Lose("45")
	s.say("A bookkeeper edits one invoice and deletes another. One order is cancelled, and one is not there any more.")
	if err := s.ask(ctx, "orders-compared", "plan"); err != nil {
		return err
	}
	if err := s.plan(ctx); err != nil {
		return err
	}
	return s.ask(ctx, "orders-compared", "")
}

func decided(ctx context.Context, s *story) error {
	s.say("Anna knows that 43 was deleted by mistake, and has it made again.")
	_, err := s.coordinator.Rerun(ctx, saga.ID{Saga: "invoice-order", Work: mark + "43"}, "ticket 17", saga.Actor{Name: "anna", Reason: "deleted by mistake"})
	if err != nil {
		return err
	}
	return s.tell(ctx, rested, compared)
}

func rebuilt(ctx context.Context, s *story) error {
	s.say("The ledger is deleted. It is rebuilt from the shop and the books, while nothing runs.")
	if err := s.ask(ctx, "orders-compared", "rebuild"); err != nil {
		return err
	}
	s.work(ctx)
	s.say("Then all goes on.")
	if err := s.ask(ctx, "orders-changed", "", "46"); err != nil {
		return err
	}
	return compared(ctx, s)
}

func (s *story) say(what string) { fmt.Fprintf(s.out, "%s\n", what) }

// ask asks for a run of a job, as amends does, and waits until it has ended and the works are at rest.
func (s *story) ask(ctx context.Context, job, what string, orders ...string) error {
	asked, err := schedule.Request(ctx, s.db, job, schedule.Ask{What: what, By: "anna", Why: "the story goes on"})
	for errors.Is(err, schedule.ErrUnknown) { // the process has only just begun
		if err = pause(ctx); err == nil {
			asked, err = schedule.Request(ctx, s.db, job, schedule.Ask{What: what, By: "anna", Why: "the story goes on"})
		}
	}
	for err == nil && asked.Open() {
		if err = pause(ctx); err == nil {
			asked, err = s.db.Run(ctx, job, asked.Number)
		}
	}
	if err != nil {
		return err
	}
	if asked.Verdict == schedule.Failed {
		return errors.New(asked.Error)
	}
	fmt.Fprintf(s.out, "  %s: %s, %d seen", cmp.Or(what, job), asked.Verdict, asked.Seen)
	if asked.Plan != "" {
		fmt.Fprintf(s.out, ", %d planned, %d applied", asked.Planned, asked.Applied)
	}
	if asked.Note != "" {
		fmt.Fprintf(s.out, "; %s", asked.Note)
	}
	fmt.Fprintln(s.out)
	return s.rest(ctx, orders...)
}

// plan writes the newest plan.
func (s *story) plan(ctx context.Context) error {
	latest, err := s.db.Latest(ctx, "orders")
	if err != nil {
		return err
	}
	return plan.WriteText(s.out, &latest.Plan, func(c plan.Class, n int) ([]plan.Finding, error) {
		rows, err := s.db.Findings(ctx, plan.FindingQuery{Plan: latest.Ref(), Class: c, Limit: n})
		var fs []plan.Finding
		for _, r := range rows {
			fs = append(fs, r.Finding)
		}
		return fs, err
	})
}

func rested(ctx context.Context, s *story) error { return s.rest(ctx) }

// rest waits until every work is at rest, those of some orders among them, and says what is in the books by then.
func (s *story) rest(ctx context.Context, orders ...string) error {
	if s.working {
		if err := s.wait(ctx, orders); err != nil {
			return err
		}
	}
	if now := s.books.String(); now != s.shown {
		s.shown = now
		s.say("  books: " + now)
	}
	return nil
}

func (s *story) wait(ctx context.Context, orders []string) error {
	heads, err := ledger.Heads(ctx, s.db, ledger.Filter{Saga: "invoice-order"})
	if err != nil {
		return err
	}
	var works []string
	for _, id := range orders {
		works = append(works, mark+id)
	}
	for _, h := range heads {
		works = append(works, h.ID.Work)
	}
	for _, work := range works {
		_, err := s.coordinator.Wait(ctx, "invoice-order", work)
		for errors.Is(err, ledger.ErrNotFound) { // what was heard is not delivered yet
			if err = pause(ctx); err == nil {
				_, err = s.coordinator.Wait(ctx, "invoice-order", work)
			}
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", work, err)
		}
	}
	return nil
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(5 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
