package webhook

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// Shopify returns the provider for the webhooks of a Shopify app; the secret is the app's client secret. The
// tenant is the shop's domain. A body is the whole object as it was when the event happened, also in a repeated
// delivery; its version is updated_at, in seconds. A deletion is only an id, so it is a hint.
//
// The signature covers the body and no time; topic, shop and ids are headers that nobody signed. An event is the
// same as another when shop, topic and event id are. After a rotation Shopify may sign with the old secret
// for an hour: keep both. It repeats a delivery eight times within four hours and then removes the
// subscription.
func Shopify() Provider {
	return Provider{
		Name: "Shopify", Key: plainKey, Claim: base64Claim("X-Shopify-Hmac-SHA256"),
		Parse: shopifyEvents,
	}
}

func shopifyEvents(m Message) ([]reconcile.Event, error) {
	var b struct {
		ID      word
		Updated word `json:"updated_at"`
	}
	if !isObject(m.Body) || json.Unmarshal(m.Body, &b) != nil {
		return nil, errors.New("it is no object of Shopify")
	}
	topic, shop := m.Header.Get("X-Shopify-Topic"), m.Header.Get("X-Shopify-Shop-Domain")
	if shop == "" {
		return nil, errors.New("its header names no shop")
	}
	objects, happened, _ := strings.Cut(topic, "/") // orders/updated
	e := reconcile.Event{
		Object: reconcile.Object{Tenant: shop, Type: singular(objects), ID: string(b.ID)},
		Topic:  topic, ID: m.Header.Get("X-Shopify-Webhook-Id"), Dedupe: byID(topic, m.Header.Get("X-Shopify-Event-Id")),
		Payload: reconcile.Whole, Version: versionAt(b.Updated, time.Second),
		At: timeOf(word(m.Header.Get("X-Shopify-Triggered-At"))), Body: m.Body,
	}
	if happened == "delete" {
		e.Payload, e.Version, e.Deleted = reconcile.Thin, reconcile.Version{}, true
	}
	return []reconcile.Event{e}, nil
}
