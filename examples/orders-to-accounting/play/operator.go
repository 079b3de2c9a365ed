package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/saga"
)

// operator answers what only a person can know: whether an e-mail went out. It opens the mailbox, or
// looks into shop and books, and says what is there, with the call that amends resolve uses.
type operator struct {
	works ledger.Ledger
	world *outside.World
	out   io.Writer
	by    saga.Actor

	settled time.Duration // how long a letter may still be on its way after its work came to review
	seen    map[sighting]time.Time

	byHand  bool   // another person answers the reviews, in the console
	letters string // the file with the letters, for that person

	decides  bool // with -approve
	approved int  // on how much it voted
}

// sighting is one stay of a work in review. Its moment is told from other stays by the database's clock,
// and measured with ours: the two need not agree.
type sighting struct {
	number  int64
	updated time.Time
}

// sees notes which works are in review now.
func (o *operator) sees(review []ledger.Instance) {
	if o.seen == nil {
		o.seen = map[sighting]time.Time{}
	}
	for i := range review {
		s := sighting{review[i].Number, review[i].Updated}
		if _, known := o.seen[s]; !known {
			o.seen[s] = time.Now()
		}
	}
}

// ripe reports whether no letter can be on its way any more: a person who looks too early sends twice.
func (o *operator) ripe(review []ledger.Instance) bool {
	return !slices.ContainsFunc(review, func(h ledger.Instance) bool {
		since, known := o.seen[sighting{h.Number, h.Updated}]
		return !known || time.Since(since) < o.settled
	})
}

// review answers every review, and those that follow from sending again, until every work has ended. It
// returns what was unconfirmed at first and how many answers it took.
func (o *operator) review(ctx context.Context) (unconfirmed []ledger.Instance, resolved int, err error) {
	for round, announced := 1, 0; ; {
		c, err := o.look(ctx)
		if err != nil {
			return unconfirmed, resolved, err
		}
		o.sees(c.review)
		switch {
		case c.live > 0:
			// It comes to its end or back to review.
		case len(c.review) == 0:
			if resolved > 0 {
				fmt.Fprintln(o.out)
			}
			return unconfirmed, resolved, nil
		case announced < round:
			o.announce(round, c.review)
			announced = round
			if round == 1 {
				unconfirmed = c.review
			}
		case o.byHand:
			// That person takes as long as it takes, and each answer may bring the next question.
		case o.ripe(c.review):
			n, err := o.answer(ctx, c.review)
			resolved += n
			if err != nil {
				return unconfirmed, resolved, err
			}
			round++
		}
		if err := outside.Pause(ctx, 100*time.Millisecond); err != nil {
			return unconfirmed, resolved, err
		}
	}
}

// What the person finds, and what follows.
const (
	arrived = "in the mailbox, so it happened"
	missed  = "not there, so it is sent again"
	deleted = "deleted in the shop meanwhile, so there is nothing to mark"
	stands  = "in the books, and other than the shop has it by now: it happened"
)

// answer gives a resolution on each work, prints the orders by what it was, on as few lines as it takes,
// and returns how many got one.
func (o *operator) answer(ctx context.Context, review []ledger.Instance) (n int, err error) {
	said := map[string][]string{}
	for i := range review {
		var words string
		if words, err = o.resolve(ctx, review[i]); err != nil {
			break
		}
		said[words] = append(said[words], orderOf(review[i].ID.Work))
		n++
	}
	const perLine = 12
	for _, words := range []string{arrived, missed, deleted, stands} {
		if len(said[words]) > 0 {
			fmt.Fprintf(o.out, "  %s (%d):\n", words, len(said[words]))
		}
		for line := range slices.Chunk(said[words], perLine) {
			fmt.Fprintf(o.out, "    %s\n", strings.Join(line, " "))
		}
	}
	return n, err
}

// resolve answers one review, and says what the person has found.
func (o *operator) resolve(ctx context.Context, h ledger.Instance) (words string, err error) {
	const letter, marking, booking = "receipt", "mark-synced", "invoice"
	desk := coordinator.NewOperator(o.works)
	summary, err := desk.Show(ctx, h.ID)
	if err != nil {
		return "", err
	}
	if h.Reason == saga.ReasonAfterPivot && !summary.Steps[marking].Done {
		if _, err := o.world.Shop.Order(orderOf(h.ID.Work)); outside.Refused(err, outside.CodeUnknownOrder) {
			return deleted, desk.Resolve(ctx, h.ID, marking, coordinator.Happened(""), o.by)
		}
	}
	if h.Reason == saga.ReasonInDoubt && !summary.Steps[booking].Done {
		if invoice := o.standing(h.ID.Work); invoice != "" {
			return stands, desk.Resolve(ctx, h.ID, booking, coordinator.Happened(invoice), o.by)
		}
	}
	if summary.Steps[letter].Done || h.Reason != saga.ReasonInDoubt {
		return "", fmt.Errorf("%s is in review (%s: %s), and a look into the mailbox does not answer that. %s", h.ID.Work, h.Reason, summary.Note, summary.Next)
	}
	if found := o.world.Mailbox.About(h.ID.Work); len(found) > 0 {
		return arrived, desk.Resolve(ctx, h.ID, letter, coordinator.Happened(found[0].ID), o.by)
	}
	return missed, desk.Resolve(ctx, h.ID, letter, coordinator.DidNotHappen(), o.by)
}

// announce says what the person is asked.
func (o *operator) announce(round int, review []ledger.Instance) {
	if round > 1 {
		fmt.Fprintln(o.out, "Of those sent again, some lost the answer again:")
		return
	}
	fmt.Fprintf(o.out, "%s unconfirmed: the mail server's answer was lost, or the sync was\n"+
		"killed before it came. A mail server cannot be asked, and amends does not guess.\n",
		desk.Counted(len(review), "receipt is", "receipts are"))
	if !o.byHand {
		fmt.Fprint(o.out, "A person opens the mailbox and says what is there, as with amends resolve:\n")
		return
	}
	fmt.Fprintf(o.out, "You know: look whether there is a letter, and say so in the console, under \"Needs me\".\n"+
		"  grep -A6 'X-Order: %s' %s\n\n", review[0].ID.Work, o.letters)
}

// orderOf is the number of the order a work is about.
func orderOf(work string) string { return work[strings.LastIndex(work, ":")+1:] }

// standing looks into the books for the one invoice of an order that counts; "" when there is none, or
// several.
func (o *operator) standing(work string) string {
	live := slices.DeleteFunc(o.world.Books.Lookup(work), func(inv outside.Invoice) bool { return inv.State == outside.Void })
	if len(live) != 1 {
		return ""
	}
	return live[0].ID
}

// look counts the works, and first decides what waits for approval, with -approve.
func (o *operator) look(ctx context.Context) (census, error) {
	if o.decides {
		if err := o.approve(ctx); err != nil {
			return census{}, err
		}
	}
	return count(ctx, o.works)
}

// approve approves of everything that waits for it, as a person of finance who looks at each.
func (o *operator) approve(ctx context.Context) error {
	desk := coordinator.NewOperator(o.works)
	by := coordinator.Voter{Actor: saga.Actor{Name: "finance of the example", Reason: "looked at the order"}, Roles: []string{"finance"}}
	for a, err := range desk.Approvals(ctx) {
		if err != nil {
			return err
		}
		switch err := desk.Vote(ctx, a.ID, a.Step, true, a.Digest, by); {
		case err == nil:
			o.approved++
		case errors.Is(err, coordinator.ErrNotOpen), errors.Is(err, coordinator.ErrOtherShown), errors.Is(err, coordinator.ErrVoted):
			// it moved meanwhile: it is looked at again
		default:
			return err
		}
	}
	return nil
}
