// Package naive is the sync job as it is often written: a loop over the paid orders that carry no mark
// yet, four calls for each, a helper that tries everything three times, and a log line when that was
// not enough, because the next run will start over with whatever is still unmarked.
//
// It hears of nothing after the mark: it takes no webhooks and never looks at a marked order again.
// So it is set to a world in which customers leave marked orders alone; in any other, each edit would
// be a wrong invoice and each late cancel an orphan, without a single fault.
//
// It is written with care and it is wrong. It keeps no record of what it set out to do, so whenever an
// answer is lost, or the process dies between two calls, it either does something again or never
// finishes it. It is here to be audited beside the sync that uses amends, in an equal world with equal
// faults.
package naive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/outside"
)

// How hard it tries: orders at once, tries of each call, the pause before the second of them (the
// third waits twice that), and the time between two runs.
const (
	workers = 8
	tries   = 3
	between = 50 * time.Millisecond
	every   = 200 * time.Millisecond
)

// Config says where the world is.
type Config struct {
	Shop, Books, Mail string // URLs

	// Timeout bounds each try of each call.
	Timeout time.Duration
	// Log gets a line for each order that failed.
	Log logrus.FieldLogger
}

// Run works through the shop's orders, run after run, until a run finds no paid order without a mark.
// It returns nil then, and the context's error when that ends first. What fails on the way is logged,
// not returned: there is always a next run.
func Run(ctx context.Context, c Config) error {
	transport := &http.Transport{MaxIdleConnsPerHost: workers}
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
		if err := outside.Pause(ctx, every); err != nil {
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
func (j *job) work(ctx context.Context, todo []outside.Order) {
	var group errgroup.Group
	group.SetLimit(workers)
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
func (j *job) unsynced(ctx context.Context) (todo []outside.Order, err error) {
	for after := ""; ; {
		var page outside.Page
		if err := j.call(ctx, http.MethodGet, j.Shop+"/orders?status=paid&synced=no&limit=200&after="+after, nil, &page); err != nil {
			return nil, err
		}
		if len(page.Orders) == 0 {
			return todo, nil
		}
		todo, after = append(todo, page.Orders...), page.Next
	}
}

// order syncs one order. This is the function that people write.
func (j *job) order(ctx context.Context, o outside.Order) error {
	var customer outside.Customer
	contact := outside.Contact{Name: o.Customer.Name, Email: o.Customer.Email}
	if err := j.call(ctx, http.MethodPut, j.Books+"/customers/"+o.Customer.Ref(), contact, &customer); err != nil {
		return fmt.Errorf("customer: %w", err)
	}
	var invoice outside.Invoice
	draft := outside.Draft{Customer: customer.ID, Reference: o.Ref(), Content: outside.Content{Lines: o.Lines}}
	if err := j.call(ctx, http.MethodPost, j.Books+"/invoices", draft, &invoice); err != nil {
		return fmt.Errorf("invoice: %w", err)
	}
	if err := j.call(ctx, http.MethodPut, j.Shop+"/orders/"+o.ID+"/synced", outside.Mark{InvoiceID: invoice.ID}, nil); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	letter := outside.Letter{
		ID: "receipt." + o.ID + "@shop.example", From: "shop@orders.example", To: o.Customer.Email, Order: o.Ref(), Subject: "Your order " + o.ID,
		Text: fmt.Sprintf("Thank you, %s. Your invoice is %s.", o.Customer.Name, invoice.ID),
	}
	if err := j.call(ctx, http.MethodPost, j.Mail+"/mails", letter, nil); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	return nil
}

// errRefused is an answer that trying again will not change.
var errRefused = errors.New("refused")

// call sends in as JSON and decodes the answer into out; either may be nil. It tries a few times,
// unless it was refused.
func (j *job) call(ctx context.Context, method, url string, in, out any) (err error) {
	for n := range tries {
		if n > 0 {
			if err := outside.Pause(ctx, time.Duration(n)*between); err != nil {
				return err
			}
		}
		if err = j.try(ctx, method, url, in, out); err == nil || errors.Is(err, errRefused) {
			return err
		}
	}
	return fmt.Errorf("gave up after %d tries: %w", tries, err)
}

func (j *job) try(ctx context.Context, method, url string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := j.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code >= 500:
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	case code >= 400:
		return fmt.Errorf("%w with %s: %s", errRefused, resp.Status, bytes.TrimSpace(answer))
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}
