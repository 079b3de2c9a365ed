package play

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// The person looks only once no letter can be on its way any more, by a clock of their own: what the
// database calls the time does not matter. A work that comes to review again is waited for again.
func TestOperatorWaitsUntilNoLetterIsOnItsWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &operator{settled: 2 * time.Second}
		longAgo := time.Now().Add(-24 * time.Hour)
		first := ledger.Instance{Number: 1, Updated: longAgo}
		later := ledger.Instance{Number: 2, Updated: time.Now().Add(24 * time.Hour)}
		again := ledger.Instance{Number: 1, Updated: longAgo.Add(time.Second)}
		ripe := func(want bool, when string, review ...ledger.Instance) {
			t.Helper()
			if o.ripe(review) != want {
				t.Errorf("%s: ripe is %t", when, !want)
			}
		}
		ripe(false, "never seen", first)
		o.sees([]ledger.Instance{first})
		ripe(false, "just seen", first)
		time.Sleep(time.Second)
		o.sees([]ledger.Instance{first, later})
		ripe(false, "a second later", first)
		time.Sleep(time.Second)
		o.sees([]ledger.Instance{first, later})
		ripe(true, "settled", first)
		ripe(false, "one settled, one not", first, later)
		time.Sleep(time.Second)
		ripe(true, "both settled", first, later)
		o.sees([]ledger.Instance{again})
		ripe(false, "in review again", again)
		ripe(true, "nothing is in review")
	})
}

// Works are counted by where they stand. A resolution that is not applied yet keeps a work in
// review alive: the person must not answer twice.
func TestCensus(t *testing.T) {
	t.Parallel()
	head := func(n int64, work string, s saga.Status) *ledger.Instance {
		return &ledger.Instance{Number: n, ID: saga.ID{Saga: "order-to-invoice", Work: work}, Status: s}
	}
	answered := head(5, "e", saga.Review)
	answered.Posted = 1
	applied := head(6, "f", saga.Review) // an earlier resolution was applied, and it came back
	applied.Posted, applied.Consumed = 2, 2
	var c census
	for _, h := range []*ledger.Instance{
		head(1, "b", saga.Completed), head(2, "a", saga.Compensated), head(3, "c", saga.Running), head(4, "d", saga.Retrying),
		answered, applied, head(7, "g", saga.Compensated),
	} {
		c.add(h)
	}
	if c.works != 7 || c.finished != 3 || c.live != 3 || len(c.review) != 1 || c.review[0].ID.Work != "f" {
		t.Errorf("%+v", c)
	}
	if c.first != "a" || c.undone != "a" {
		t.Errorf("first %q, undone %q", c.first, c.undone)
	}
}

// The person answers what the mailbox shows, for every work and until all have ended: what is there
// happened, what is not is sent again. What is sent again can come back.
func TestOperatorAnswersFromTheMailbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, said := person()
		box := o.world.Mailbox
		tries := map[string]int{}
		l := runReceipts(t, map[string]func() error{
			"shop:order:1": func() error { return nil },
			"shop:order:2": func() error { deliver(t, box, "shop:order:2"); return errLost },
			"shop:order:3": func() error {
				if tries["3"]++; tries["3"] == 1 {
					return errLost // and never arrived
				}
				deliver(t, box, "shop:order:3")
				return errLost
			},
		})
		synctest.Wait()

		began := time.Now()
		o.works, o.settled = l, 2*time.Second
		unconfirmed, resolved, err := o.review(t.Context())
		if err != nil || len(unconfirmed) != 2 || resolved != 3 {
			t.Errorf("%d unconfirmed, %d resolved, %v; want 2 and 3", len(unconfirmed), resolved, err)
		}
		if waited := time.Since(began); waited < 4*time.Second {
			t.Errorf("answered two rounds within %s, letters settle in %s", waited, o.settled)
		}
		if c, err := count(t.Context(), l); err != nil || c.finished != 3 {
			t.Errorf("%+v, %v", c, err)
		}
		if n := len(box.Messages()); n != 2 || tries["3"] != 2 {
			t.Errorf("%d letters, order 3 sent %d times", n, tries["3"])
		}
		const want = `2 receipts are unconfirmed: the mail server's answer was lost, or the sync was
killed before it came. A mail server cannot be asked, and amends does not guess.
A person opens the mailbox and says what is there, as with amends resolve:
  in the mailbox, so it happened (1):
    2
  not there, so it is sent again (1):
    3
Of those sent again, some lost the answer again:
  in the mailbox, so it happened (1):
    3

`
		if said.String() != want {
			t.Errorf("said\n%s\nwant\n%s", said.String(), want)
		}
	})
}

// A review about anything but a receipt in doubt is not the mailbox's to answer: it is named, with
// what to do, and nothing is resolved.
func TestOperatorDoesNotAnswerWhatTheMailboxCannot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, _ := person()
		o.works = runReceipts(t, map[string]func() error{
			"shop:order:7": func() error { return saga.Permanent(errors.New("no such mailbox")) },
		})
		synctest.Wait()
		_, resolved, err := o.review(t.Context())
		if err == nil || resolved != 0 || !strings.Contains(err.Error(), "shop:order:7") || !strings.Contains(err.Error(), "amends show") {
			t.Errorf("%d resolved, %v", resolved, err)
		}
	})
}

// An order that was edited and then deleted in the shop without a word cannot be marked again. The
// person looks into the shop and says that there is nothing to mark; one that is there is another
// matter.
func TestOperatorLooksIntoTheShop(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			mark := func(_ context.Context, c saga.Call[string]) (string, error) {
				if c.Revision == "2" {
					return "", saga.Permanent(errors.New("there is no such order"))
				}
				return "", nil
			}
			l, c := runSaga(t, mark, func(context.Context, saga.Call[string]) (string, error) { return "", nil })
			for revision, input := range []string{1: "tea", 2: "more tea"} {
				if revision == 0 {
					continue
				}
				if _, err := c.Start(t.Context(), "order-to-invoice", "shop:order:7", input, &saga.StartOptions{Revision: strconv.Itoa(revision)}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			o, _ := person()
			o.works = l
			if !gone {
				o.world.Shop.Add(outside.Order{ID: "7"})
			}
			_, resolved, err := o.review(t.Context())
			if gone != (err == nil) || gone != (resolved == 1) {
				t.Errorf("deleted: %t; %d resolved, %v", gone, resolved, err)
			}
		})
	}
}

// A work whose invoice is in doubt is answered from the books: the one live invoice under its
// reference has happened. None, a void one or several leave the question open.
func TestOperatorLooksIntoTheBooks(t *testing.T) {
	t.Parallel()
	o, _ := person()
	book := func() string {
		inv, err := o.world.Books.Add(outside.Draft{Reference: "shop:order:7", Content: outside.Content{TotalCents: 890}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return inv.ID
	}
	stands := func(want string) {
		t.Helper()
		if got := o.standing("shop:order:7"); got != want {
			t.Errorf("%q stands; want %q", got, want)
		}
	}
	stands("")
	first := book()
	stands(first)
	second := book()
	stands("")
	if _, err := o.world.Books.Void(first); err != nil {
		t.Fatal(err)
	}
	stands(second)
}

// person is an operator over a shop, books and a mailbox in which there is nothing, and what the operator
// says.
func person() (*operator, *bytes.Buffer) {
	var said bytes.Buffer
	nothing := &outside.World{Shop: outside.NewShop(), Books: outside.NewBooks(), Mailbox: &outside.Mailbox{}}
	return &operator{out: &said, by: saga.Actor{Name: "test", Reason: "test"}, world: nothing}, &said
}

var errLost = errors.New("the answer was lost")

func deliver(t *testing.T, box *outside.Mailbox, order string) {
	t.Helper()
	if _, err := box.Deliver(outside.Letter{ID: order, Order: order, To: "ada@post.example"}); err != nil {
		t.Error(err)
	}
}

// runReceipts starts a work with nothing but a receipt for each order, sent as the order says, and
// runs them until the test ends.
func runReceipts(t *testing.T, send map[string]func() error) *memory.DB {
	t.Helper()
	mark := func(context.Context, saga.Call[string]) (string, error) { return "", nil }
	l, c := runSaga(t, mark, func(_ context.Context, c saga.Call[string]) (string, error) { return "", send[c.Work]() })
	for work := range send {
		if _, err := c.Start(t.Context(), "order-to-invoice", work, work, nil); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// runSaga runs works of a mark and a receipt until the test ends.
func runSaga(t *testing.T, mark, receipt func(context.Context, saga.Call[string]) (string, error)) (*memory.DB, *coordinator.Coordinator) {
	t.Helper()
	d, err := saga.Define("order-to-invoice", 1,
		saga.Do("mark-synced", mark).Idempotent().NoUndo("a mark does no harm").Pivot(),
		saga.Do("receipt", receipt).AtMostOnce().NoUndo("a mail cannot be unsent"),
	)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	l := memory.New(nil)
	c, err := coordinator.New(l, &coordinator.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait() // Run has opened its session: what is started from here on is held by it and waits for no poll
	return l, c
}
