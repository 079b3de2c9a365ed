package town

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// Story is what happens while a program runs, and what is said of it.
type Story struct {
	shop  Shop
	books Books
	out   io.Writer
	acts  []act
	begun bool // the sagas run from the beginning
}

// FirstPart is told of a new program.
func FirstPart(shop Shop, books Books, out io.Writer) Story {
	return Story{shop, books, out, []act{unheard, told, lost, tampered, decided}, true}
}

// SecondPart is told of one whose ledger was deleted.
func SecondPart(shop Shop, books Books, out io.Writer) Story {
	return Story{shop, books, out, []act{rebuilt}, false}
}

// Or is when a job of the program runs by the clock. While a story is told it asks for every run
// itself.
func (s Story) Or(text string) string {
	if len(s.acts) > 0 {
		return "@yearly"
	}
	return text
}

// Tell runs the program and tells the story.
func (s Story) Tell(ctx context.Context, db store.DB, c *coordinator.Coordinator, jobs *schedule.Runner, receiver http.Handler, sagas func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := &performance{Story: s, db: db, c: c, jobs: jobs, sagas: sagas, receiver: receiver, anna: saga.Actor{Name: "anna", Reason: "the story goes on"}}
	p.running.Go(func() error { return jobs.Run(ctx) })
	if s.begun {
		p.work(ctx)
	}
	err := p.tell(ctx, s.acts...)
	stop()
	return errors.Join(err, p.running.Wait())
}

// act is one part of a story.
type act func(ctx context.Context, p *performance) error

// performance is a story as it is told.
type performance struct {
	Story
	db       store.DB
	c        *coordinator.Coordinator
	jobs     *schedule.Runner
	sagas    func(context.Context) error
	receiver http.Handler
	running  errgroup.Group
	anna     saga.Actor
	working  bool   // the sagas run
	shown    string // of the books
}

// work lets the sagas run.
func (p *performance) work(ctx context.Context) {
	p.working = true
	p.running.Go(func() error { return p.sagas(ctx) })
}

func (p *performance) tell(ctx context.Context, acts ...act) error {
	for _, a := range acts {
		if err := a(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func unheard(ctx context.Context, p *performance) error {
	for i, cents := range []int64{2000, 2500, 850, 1200, 9900} {
		p.shop.Put(Order{ID: fmt.Sprint(41 + i), Status: outside.Paid, TotalCents: cents})
	}
	p.say("Five orders are in the shop, and no webhook has come. A new job only plans.")
	if err := p.ask(ctx, "orders-compared", ""); err != nil {
		return err
	}
	p.say("Anna has read the plan, and approves the job.")
	if err := schedule.Approve(ctx, p.db, "orders-compared", saga.Actor{Name: "anna", Reason: "the plan was read and found right"}); err != nil {
		return err
	}
	return p.tell(ctx, compared, compared)
}

func compared(ctx context.Context, p *performance) error { return p.ask(ctx, "orders-compared", "") }

func told(ctx context.Context, p *performance) error {
	p.say("One more comes in, and its webhook with it.")
	if err := p.webhook(ctx, p.shop.Put(Order{ID: "46", Status: outside.Paid, TotalCents: 500})); err != nil {
		return err
	}
	return p.rest(ctx, "46")
}

func lost(ctx context.Context, p *performance) error {
	p.shop.Put(Order{ID: "47", Status: outside.Paid, TotalCents: 700})
	p.say("Another comes in, and its webhook is lost. The listing of what changed shows it.")
	return p.ask(ctx, "orders-changed", "", "47")
}

func tampered(ctx context.Context, p *performance) error {
	of := func(order string) Invoice { return p.books.Lookup(outside.RefPrefix + order)[0] }
	_, edited := p.books.Update(of("42").ID, outside.Content{Memo: of("42").Memo, TotalCents: 250}, 0)
	_, removed := p.books.Delete(of("43").ID)
	_, cancelled := p.shop.Cancel("44")
	if err := errors.Join(edited, removed, cancelled, p.shop.Delete("45")); err != nil {
		return err
	}
	p.say("A bookkeeper edits one invoice and deletes another. One order is cancelled, and one is not there any more.")
	if err := p.ask(ctx, "orders-compared", "plan"); err != nil {
		return err
	}
	if err := p.plan(ctx); err != nil {
		return err
	}
	return p.ask(ctx, "orders-compared", "")
}

func decided(ctx context.Context, p *performance) error {
	p.say("Anna knows that 43 was deleted by mistake, and has it made again.")
	_, err := p.c.Rerun(ctx, saga.ID{Saga: "invoice-order", Work: outside.RefPrefix + "43"}, "ticket 17", saga.Actor{Name: "anna", Reason: "deleted by mistake"})
	if err != nil {
		return err
	}
	return p.tell(ctx, rested, compared)
}

func rebuilt(ctx context.Context, p *performance) error {
	p.say("The ledger is deleted. It is rebuilt from the shop and the books, while nothing runs.")
	if err := p.ask(ctx, "orders-compared", "rebuild"); err != nil {
		return err
	}
	p.work(ctx)
	p.say("Then all goes on.")
	if err := p.ask(ctx, "orders-changed", "", "46"); err != nil {
		return err
	}
	return compared(ctx, p)
}

func (p *performance) say(what string) { fmt.Fprintf(p.out, "%s\n", what) }

// webhook tells the program of an order.
func (p *performance) webhook(ctx context.Context, w outside.Webhook) error {
	door := httptest.NewServer(p.receiver)
	defer door.Close()
	return outside.Tell(ctx, door.URL+"/webhooks/shop", Secret, w)
}

// ask asks for a run of a job, as amends does, and waits until it has ended and the instances are
// at rest.
func (p *performance) ask(ctx context.Context, job, what string, orders ...string) error {
	asked, err := p.jobs.Request(ctx, job, what, p.anna)
	for errors.Is(err, schedule.ErrUnknown) { // the process has only just begun
		if err = outside.Pause(ctx, beat); err == nil {
			asked, err = p.jobs.Request(ctx, job, what, p.anna)
		}
	}
	for err == nil && asked.Open() {
		if err = outside.Pause(ctx, beat); err == nil {
			asked, err = p.db.Run(ctx, job, asked.Number)
		}
	}
	if err != nil {
		return err
	}
	if asked.Result == schedule.Failed {
		return errors.New(asked.Error)
	}
	fmt.Fprintf(p.out, "  %s: %s, %d seen", cmp.Or(what, job), asked.Result, asked.Seen)
	if asked.Plan != "" {
		fmt.Fprintf(p.out, ", %d planned, %d applied", asked.Planned, asked.Applied)
	}
	if asked.Note != "" {
		fmt.Fprintf(p.out, "; %s", asked.Note)
	}
	fmt.Fprintln(p.out)
	return p.rest(ctx, orders...)
}

// plan writes the newest plan, as amends does.
func (p *performance) plan(ctx context.Context) error {
	latest, err := p.db.Latest(ctx, "orders")
	if err != nil {
		return err
	}
	return plan.WriteText(p.out, &latest.Plan, func(c plan.Class, n int) ([]plan.Finding, error) {
		rows, err := p.db.Findings(ctx, plan.FindingQuery{Plan: latest.Ref(), Class: c, Limit: n})
		var fs []plan.Finding
		for _, r := range rows {
			fs = append(fs, r.Finding)
		}
		return fs, err
	})
}

func rested(ctx context.Context, p *performance) error { return p.rest(ctx) }

// rest waits until every instance is at rest, those of some orders among them, and says what is in
// the books by then.
func (p *performance) rest(ctx context.Context, orders ...string) error {
	if p.working {
		if err := p.wait(ctx, orders); err != nil {
			return err
		}
	}
	if now := p.books.String(); now != p.shown {
		p.shown = now
		p.say("  books: " + now)
	}
	return nil
}

// beat is how often the story looks.
const beat = 5 * time.Millisecond

func (p *performance) wait(ctx context.Context, orders []string) error {
	var works []string
	for _, id := range orders {
		works = append(works, outside.RefPrefix+id)
	}
	for i, err := range p.c.List(ctx, coordinator.Filter{Saga: "invoice-order"}) {
		if err != nil {
			return err
		}
		works = append(works, i.ID.Work)
	}
	for _, work := range works {
		_, err := p.c.Wait(ctx, "invoice-order", work)
		for errors.Is(err, coordinator.ErrNotFound) { // what was received is not applied yet
			if err = outside.Pause(ctx, beat); err == nil {
				_, err = p.c.Wait(ctx, "invoice-order", work)
			}
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", work, err)
		}
	}
	return nil
}
