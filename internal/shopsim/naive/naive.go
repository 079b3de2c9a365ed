// Package naive is the sync job as it is often written: a loop over the paid
// orders that carry no mark yet, four calls for each, a helper that tries
// everything three times, and a log line when that was not enough, because the
// next run will start over with whatever is still unmarked.
//
// It hears of nothing after the mark: it takes no webhooks and never looks at a
// marked order again. So it is set to a world in which customers leave marked
// orders alone; in any other, each edit would be a wrong invoice and each late
// cancel an orphan, without a single fault.
//
// It is written with care and it is wrong. It keeps no record of what it set
// out to do, so whenever an answer is lost, or the process dies between two
// calls, it either does something again or never finishes it. It is here to
// be audited beside the sync that uses amends, in an equal world with equal
// faults.
package naive

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// Config says where the world is and how hard to try.
type Config struct {
	ShopURL  string
	BooksURL string
	MailAddr string
	From     string // the sender of the receipts

	// Timeout bounds each try of each call.
	Timeout time.Duration
	// Tries is how often a call is tried, and Pause how long the second try
	// waits; the third waits twice that.
	Tries int
	Pause time.Duration
	// Workers is how many orders are worked on at once.
	Workers int
	// Every is the time between two runs.
	Every time.Duration

	// Log gets a line for each order that failed.
	Log logrus.FieldLogger
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.From == "" {
		c.From = "shop@shop.example"
	}
	if c.Timeout == 0 {
		c.Timeout = time.Second
	}
	if c.Tries == 0 {
		c.Tries = 3
	}
	if c.Pause == 0 {
		c.Pause = 50 * time.Millisecond
	}
	if c.Workers == 0 {
		c.Workers = 8
	}
	if c.Every == 0 {
		c.Every = 200 * time.Millisecond
	}
	if c.Log == nil {
		c.Log = logrus.StandardLogger()
	}
	return c
}

// Run works through the shop's orders, run after run, until a run finds no
// paid order without a mark. It returns nil then, and the context's error when
// that ends first. What fails on the way is logged, not returned: there is
// always a next run.
func Run(ctx context.Context, c Config) error {
	c = c.withDefaults()
	transport := &http.Transport{MaxIdleConnsPerHost: c.Workers}
	defer transport.CloseIdleConnections()
	j := &job{Config: c, http: &http.Client{Transport: transport}}
	for {
		todo, err := j.unsynced(ctx)
		switch {
		case err != nil:
			c.Log.WithError(err).Warn("cannot list orders")
		case len(todo) == 0:
			return nil
		default:
			j.work(ctx, todo)
		}
		if err := pause(ctx, c.Every); err != nil {
			return fmt.Errorf("naive sync: stopped: %w", err)
		}
	}
}

// job is the sync job with its HTTP client.
type job struct {
	Config
	http *http.Client
}

// work does one run over the orders.
func (j *job) work(ctx context.Context, todo []shop.Order) {
	var group errgroup.Group
	group.SetLimit(j.Workers)
	for _, o := range todo {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := j.order(ctx, o); err != nil {
				j.Log.WithField("order", o.Ref()).WithError(err).Warn("order failed, the next run will try again")
			}
			return nil
		})
	}
	_ = group.Wait()
}

// unsynced lists the paid orders without a mark.
func (j *job) unsynced(ctx context.Context) ([]shop.Order, error) {
	var todo []shop.Order
	after := ""
	for {
		var page shop.Page
		query := url.Values{"status": {"paid"}, "synced": {"no"}, "limit": {"200"}, "after": {after}}
		if err := j.call(ctx, http.MethodGet, j.ShopURL+"/orders?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		if len(page.Orders) == 0 {
			return todo, nil
		}
		todo, after = append(todo, page.Orders...), page.Next
	}
}

// order syncs one order. This is the function that people write.
func (j *job) order(ctx context.Context, o shop.Order) error {
	var customer books.Customer
	contact := books.Contact{Name: o.Customer.Name, Email: o.Customer.Email}
	if err := j.call(ctx, http.MethodPut, j.BooksURL+"/customers/"+o.Customer.Ref(), contact, &customer); err != nil {
		return fmt.Errorf("customer: %w", err)
	}
	var invoice books.Invoice
	draft := books.Draft{Customer: customer.ID, Reference: o.Ref(), Lines: lines(o)}
	if err := j.call(ctx, http.MethodPost, j.BooksURL+"/invoices", draft, &invoice); err != nil {
		return fmt.Errorf("invoice: %w", err)
	}
	if err := j.call(ctx, http.MethodPut, j.ShopURL+"/orders/"+o.ID+"/synced", shop.Mark{InvoiceID: invoice.ID}, nil); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	if err := j.receipt(ctx, o, invoice); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	return nil
}

func lines(o shop.Order) []books.Line {
	lines := make([]books.Line, len(o.Lines))
	for i, l := range o.Lines {
		lines[i] = books.Line{Description: l.Description, Quantity: l.Quantity, UnitCents: l.UnitCents}
	}
	return lines
}

func (j *job) receipt(ctx context.Context, o shop.Order, invoice books.Invoice) error {
	letter := mail.Letter{
		From: j.From, To: o.Customer.Email, Order: o.Ref(),
		MessageID: "receipt." + o.ID + "@shop.example",
		Subject:   "Your order " + o.ID,
		Text:      fmt.Sprintf("Thank you, %s. Your invoice is %s.", o.Customer.Name, invoice.ID),
	}
	return j.retry(ctx, func(ctx context.Context) error {
		return mail.Send(ctx, j.MailAddr, letter, nil)
	})
}

// retry tries something a few times, unless it was refused.
func (j *job) retry(ctx context.Context, try func(context.Context) error) error {
	var err error
	for n := range j.Tries {
		if n > 0 {
			if err := pause(ctx, time.Duration(n)*j.Pause); err != nil {
				return err
			}
		}
		attempt, cancel := context.WithTimeout(ctx, j.Timeout)
		err = try(attempt)
		cancel()
		var refused *refusal
		if err == nil || errors.As(err, &refused) {
			return err
		}
	}
	return fmt.Errorf("gave up after %d tries: %w", j.Tries, err)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
