package webhook

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// fuzzParser feeds a provider's parser with bodies and with the two headers that matter most to it.
// Whatever comes, the parser neither panics nor loses it, and what it makes of it can be stored and
// judged.
func fuzzParser(f *testing.F, p Provider, topic, id string, bodies ...string) {
	f.Helper()
	for _, body := range bodies {
		f.Add(body, "orders/updated", "d1")
		f.Add(body, "order.updated", "")
		f.Add(body, "issues", "\x00")
	}
	for _, body := range []string{"", "null", "[]", "{}", "[[]]", `{"id":1e400}`, "\xff", strings.Repeat("[", 100), `{"id":102,"ID":5,"type":"\ud83d"}`, "{\"id\":\"GEB\xdcHR-17\"}"} {
		f.Add(body, "", "")
	}
	s, err := newSource(named{"s", Sender{Provider: p, Secrets: []Secret{{"only", "whsec_YS1zZWNyZXQtZm9yLXRlc3RzLW9ubHkh"}}, Tenants: []string{AnyTenant}, Headers: trusting(p)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body, topicValue, idValue string) {
		h := http.Header{}
		h.Set(topic, topicValue)
		h.Set(id, idValue)
		h.Set("X-Shopify-Shop-Domain", "tea.example")
		m := message{Header: h, Body: []byte(body), Received: noon}
		events := s.events(m, nil, "only")
		if len(events) == 0 {
			t.Fatal("the delivery is lost")
		}
		for _, e := range events {
			if strings.Contains(e.Why, "panicked") {
				t.Fatal("the parser panicked")
			}
			storable(t, e)
		}
		again := s.events(m, nil, "only")
		if len(again) != len(events) || again[0].Dedupe != events[0].Dedupe {
			t.Fatal("the same delivery is another event the second time")
		}
	})
}

// storable holds what every store and the gate rely on.
func storable(t *testing.T, e intake.Event) {
	t.Helper()
	switch {
	case !json.Valid(e.Body) || !utf8.Valid(e.Body):
		t.Fatalf("body %q is no JSON", e.Body)
	case e.Dedupe.IsZero() || e.Object.Source != "s" || !e.Received.Equal(noon):
		t.Fatalf("incomplete: %+v", e)
	case e.Disposition == "" && (e.Object.Type == "" || e.Object.ID == ""):
		t.Fatalf("to be judged, but of no object: %+v", e)
	case e.Disposition == "" && e.Payload != intake.Thin && e.Fingerprint.IsZero():
		t.Fatalf("to be judged, but without fingerprint: %+v", e)
	case e.Disposition != "" && e.Why == "":
		t.Fatalf("a disposition without reason: %+v", e)
	}
	for _, text := range []string{e.Object.Tenant, e.Object.Type, e.Object.ID, e.Topic, e.ID} {
		if !sound(text) {
			t.Fatalf("%q cannot be stored", text)
		}
	}
}

func seeds(f *testing.F, names ...string) []string {
	f.Helper()
	bodies := make([]string, len(names))
	for i, name := range names {
		bodies[i] = fixture(f, name)
	}
	return bodies
}

func FuzzStandard(f *testing.F) {
	p, err := made(Standard(Mapping{Version: "data.version", Clock: inbox.ObjectClock, Tenant: "tenant"}))
	if err != nil {
		f.Fatal(err)
	}
	fuzzParser(f, p, "Webhook-Timestamp", "Webhook-Id", append(seeds(f, "standard.json"), paid,
		`{"tenant":7,"type":"a.b","data":{"id":1,"version":"2026-11-20T10:30:00Z"}}`)...)
}

func FuzzStripe(f *testing.F) {
	fuzzParser(f, Stripe(), "Stripe-Signature", "X", append(seeds(f, "stripe.json"),
		`{"id":"evt_3","object":"v2.core.event","type":"t","created":"2026-11-20T10:30:00.246Z","related_object":{"id":"m","type":"x"}}`)...)
}

func FuzzWooCommerce(f *testing.F) {
	fuzzParser(f, WooCommerce(), wooTopic, wooID, append(seeds(f, "woocommerce.json"), `{"id":1}`, "webhook_id=1")...)
}

func FuzzShopify(f *testing.F) {
	fuzzParser(f, Shopify(), "X-Shopify-Topic", "X-Shopify-Event-Id", seeds(f, "shopify.json")...)
}

func FuzzGitHub(f *testing.F) {
	fuzzParser(f, GitHub(), "X-GitHub-Event", "X-GitHub-Delivery", append(seeds(f, "github.json"), `{"zen":"x"}`)...)
}

func FuzzXero(f *testing.F) {
	fuzzParser(f, Xero(), "X", "Y", append(seeds(f, "xero.json"), `{"events":[]}`, `{"events":[null,1,{}]}`)...)
}

func FuzzQuickBooks(f *testing.F) {
	fuzzParser(f, QuickBooks(), "X", "Y", seeds(f, "quickbooks.json", "quickbooks-cloudevents.json")...)
}

func FuzzCustom(f *testing.F) {
	p, err := made(Custom(Auth{Method: "bearer"}, Mapping{
		Topic: "event", Body: ".", Type: "order", EventID: "event_id", Version: "version", Clock: inbox.CounterClock,
	}))
	if err != nil {
		f.Fatal(err)
	}
	fuzzParser(f, p, "Authorization", "X", append(seeds(f, "homegrown.json", "typeform.json"), `{"id":1}`, `{"event":"a","id":"1","event_id":7}`)...)
}

// Whatever a header shows, only the secret itself is believed, however HTTP lets it be written.
func FuzzCredential(f *testing.F) {
	const token, login = "a-secret-for-tests-only", "shop:a-secret-for-tests-only"
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(login))
	for _, seed := range []string{"", "Bearer", "Bearer ", "Bearer " + token, "bearer " + token, "Bearer  " + token, token, basic, "Basic " + login, "Basic !"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, shown string) {
		for method, secret := range map[string]string{"bearer": token, "basic": login} {
			s, err := newSource(named{"s", Sender{Provider: custom(t, Auth{Method: method}), Secrets: []Secret{{"only", secret}}}})
			if err != nil {
				t.Fatal(err)
			}
			k, why := s.verify(http.Header{"Authorization": {shown}}, []byte("{}"), noon)
			genuine := len(shown) == 7+len(token) && strings.EqualFold(shown[:7], "Bearer ") && shown[7:] == token
			if method == "basic" {
				genuine = len(shown) == len(basic) && strings.EqualFold(shown[:6], "Basic ") && shown[6:] == basic[6:]
			}
			if (k != nil) != genuine || (why == nil) != genuine {
				t.Fatalf("%s: %q: believed %v, want %v", method, shown, k != nil, genuine)
			}
		}
	})
}

// Whatever stands in the header of whichever scheme, reading it neither panics nor makes more work
// than sixteen signatures, and nothing is genuine that was not signed.
func FuzzSignature(f *testing.F) {
	var sources []*source
	genuine := make(map[string]bool)
	for _, v := range append(published(f), independent(f)...) {
		s, err := newSource(named{"s", Sender{Provider: v.provider, Secrets: []Secret{{"only", v.secret}}, Headers: trusting(v.provider)}})
		if err != nil {
			f.Fatal(err)
		}
		sources = append(sources, s)
		genuine[v.body] = true
		for name, value := range v.header {
			f.Add(name, value, "msg_1", "1763634600", v.body)
		}
	}
	f.Fuzz(func(t *testing.T, name, value, id, stamp, body string) {
		h := http.Header{}
		h.Set("Webhook-Id", id)
		h.Set("Webhook-Timestamp", stamp)
		h.Set(name, value)
		for _, s := range sources {
			c, err := s.Provider.claim(h, []byte(body))
			if err == nil && len(c.Signatures) > maxSignatures+1 {
				t.Fatalf("%s: %d signatures were read", s.Provider.name, len(c.Signatures))
			}
			k, why := s.verify(h, []byte(body), noon)
			if k == nil && why == nil {
				t.Fatalf("%s: neither a key nor a reason", s.Provider.name)
			}
			if k != nil && !genuine[body] {
				t.Fatalf("%s believes %q", s.Provider.name, body)
			}
		}
	})
}
