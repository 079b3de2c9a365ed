package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/mail"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// census counts the works of the ledger by where they stand.
type census struct {
	works    int
	live     int
	finished int
	review   []ledger.Head
}

// count reads every head of the ledger.
func count(ctx context.Context, r ledger.Reader) (census, error) {
	var c census
	f := ledger.Filter{Saga: sagaName, Limit: 1000}
	for {
		heads, err := r.List(ctx, f)
		if err != nil || len(heads) == 0 {
			return c, err
		}
		for i := range heads {
			c.works++
			switch s := heads[i].Status; {
			case s.Terminal():
				c.finished++
			case s.Parked() && heads[i].Posted == heads[i].Consumed:
				c.review = append(c.review, heads[i])
			default:
				c.live++ // also a parked work with a verdict that nobody has applied yet
			}
		}
		f.After = heads[len(heads)-1].Number
	}
}

// operator is the person who is asked where only a person can know: whether an e-mail went out. The person
// opens the mailbox and says what is there, with the verb that amends resolve uses.
type operator struct {
	desk    *coordinator.Operator
	mailbox *mail.Mailbox
	out     io.Writer
	by      coordinator.By
	settled time.Duration // how long a letter may still be on its way after its attempt ended
}

// resolve answers one review, and says whether the e-mail had gone out.
func (o *operator) resolve(ctx context.Context, h ledger.Head) (sent bool, err error) {
	summary, err := o.desk.Show(ctx, h.ID)
	if err != nil {
		return false, err
	}
	step := "receipt"
	if summary.Steps[step].Done || h.Reason != saga.ReasonInDoubt {
		return false, fmt.Errorf("%s is in review (%s: %s), and the mailbox cannot answer that", h.ID, h.Reason, summary.Note)
	}
	verdict := coordinator.DidNotHappen()
	if found := o.mailbox.About(h.ID.Work); len(found) > 0 {
		verdict, sent = coordinator.Happened(found[0].ID), true
	}
	return sent, o.desk.Resolve(ctx, h.ID, step, verdict, o.by)
}

// settle resolves every review, and those that follow from sending again, until every work has ended.
func (o *operator) settle(ctx context.Context, r ledger.Reader) (resolved int, err error) {
	for {
		c, err := count(ctx, r)
		if err != nil {
			return resolved, err
		}
		if c.live == 0 && len(c.review) == 0 {
			return resolved, nil
		}
		if c.live > 0 || !o.ripe(c.review) {
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return resolved, err
			}
			continue
		}
		happened, again, err := o.round(ctx, c.review)
		resolved += len(happened) + len(again)
		if err != nil {
			return resolved, err
		}
		o.say("in the mailbox, so it happened", happened)
		o.say("not there, so it did not happen and is sent again", again)
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return resolved, err
		}
	}
}

// ripe reports whether no letter can be on its way any more: a person who looks too early sends twice.
func (o *operator) ripe(review []ledger.Head) bool {
	return !slices.ContainsFunc(review, func(h ledger.Head) bool { return time.Since(h.Updated) < o.settled })
}

// round answers every review there is.
func (o *operator) round(ctx context.Context, review []ledger.Head) (happened, again []string, err error) {
	for i := range review {
		sent, err := o.resolve(ctx, review[i])
		if err != nil {
			return happened, again, err
		}
		if work := review[i].ID.Work; sent {
			happened = append(happened, work)
		} else {
			again = append(again, work)
		}
	}
	return happened, again, nil
}

// say prints which works got a verdict, five a line.
func (o *operator) say(verdict string, works []string) {
	if len(works) == 0 {
		return
	}
	fmt.Fprintf(o.out, "  %d %s:\n", len(works), verdict)
	for line := range slices.Chunk(works, 5) {
		fmt.Fprintf(o.out, "    %s\n", strings.Join(line, " "))
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
