package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/memory"
)

// digestOf is the dedupe digest of the only event of a delivery.
func digestOf(t *testing.T, p Provider, h http.Header, body string) intake.Digest {
	t.Helper()
	events := parsed(t, p, h, body)
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	return events[0].Dedupe
}

// What makes two deliveries one event, for every provider: the same fields, and no others.
func TestSameEvent(t *testing.T) {
	t.Parallel()
	woo := func(topic, webhook, delivery string) http.Header {
		return http.Header{wooTopic: {topic}, wooID: {webhook}, wooDelivery: {delivery}}
	}
	shopify := func(topic, event, webhook string) http.Header {
		return http.Header{"X-Shopify-Shop-Domain": {"d"}, "X-Shopify-Topic": {topic}, "X-Shopify-Event-Id": {event}, "X-Shopify-Webhook-Id": {webhook}}
	}
	github := func(delivery string) http.Header {
		return http.Header{"X-Github-Event": {"issues"}, "X-Github-Delivery": {delivery}}
	}
	standard := func(id string) http.Header { return http.Header{"Webhook-Id": {id}} }
	xero := func(id, at, kind string) string {
		return fmt.Sprintf(`{"events":[{"resourceId":%q,"eventDateUtc":%q,"eventType":%q,"eventCategory":"INVOICE","tenantId":"t"}],"entropy":"%s"}`, id, at, kind, t.Name())
	}
	stripe := func(id, object string) string {
		return fmt.Sprintf(`{"id":%q,"object":"event","livemode":true,"type":"invoice.paid","data":{"object":{"id":%q,"object":"invoice"}}}`, id, object)
	}
	const issue, changed = `{"action":"edited","issue":{"id":7}}`, `{"action":"closed","issue":{"id":7}}`
	for name, tc := range map[string]struct {
		provider     Provider
		aHead, bHead http.Header
		aBody, bBody string
		same         bool
	}{
		"stripe: same id":              {Stripe(), nil, nil, stripe("evt_1", "in_1"), stripe("evt_1", "in_1"), true},
		"stripe: other id":             {Stripe(), nil, nil, stripe("evt_1", "in_1"), stripe("evt_2", "in_1"), false},
		"woo: weak delivery id":        {WooCommerce(), woo("order.updated", "12", "d1"), woo("order.updated", "12", "d1"), `{"id":1}`, `{"id":2}`, false},
		"woo: delivery id differs":     {WooCommerce(), woo("order.updated", "12", "d1"), woo("order.updated", "12", "d2"), `{"id":1}`, `{"id":1}`, true},
		"H1: woo, other topic":         {WooCommerce(), woo("order.updated", "12", "d1"), woo("order.created", "12", "d1"), `{"id":1}`, `{"id":1}`, true},
		"H1: woo, other webhook":       {WooCommerce(), woo("order.updated", "12", "d1"), woo("order.updated", "13", "d1"), `{"id":1}`, `{"id":1}`, true},
		"woo: other body":              {WooCommerce(), woo("order.updated", "12", "d1"), woo("order.updated", "12", "d1"), `{"id":1}`, `{"id":1,"a":2}`, false},
		"shopify: sent again":          {Shopify(), shopify("orders/paid", "e1", "w1"), shopify("orders/paid", "e1", "w2"), `{"id":1}`, `{"id":1}`, true},
		"H1: shopify, other event id":  {Shopify(), shopify("orders/paid", "e1", "w1"), shopify("orders/paid", "e2", "w1"), `{"id":1}`, `{"id":1}`, true},
		"shopify: one state, 2 topics": {Shopify(), shopify("orders/paid", "e1", "w1"), shopify("orders/updated", "e1", "w1"), `{"id":1}`, `{"id":1}`, true},
		"github: redelivered":          {GitHub(), github("g1"), github("g1"), issue, issue, true},
		"H1: github, another delivery": {GitHub(), github("g1"), github("g2"), issue, issue, true},
		"xero: same event":             {Xero(), nil, nil, xero("r", "2026-11-20T10:30:00.123", "UPDATE"), xero("r", "2026-11-20T10:30:00.123", "UPDATE"), true},
		"xero: other time":             {Xero(), nil, nil, xero("r", "2026-11-20T10:30:00.123", "UPDATE"), xero("r", "2026-11-20T10:30:00.124", "UPDATE"), false},
		"xero: other type":             {Xero(), nil, nil, xero("r", "2026-11-20T10:30:00.123", "UPDATE"), xero("r", "2026-11-20T10:30:00.123", "CREATE"), false},
		"standard: sent again":         {orders(t), standard("m1"), standard("m1"), paid, paid, true},
		"standard: other id":           {orders(t), standard("m1"), standard("m2"), paid, paid, false},

		// The same id is the same event, whatever the body: the inbox then finds the conflict.
		"C2: standard, other body": {orders(t), standard("m1"), standard("m1"), paid, strings.Replace(paid, "3", "4", 1), true},
		// Neighbouring fields do not run together.
		"C4: webhook and topic": {WooCommerce(), woo("1order.updated", "1", ""), woo("order.updated", "11", ""), `{"id":1}`, `{"id":1}`, false},
		// Without an id it is the content, in whatever order and spacing it is written, and the
		// topic.
		"C5: same content":    {orders(t), nil, nil, paid, strings.Replace(paid, `"type":"order.paid",`, "", 1)[:1] + ` "type" : "order.paid",` + strings.Replace(paid, `"type":"order.paid",`, "", 1)[1:], true},
		"C5: other topic":     {GitHub(), github(""), github(""), issue, changed, false},
		"C5: other object":    {GitHub(), github(""), github(""), issue, `{"action":"edited","issue":{"id":8}}`, false},
		"C5: id and no id":    {orders(t), standard("m1"), nil, paid, paid, false},
		"C5: other content":   {orders(t), nil, nil, paid, strings.Replace(paid, "paid\"}", "sent\"}", 1), false},
		"C5: malformed, same": {orders(t), nil, nil, `{"a`, `{"a`, true},
		"C5: malformed":       {orders(t), nil, nil, `{"a`, `{"b`, false},
	} {
		if same := digestOf(t, tc.provider, tc.aHead, tc.aBody) == digestOf(t, tc.provider, tc.bHead, tc.bBody); same != tc.same {
			t.Errorf("%s: the same event: %t; want %t", name, same, tc.same)
		}
	}
}

// One change told under two ids, by two subscriptions, is one event where the ids are not
// signed. Told in other words it is two, with the same version and fingerprint, by which the gate
// knows the second as a duplicate.
func TestSameChange(t *testing.T) {
	t.Parallel()
	d := open(t, nil, woo())
	order := fixture(t, "woocommerce.json")
	moved := strings.Replace(order, `"_links":{"self":[{"href":"https://shop.example/`, `"_links":{"self":[{"href":"https://www.shop.example/`, 1)
	for i, body := range []string{order, moved, order} {
		h := wooSigned(body)
		h.Set(wooID, fmt.Sprint(i))
		d.post(t, "woo", h, body)
	}
	events := d.inbox.stored()
	if len(events) != 2 || moved == order {
		t.Fatalf("%d events; want 2", len(events))
	}
	for _, e := range events[1:] {
		if e.Dedupe == events[0].Dedupe || e.Version.Compare(events[0].Version) != 0 || e.Fingerprint != events[0].Fingerprint {
			t.Errorf("%+v and %+v", events[0], e)
		}
	}
}

// Over a real store: the same id with another body is answered with 200 and kept beside the
// first as a conflict.
func TestConflict(t *testing.T) {
	t.Parallel()
	store := memory.New(nil)
	d := open(t, nil, shop(t))
	d.Receiver.inbox = store
	other := strings.Replace(paid, `"version":3`, `"version":4`, 1)
	for _, body := range []string{paid, paid, other, paid, other} {
		if got := d.post(t, "shop", signed(t, "msg_1", body), body); got != 200 {
			t.Errorf("answer %d", got)
		}
	}
	rows, err := store.Deliveries(t.Context(), intake.DeliveryFilter{})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v; want 2", len(rows), err)
	}
	conflict, first := rows[0], rows[1]
	if first.Disposition != "" || first.Copies != 3 || string(conflict.Body) == string(first.Body) {
		t.Errorf("first %+v", first)
	}
	if conflict.Disposition != intake.Conflict && conflict.Outcome != intake.Conflict {
		t.Errorf("second %+v", conflict)
	}
}

// A delivery that tells the same thing twice is one event of it; two changes of one object are two.
func TestToldTwice(t *testing.T) {
	t.Parallel()
	one := `{"resourceId":"r","eventDateUtc":"2026-11-20T10:30:00.123","eventType":"UPDATE","eventCategory":"INVOICE","tenantId":"t"}`
	two := strings.Replace(one, ".123", ".124", 1)
	events := parsed(t, Xero(), nil, `{"events":[`+one+`,`+one+`,`+two+`]}`)
	if len(events) != 2 {
		t.Errorf("%d events; want 2", len(events))
	}
}
