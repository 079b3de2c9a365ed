package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
)

// Order is an order as the shop has it.
type Order struct {
	ID      string `json:"id"`
	Version int64  `json:"version"` // grows by one with every change
	Total   string `json:"total"`
}

// Webhook is what the shop tells.
type Webhook struct {
	Topic string `json:"type"`
	Order Order  `json:"data"`
}

// Shop is the source of truth, as small as can be.
type Shop struct {
	Secret string // which it signs its webhooks with

	mu     sync.Mutex
	latest map[string]Webhook // by order
	sent   int
}

// NewShop returns a shop without orders.
func NewShop() *Shop {
	return &Shop{Secret: "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=", latest: map[string]Webhook{}} //nolint:gosec // of no real shop
}

// Fetch answers with the order as it is now.
func (s *Shop) Fetch(_ context.Context, o inbox.Object) (inbox.Fetched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.latest[o.ID]
	if !ok || w.Topic == "order.deleted" {
		return inbox.Fetched{Gone: true}, nil
	}
	body, err := json.Marshal(w.Order)
	return inbox.Fetched{Version: inbox.Counter(w.Order.Version), Body: body}, err
}

// Send delivers a webhook, signed.
func (s *Shop) Send(ctx context.Context, client *http.Client, url string, w Webhook) error {
	id := s.note(w)
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := webhook.SignStandard(r.Header, s.Secret, id, time.Now(), body); err != nil {
		return err
	}
	answer, err := client.Do(r)
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
func (s *Shop) note(w Webhook) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest[w.Order.ID].Order.Version < w.Order.Version {
		s.latest[w.Order.ID] = w
	}
	s.sent++
	return fmt.Sprintf("msg_%d", s.sent)
}
