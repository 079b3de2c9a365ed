package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Shopify returns the provider for the webhooks of a Shopify app; the secret is the app's client
// secret. The tenant is the shop's domain. A body is the whole object as it was when the event
// happened, also in a repeated delivery; its version is updated_at, in seconds. A deletion is only
// an id, so it is a hint.
//
// The signature covers the body and no time; topic, shop and ids are headers that are not signed.
// So the type of an object is the one that its body names (admin_graphql_api_id); where the topic
// names another, or the body names none, the event is a hint. The shop stands in no body: a source
// has one, or is told so (Sender.Headers). An event is the same as another when shop and body are.
// After a rotation Shopify may sign with the old secret for an hour: keep both. It repeats a
// delivery eight times within four hours and then removes the subscription.
func Shopify() Provider {
	return Provider{
		name: "Shopify", headersUnsigned: true, key: plainKey, claim: base64Claim("X-Shopify-Hmac-SHA256"),
		parse: shopifyEvents,
	}
}

func shopifyEvents(m message) ([]intake.Event, error) {
	var b struct {
		ID      word   `json:"id"`
		GID     string `json:"admin_graphql_api_id"`
		Updated word   `json:"updated_at"`
	}
	if err := object(m.Body, &b); err != nil {
		return nil, fmt.Errorf("it is no object of Shopify: %w", err)
	}
	topic, shop := m.Header.Get("X-Shopify-Topic"), m.Header.Get("X-Shopify-Shop-Domain")
	if shop == "" {
		return nil, errors.New("its header names no shop")
	}
	objects, happened, _ := strings.Cut(topic, "/") // orders/updated
	e := intake.Event{
		Object: inbox.Object{Tenant: shop, ID: string(b.ID)},
		Topic:  topic, ID: m.Header.Get("X-Shopify-Webhook-Id"), Dedupe: intake.DigestOf(string(m.Body)),
		Payload: intake.Whole, Version: versionAt(b.Updated, time.Second), At: timeOf(b.Updated), Body: m.Body,
	}
	m.bind(&e, shopifyType(b.GID, string(b.ID)), singular(objects), happened == "delete")
	return []intake.Event{e}, nil
}

// shopifyNames are the types that the topics call by another name than the bodies.
var shopifyNames = map[string]string{"online_store_theme": "theme", "shopify_payments_dispute": "dispute"}

// shopifyType is the type in a global id, as the topics call it: of gid://shopify/DraftOrder/17
// draft_order.
func shopifyType(gid, id string) string {
	name, of, ok := strings.Cut(strings.TrimPrefix(gid, "gid://shopify/"), "/")
	if of, _, _ = strings.Cut(of, "?"); !ok || of != id {
		return ""
	}
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return cmp.Or(shopifyNames[b.String()], b.String())
}
