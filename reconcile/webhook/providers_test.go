package webhook

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// parsed reads a verified body as a source with every tenant would.
func parsed(t *testing.T, p Provider, h http.Header, body string) []intake.Event {
	t.Helper()
	secret := Secret{"only", "whsec_YS1zZWNyZXQtZm9yLXRlc3RzLW9ubHkh"}
	s, err := newSource(named{"s", Sender{Provider: p, Secrets: []Secret{secret}, Tenants: []string{AnyTenant}, Headers: trusting(p)}})
	if err != nil {
		t.Fatal(err)
	}
	canonical := http.Header{}
	for name, values := range h {
		canonical.Set(name, values[0])
	}
	m := message{Header: canonical, Body: []byte(body), Received: noon}
	if p.headersUnsigned {
		m.Types = []string{"order", "coupon", "company"}
	}
	return s.events(m, nil, "only")
}

// trusting lets in what only headers tell.
func trusting(p Provider) Headers {
	if p.headersUnsigned {
		return HeadersTrusted
	}
	return HeadersDoubted
}

// second is the version of a source that tells its objects' times in seconds.
func second(clock inbox.Clock, text string) inbox.Version {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return inbox.Version{Clock: clock, N: at.UnixNano(), Step: time.Second}
}

// told is what an event says, without what every event has.
type told struct {
	object      string
	topic       string
	id          string
	payload     intake.Payload
	deleted     bool
	version     inbox.Version
	disposition intake.Disposition
}

func tell(e intake.Event) told {
	return told{e.Object.String(), e.Topic, e.ID, e.Payload, e.Deleted, e.Version, e.Disposition}
}

// What each provider's deliveries say: the object, what its body is worth, and its version by the
// provider's rule.
func TestProviders(t *testing.T) {
	t.Parallel()
	github := func(event string) http.Header {
		return http.Header{"X-Github-Event": {event}, "X-Github-Delivery": {"72d3162e"}}
	}
	shopify := func(topic string) http.Header {
		return http.Header{"X-Shopify-Topic": {topic}, "X-Shopify-Shop-Domain": {"tea.myshopify.com"}, "X-Shopify-Event-Id": {"98880550"}, "X-Shopify-Webhook-Id": {"b54557e4"}}
	}
	const realm, organisation = "s:1185883450:", "s:c2cc9b6e-9458-4c7d-93cc-f02b81b0594f:"
	const ten = "2026-11-20T10:30:00Z"
	for name, tc := range map[string]struct {
		provider Provider
		header   http.Header
		body     string
		want     []told
	}{
		// The event's time orders events, never objects.
		"stripe": {Stripe(), nil, fixture(t, "stripe.json"), []told{
			{"s:invoice:in_42", "invoice.paid", "evt_1Pabc", intake.Whole, false, second(inbox.EventClock, "2024-07-03T09:46:40Z"), ""}}},
		"stripe, of another mode": {StripeTest(), nil, fixture(t, "stripe.json"), []told{
			{"s:invoice:in_42", "invoice.paid", "evt_1Pabc", intake.Whole, false, second(inbox.EventClock, "2024-07-03T09:46:40Z"), intake.Unknown}}},
		"stripe, connected account": {StripeTest(), nil, `{"id":"evt_2","object":"event","created":1720000000,"livemode":false,"type":"customer.deleted","account":"acct_9","data":{"object":{"id":"cus_1","object":"customer"}}}`, []told{
			{"s:acct_9:customer:cus_1", "customer.deleted", "evt_2", intake.Whole, true, second(inbox.EventClock, "2024-07-03T09:46:40Z"), ""}}},
		"stripe, cancelled subscription": {StripeTest(), nil, `{"id":"evt_2","object":"event","type":"customer.subscription.deleted","data":{"object":{"id":"sub_1","object":"subscription"}}}`, []told{
			{"s:subscription:sub_1", "customer.subscription.deleted", "evt_2", intake.Whole, false, inbox.Version{}, ""}}},
		"stripe, thin": {StripeTest(), nil, `{"id":"evt_3","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered","created":"2026-11-20T10:30:00.246Z","livemode":false,"related_object":{"id":"mtr_1","type":"billing.meter","url":"/v1/billing/meters/mtr_1"}}`, []told{
			{"s:billing.meter:mtr_1", "v1.billing.meter.error_report_triggered", "evt_3", intake.Thin, false, inbox.Version{}, ""}}},
		"stripe, object without id": {StripeTest(), nil, `{"id":"evt_4","object":"event","type":"balance.available","created":1720000000,"data":{"object":{"object":"balance"}}}`, []told{
			{"s:balance:", "balance.available", "evt_4", intake.Whole, false, second(inbox.EventClock, "2024-07-03T09:46:40Z"), intake.Unknown}}},

		"woocommerce": {WooCommerce(), http.Header{wooTopic: {"order.updated"}, wooDelivery: {"d1"}}, fixture(t, "woocommerce.json"), []told{
			{"s:order:10492", "order.updated", "d1", intake.Whole, false, second(inbox.ObjectClock, ten), ""}}},
		"woocommerce, deleted": {WooCommerce(), http.Header{wooTopic: {"order.deleted"}}, `{"id":10492}`, []told{
			{"s:order:10492", "order.deleted", "", intake.Thin, true, inbox.Version{}, ""}}},
		"woocommerce, without time": {WooCommerce(), http.Header{wooTopic: {"coupon.updated"}}, `{"id":3,"date_modified_gmt":null}`, []told{
			{"s:coupon:3", "coupon.updated", "", intake.Thin, false, inbox.Version{}, ""}}},
		"woocommerce, without topic": {WooCommerce(), nil, `{"id":3}`, []told{
			{"s::3", "", "", intake.Whole, false, inbox.Version{}, intake.Unknown}}},
		"woocommerce, huge id": {WooCommerce(), http.Header{wooTopic: {"order.updated"}}, `{"id":9007199254740993}`, []told{
			{"s:order:9007199254740993", "order.updated", "", intake.Thin, false, inbox.Version{}, ""}}},

		"shopify": {Shopify(), shopify("orders/updated"), fixture(t, "shopify.json"), []told{
			{"s:tea.myshopify.com:order:820982911946154508", "orders/updated", "b54557e4", intake.Whole, false, second(inbox.ObjectClock, ten), ""}}},
		"shopify, deleted": {Shopify(), shopify("companies/delete"), `{"id":1}`, []told{
			{"s:tea.myshopify.com:company:1", "companies/delete", "b54557e4", intake.Thin, true, inbox.Version{}, ""}}},

		"github": {GitHub(), github("issues"), fixture(t, "github.json"), []told{
			{"s:issue:73464126", "issues.edited", "72d3162e", intake.Whole, false, second(inbox.ObjectClock, ten), ""}}},
		"github, form": {GitHub(), http.Header{"X-Github-Event": {"issues"}, "Content-Type": {"application/x-www-form-urlencoded"}}, "payload=%7B%22action%22%3A%22opened%22%2C%22issue%22%3A%7B%22id%22%3A7%7D%7D", []told{
			{"s:issue:7", "issues.opened", "", intake.Whole, false, inbox.Version{}, ""}}},
		"github, deleted comment": {GitHub(), github("issue_comment"), `{"action":"deleted","issue":{"id":1},"comment":{"id":5,"updated_at":"2026-11-20T10:30:00Z"}}`, []told{
			{"s:issue_comment:5", "issue_comment.deleted", "72d3162e", intake.Thin, true, inbox.Version{}, ""}}},
		"github, review": {GitHub(), github("pull_request_review"), `{"action":"submitted","review":{"id":80},"pull_request":{"id":1}}`, []told{
			{"s:pull_request_review:80", "pull_request_review.submitted", "72d3162e", intake.Whole, false, inbox.Version{}, ""}}},
		"github, deployment status": {GitHub(), github("deployment_status"), `{"deployment_status":{"id":6,"updated_at":"2026-11-20T10:30:00Z"},"deployment":{"id":1}}`, []told{
			{"s:deployment_status:6", "deployment_status", "72d3162e", intake.Whole, false, second(inbox.ObjectClock, ten), ""}}},
		"github, push": {GitHub(), github("push"), `{"ref":"refs/heads/main","repository":{"id":1}}`, []told{
			{"s::", "push", "72d3162e", intake.Whole, false, inbox.Version{}, intake.Unknown}}},

		// The time of an event of Xero or QuickBooks is not the version that a fetch finds: every
		// one is a hint.
		"xero": {Xero(), nil, fixture(t, "xero.json"), []told{
			{organisation + "invoice:44aa0707-f718-4f1c-8d53-f2da9ca59533", "invoice.update", "", intake.Thin, false, inbox.Version{}, ""},
			{organisation + "contact:717f2bfc-c6d4-41fd-b238-3f2f0c0cf777", "contact.create", "", intake.Thin, false, inbox.Version{}, ""}}},
		"xero, one of two unreadable": {Xero(), nil, `{"events":[7,{"resourceId":"r","tenantId":"t","eventCategory":"INVOICE","eventType":"UPDATE","eventDateUtc":"2026-11-20T10:30:00.123"}]}`, []told{
			{"s::", "", "", intake.Thin, false, inbox.Version{}, intake.Malformed},
			{"s:t:invoice:r", "invoice.update", "", intake.Thin, false, inbox.Version{}, ""}}},
		"quickbooks": {QuickBooks(), nil, fixture(t, "quickbooks.json"), []told{
			{realm + "customer:1", "customer.create", "", intake.Thin, false, inbox.Version{}, ""},
			{realm + "vendor:9", "vendor.merge", "", intake.Thin, false, inbox.Version{}, ""},
			{realm + "vendor:8", "vendor.merge", "", intake.Thin, true, inbox.Version{}, ""}}},
		"quickbooks, cloud events": {QuickBooks(), nil, fixture(t, "quickbooks-cloudevents.json"), []told{
			{realm + "invoice:1234", "invoice.updated", "88cd52aa-33b6-4351-9aa4-47572edbd068", intake.Thin, false, inbox.Version{}, ""},
			{realm + "customer:77", "customer.deleted", "5f7a2b1c-0000-4351-9aa4-47572edbd068", intake.Thin, true, inbox.Version{}, ""}}},

		"quickbooks, one cloud event": {QuickBooks(), nil, `{"specversion":"1.0","id":"e1","type":"qbo.bill.created.v1","time":"2026-11-20T10:30:00Z","intuitentityid":"7","intuitaccountid":"1185883450"}`, []told{
			{realm + "bill:7", "bill.created", "e1", intake.Thin, false, inbox.Version{}, ""}}},

		"standard": {orders(t), http.Header{"Webhook-Id": {"msg_1"}}, fixture(t, "standard.json"), []told{
			{"s:order:10492", "order.updated", "msg_1", intake.Whole, false, inbox.Counter(17), ""}}},
		"standard, deleted": {orders(t), http.Header{"Svix-Id": {"msg_2"}}, `{"type":"order.deleted","data":{"id":5,"version":18}}`, []told{
			{"s:order:5", "order.deleted", "msg_2", intake.Whole, true, inbox.Counter(18), ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []told
			for _, e := range parsed(t, tc.provider, tc.header, tc.body) {
				got = append(got, tell(e))
				if !json.Valid(e.Body) || e.Dedupe.IsZero() || e.Secret != "only" || !e.Received.Equal(noon) {
					t.Errorf("incomplete: %+v", e)
				}
				if (e.Payload == intake.Thin) != e.Fingerprint.IsZero() {
					t.Errorf("payload %s with fingerprint %x", e.Payload, e.Fingerprint)
				}
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// What is no delivery of the provider is malformed and kept, never lost and never an error.
func TestNotOfTheProvider(t *testing.T) {
	t.Parallel()
	shop, event := http.Header{"X-Shopify-Shop-Domain": {"d"}}, http.Header{"X-Github-Event": {"issues"}}
	for name, tc := range map[string]struct {
		provider Provider
		header   http.Header
		bodies   []string
	}{
		"stripe":      {Stripe(), nil, []string{`{}`, `{"object":"list"}`, `{"object":"event","data":7}`, `{"object":"event","data":{"object":[]}}`, `{"id":1.5}`}},
		"woocommerce": {WooCommerce(), nil, []string{`webhook_id=1`, `[]`, `{"id":[1]}`, `{"id":1.5}`}},
		"shopify":     {Shopify(), shop, []string{`"x"`, `{"id":true}`}},
		"shop":        {Shopify(), nil, []string{`{"id":1}`}},
		"github":      {GitHub(), event, []string{`7`, ``}},
		"event":       {GitHub(), nil, []string{`{}`}},
		"xero":        {Xero(), nil, []string{`{}`, `{"events":{}}`, `{"events":null}`, `{"events":[{"resourceId":"r"}]}`}},
		"quickbooks":  {QuickBooks(), nil, []string{`{}`, `{"eventNotifications":1}`, `[`, `[{"id":"1"}]`, `[{"intuitaccountid":"1","type":"qbo.invoice"}]`, `{"eventNotifications":[{"dataChangeEvent":{"entities":[{}]}}]}`}},
	} {
		for _, body := range tc.bodies {
			events := parsed(t, tc.provider, tc.header, body)
			if len(events) != 1 || events[0].Disposition != intake.Malformed || events[0].Why == "" {
				t.Errorf("%s: %s: %+v", name, body, events)
			}
			var kept string
			if err := json.Unmarshal(events[0].Body, &kept); err != nil || !strings.Contains(body, kept) {
				t.Errorf("%s: %s is kept as %s", name, body, events[0].Body)
			}
		}
	}
}

// An event goes to its tenant; one of a tenant that nobody set up is kept as unknown, and
// answered with 200.
func TestTenants(t *testing.T) {
	t.Parallel()
	const plain = "a-secret-for-tests-only"
	for _, tc := range []struct {
		tenants []string
		want    intake.Disposition
	}{
		{nil, intake.Unknown},
		{[]string{"another"}, intake.Unknown},
		{[]string{"another", "c2cc9b6e-9458-4c7d-93cc-f02b81b0594f"}, ""},
		{[]string{AnyTenant}, ""},
	} {
		d := open(t, nil, named{"xero", Sender{Provider: Xero(), Secrets: []Secret{{"only", plain}}, Tenants: tc.tenants}})
		h := http.Header{"X-Xero-Signature": {"WNhKa6hvGD8gNS5oL8TUXaOoQfqp8NQ9VaYXt2bbRDo="}}
		if got := d.post(t, "xero", h, fixture(t, "xero.json")); got != 200 {
			t.Errorf("answer %d", got)
		}
		events := d.inbox.stored()
		if len(events) != 2 {
			t.Fatalf("%d events; want 2", len(events))
		}
		for _, e := range events {
			if e.Disposition != tc.want || e.Object.Tenant != "c2cc9b6e-9458-4c7d-93cc-f02b81b0594f" {
				t.Errorf("tenants %v: %+v; want %q", tc.tenants, e, tc.want)
			}
		}
	}
}

// The operator's epoch is part of every version, and makes none of an event that has none.
func TestEpoch(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.Epoch = 2
	d := open(t, nil, s)
	d.post(t, "shop", signed(t, "a", paid), paid)
	hint := `{"type":"order.paid","data":{"id":"1"}}`
	d.post(t, "shop", signed(t, "b", hint), hint)
	events := d.inbox.stored()
	if events[0].Version.Revision() != "2/3" || events[1].Version != (inbox.Version{}) {
		t.Errorf("versions %+v, %+v", events[0].Version, events[1].Version)
	}
}

// What a provider sends to see whether somebody is there is answered as it wants. Nothing
// unsigned is stored.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	greeted := 0
	const plain = "a-secret-for-tests-only"
	shop := woo()
	shop.Secrets = []Secret{{"only", "another-secret-for-tests"}}
	d := open(t, &Options{Listener: &Listener{Greeted: func(string) { greeted++ }}}, shop,
		named{"xero", Sender{Provider: Xero(), Secrets: []Secret{{"only", "xero_webhook_test_secret"}}}},
		named{"github", Sender{Provider: GitHub(), Secrets: []Secret{{"only", plain}}, Types: []string{"issue"}}})
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}

	// WooCommerce, when a webhook is saved: a form that nobody signed.
	if got := d.post(t, "woo", form, "webhook_id=12"); got != 200 || greeted != 1 {
		t.Errorf("the greeting of WooCommerce: answer %d, %d greeted", got, greeted)
	}
	for _, body := range []string{"webhook_id=12&x=1", "webhook_id=", "webhook_id=1\n", " webhook_id=1", `{"webhook_id":1}`} {
		if got := d.post(t, "woo", form, body); got != 401 {
			t.Errorf("%q: answer %d; want 401", body, got)
		}
	}
	if got := d.post(t, "xero", form, "webhook_id=12"); got != 401 {
		t.Errorf("the greeting at another's door: answer %d", got)
	}
	// With a signature it is a delivery like any other.
	signedPing := wooSigned("webhook_id=12")
	signedPing.Set(wooSignature, "AAAA")
	if got := d.post(t, "woo", signedPing, "webhook_id=12"); got != 401 {
		t.Errorf("a greeting with a wrong signature: answer %d", got)
	}
	if n := len(d.inbox.stored()); n != 0 {
		t.Errorf("%d unsigned events are stored", n)
	}

	// Xero, when a webhook is set up: 200 for the right signature, 401 for the wrong one, no body,
	// no cookie.
	const intent = `{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}`
	for signature, want := range map[string]int{intentSignature: 200, "AAAA" + intentSignature[4:]: 401} {
		a := d.send(t, http.MethodPost, "/webhooks/xero", http.Header{"X-Xero-Signature": {signature}}, strings.NewReader(intent))
		if a.status != want || a.body != "" || a.header.Get("Content-Length") != "0" {
			t.Errorf("intent to receive: %+v; want %d", a, want)
		}
	}
	// GitHub, when a webhook is made: a signed ping.
	const zen = `{"zen":"Design for failure.","hook_id":1}`
	h := http.Header{"X-Hub-Signature-256": {zenSignature}, "X-Github-Event": {"ping"}}
	if got := d.post(t, "github", h, zen); got != 200 {
		t.Errorf("the ping of GitHub: answer %d", got)
	}
	events := d.inbox.stored()
	if len(events) != 2 || events[0].Disposition != intake.Ignored || events[1].Disposition != intake.Ignored {
		t.Errorf("signed handshakes are stored as %+v", events)
	}
}
