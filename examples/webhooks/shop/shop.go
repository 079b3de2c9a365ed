// Package shop plays the source of truth, as small as can be.
package shop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
)

// Secret is what the shop signs its webhooks with.
const Secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // of no real shop

// Order is an order as the shop has it.
type Order struct {
	ID      string `json:"id"`
	Version int64  `json:"version"` // grows by one with every change
	Total   string `json:"total"`
}

// event is what the shop tells.
type event struct {
	Topic string `json:"type"`
	Order Order  `json:"data"`
}

// Shop has orders, and tells of them.
type Shop struct {
	mu     sync.Mutex
	latest map[string]event // by order
	sent   int
}

// New returns a shop without orders.
func New() *Shop { return &Shop{latest: map[string]event{}} }

// Order is an order as it is now.
func (s *Shop) Order(id string) (Order, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.latest[id]
	return e.Order, ok && e.Topic != "order.deleted"
}

// Tell sends the webhooks of an order, late, twice and out of order, and waits for what each leads
// to.
func (s *Shop) Tell(ctx context.Context, out io.Writer, url string, wait func(ctx context.Context, saga, work string) (saga.Summary, error)) error {
	for _, w := range []struct {
		event   event
		comment string
		settled saga.Status
	}{
		{event{"order.created", Order{ID: "42", Version: 1, Total: "20.00"}}, "", saga.Completed},
		{event{"order.updated", Order{ID: "42", Version: 3, Total: "25.00"}}, " (version 2 is late)", saga.Completed},
		{event{"order.updated", Order{ID: "42", Version: 2, Total: "22.00"}}, " (here it is: nothing follows)", saga.Completed},
		{event{"order.updated", Order{ID: "42", Version: 3, Total: "25.00"}}, " (again: nothing follows)", saga.Completed},
		{event{"order.deleted", Order{ID: "42", Version: 4}}, "", saga.Compensated},
		{event{"order.updated", Order{ID: "42", Version: 3, Total: "25.00"}}, " (an old one, months later: nothing follows)", saga.Compensated},
	} {
		fmt.Fprintf(out, "webhook: %s, version %d%s\n", w.event.Topic, w.event.Order.Version, w.comment)
		if err := s.send(ctx, url, w.event); err != nil {
			return err
		}
		settled := func() bool {
			is, err := wait(ctx, "invoice-order", "shop:order:"+w.event.Order.ID)
			return err == nil && is.Status == w.settled && saga.CompareRevisions(cmp.Or(is.NewestRevision, is.Revision), fmt.Sprint(w.event.Order.Version)) >= 0
		}
		if err := until(ctx, settled); err != nil {
			return fmt.Errorf("order %s did not come to rest: %w", w.event.Order.ID, err)
		}
	}
	return nil
}

// until waits until something is so, half a minute at most.
func until(ctx context.Context, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for !so() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// send delivers a webhook, signed.
func (s *Shop) send(ctx context.Context, url string, e event) error {
	id := s.note(e)
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := webhook.SignStandard(r.Header, Secret, id, time.Now(), body); err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the webhook was answered with %s", answer.Status)
	}
	return nil
}

// note remembers what is newest and names the delivery.
func (s *Shop) note(e event) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest[e.Order.ID].Order.Version < e.Order.Version {
		s.latest[e.Order.ID] = e
	}
	s.sent++
	return fmt.Sprintf("msg_%d", s.sent)
}
