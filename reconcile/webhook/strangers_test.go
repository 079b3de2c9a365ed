package webhook

import (
	"net/http"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// What a sender wrote is read as it was meant, by every provider and by mappings: a name that is
// written exactly so wins, another case counts where it is alone, and what is not clear is stored as
// malformed. "An external id is never altered", nor one that is asked for.
func TestWhatStrangersWrite(t *testing.T) {
	t.Parallel()
	mapping, err := made(Standard(Mapping{Version: "data.version", Tenant: "account", EventID: ""}))
	if err != nil {
		t.Fatal(err)
	}
	homegrown, err := made(Custom(Auth{Method: "bearer"}, Mapping{Topic: "event", Body: ".", Type: "order", EventID: "event_id"}))
	if err != nil {
		t.Fatal(err)
	}
	wooOrder := func(fields string) string {
		return `{` + fields + `,"date_modified_gmt":"2026-11-20T10:30:00","_links":{"self":[{"href":"https://shop.example/wp-json/wc/v3/orders/102"}]}}`
	}
	const (
		twice  = "stands there twice"
		either = "either could be it"
		broken = "is not UTF-8, or half of a surrogate pair"
	)
	for _, tc := range []struct {
		name     string
		provider Provider
		header   http.Header
		body     string
		object   string
		wrong    string // what Why says of a malformed one
	}{
		{"an exact name and another case", WooCommerce(), topic(wooTopic, "order.updated"), wooOrder(`"id":102,"ID":5`), "s:order:102", ""},
		{"in the other order", WooCommerce(), topic(wooTopic, "order.updated"), wooOrder(`"ID":5,"Id":6,"id":102`), "s:order:102", ""},
		{"another case alone", WooCommerce(), topic(wooTopic, "order.updated"), wooOrder(`"Id":102`), "s:order:102", ""},
		{"two other cases", WooCommerce(), topic(wooTopic, "order.updated"), wooOrder(`"ID":5,"Id":102`), "", either},
		{"the id twice", WooCommerce(), topic(wooTopic, "order.updated"), wooOrder(`"id":102,"id":5`), "", twice},
		{"half of a pair in a note", WooCommerce(), topic(wooTopic, "order.updated"), wooOrder(`"note":"\ud83d","id":102,"note":1`), "s:order:102", ""},
		{"half of a pair in the version", WooCommerce(), topic(wooTopic, "order.updated"), `{"id":102,"date_modified_gmt":"\ud83d"}`, "", broken},
		{"Shopify", Shopify(), shopifyTopic(), `{"id":102,"ID":5,"admin_graphql_api_id":"gid://shopify/Order/102"}`, "s:tea.example:order:102", ""},
		{"Shopify, twice", Shopify(), shopifyTopic(), `{"id":102,"id":5,"admin_graphql_api_id":"gid://shopify/Order/102"}`, "", twice},
		{"Stripe", Stripe(), nil, `{"id":"evt_1","object":"event","type":"a.b","livemode":true,"data":{"object":{"id":"in_42","ID":"in_5","object":"invoice"}}}`, "s:invoice:in_42", ""},
		{"Stripe, half of a pair", Stripe(), nil, `{"id":"evt_1","object":"event","type":"a.b","livemode":true,"data":{"object":{"id":"in_\ud83d","object":"invoice"}}}`, "", broken},
		{"GitHub", GitHub(), topic("X-GitHub-Event", "issues"), `{"action":"edited","issue":{"id":102,"ID":5,"body":"\ud83d"},"Issue":{"id":5},"sender":{}}`, "s:issue:102", ""},
		{"GitHub, another case", GitHub(), topic("X-GitHub-Event", "issues"), `{"action":"edited","Issue":{"ID":102},"sender":{}}`, "s:issue:102", ""},
		{"GitHub, twice", GitHub(), topic("X-GitHub-Event", "issues"), `{"action":"edited","issue":{"id":102,"id":5}}`, "", twice},
		{"QuickBooks", QuickBooks(), nil, `{"eventNotifications":[{"RealmId":"1","REALMID":"2","dataChangeEvent":{"entities":[{"name":"Invoice","id":"102","ID":"5"}]}}]}`, "", either},
		{"QuickBooks, an event", QuickBooks(), nil, `{"eventNotifications":[{"realmId":"1","dataChangeEvent":{"entities":[{"name":"Invoice","id":"102","note":"\ud83d"}]}}]}`, "s:1:invoice:102", ""},
		{"QuickBooks, an event twice", QuickBooks(), nil, `{"eventNotifications":[{"realmId":"1","dataChangeEvent":{"entities":[{"name":"Invoice","id":"102","id":"5"}]}}]}`, "", twice},
		{"Xero", Xero(), nil, `{"events":[{"resourceId":"102","resourceId":"5","eventCategory":"INVOICE","tenantId":"c"}]}`, "", twice},
		{"Xero, beside it", Xero(), nil, `{"events":[{"resourceId":"102","eventCategory":"INVOICE","tenantId":"c","x":1,"x":2}],"entropy":"\ud83d"}`, "s:c:invoice:102", ""},
		{"a mapping", mapping, nil, `{"type":"order.paid","account":"eu","data":{"id":102,"ID":5}}`, "s:eu:order:102", ""},
		{"a mapping, another case on its way", mapping, nil, `{"Type":"order.paid","Account":"eu","Data":{"ID":102}}`, "s:eu:order:102", ""},
		{"a mapping, two on its way", mapping, nil, `{"type":"order.paid","account":"eu","Data":{"id":5},"DATA":{"id":102}}`, "", either},
		{"a mapping, the version twice", mapping, nil, `{"type":"order.paid","account":"eu","data":{"id":102,"version":1,"version":2}}`, "", twice},
		{"a mapping, half of a pair in the id", mapping, nil, `{"type":"order.paid","account":"eu","data":{"id":"102\ud83d"}}`, "", broken},
		{"a mapping, half of a pair beside it", mapping, nil, `{"type":"order.paid","account":"eu","data":{"id":102,"note":"\ud83d","note":"a"}}`, "s:eu:order:102", ""},
		{"homegrown", homegrown, nil, `{"event":"a","id":102,"ID":5,"event_id":1}`, "s:order:102", ""},
		{"homegrown, in two words", homegrown, nil, `{"event":"a","Id":102,"iD":5,"event_id":1}`, "", either},
		{"with a mark", homegrown, nil, "\uFEFF" + `{"event":"a","id":102}`, "s:order:102", ""},
	} {
		e := parsed(t, tc.provider, tc.header, tc.body)[0]
		switch {
		case tc.wrong == "" && (e.Disposition != "" || e.Object.String() != tc.object):
			t.Errorf("%s: %+v", tc.name, e)
		case tc.wrong != "" && (e.Disposition != intake.Malformed || !strings.Contains(e.Why, tc.wrong)):
			t.Errorf("%s: %s: %s", tc.name, e.Disposition, e.Why)
		}
	}
}

func topic(name, value string) http.Header { return http.Header{name: {value}} }

func shopifyTopic() http.Header {
	return http.Header{"X-Shopify-Topic": {"orders/updated"}, "X-Shopify-Shop-Domain": {"tea.example"}}
}

// A body in another charset is decoded. Which one it is says a header that is not signed, so the
// event proves nothing but that its object changed, and so does one with a bad byte beside the id.
func TestCharsetOfWebhooks(t *testing.T) {
	t.Parallel()
	const body = `{"type":"order.paid","data":{"id":"GEB` + "\xdc" + `HR-17","version":5}}`
	for _, tc := range []struct {
		name, contentType, body, id string
		payload                     intake.Payload
		why                         string
	}{
		{"Latin 1", "application/json; charset=iso-8859-1", body, "GEBÜHR-17", intake.Thin, "its charset is told by a header only"},
		{"that is not declared", "application/json", body, "", intake.Thin, "not UTF-8"},
		{"one that is not known", "application/json; charset=x-klingon", paid, "", intake.Thin, `its charset is "x-klingon"`},
		{"ASCII in Latin 1", "application/json; charset=iso-8859-1", paid, "10492", intake.Whole, ""},
		{"UTF-8", "application/json; charset=utf-8", paid, "10492", intake.Whole, ""},
		{"a bad byte beside the id", "application/json", strings.Replace(paid, `"status"`, "\"note\":\"\xdc\",\"status\"", 1), "10492", intake.Thin, "a byte that is not UTF-8"},
		{"a bad byte outside of the object", "application/json", strings.Replace(paid, `{`, "{\"x\":\"\xdc\",", 1), "10492", intake.Whole, ""},
	} {
		d := open(t, nil, shop(t))
		h := signed(t, "msg_1", tc.body)
		h.Set("Content-Type", tc.contentType)
		if got := d.post(t, "shop", h, tc.body); got != 200 {
			t.Fatalf("%s: answer %d", tc.name, got)
		}
		e := d.inbox.stored()[0]
		if e.Object.ID != tc.id || e.Payload != tc.payload || !strings.Contains(e.Why, tc.why) || (e.Disposition == "") != (tc.id != "") {
			t.Errorf("%s: %+v", tc.name, e)
		}
		if e.Payload == intake.Thin && e.Version != (inbox.Version{}) {
			t.Errorf("%s: a hint has the version %v", tc.name, e.Version)
		}
	}
}

// Ids, versions and times have one reading of numbers.
func TestNumbersOfWebhooks(t *testing.T) {
	t.Parallel()
	p := orders(t)
	for body, want := range map[string]string{
		`{"id":105.0,"version":7.0}`: "s:order:105", `{"id":1.05e2,"version":0.7e1}`: "s:order:105", `{"id":105,"version":7}`: "s:order:105", `{"id":"105","version":"7"}`: "s:order:105",
	} {
		e := parsed(t, p, topic("Webhook-Id", "m"), `{"type":"order.paid","data":`+body+`}`)[0]
		if e.Object.String() != want || e.Version != inbox.Counter(7) {
			t.Errorf("%s: %+v", body, e)
		}
	}
	for _, created := range []string{"1764000000", "1764000000.0", "1.764e9"} {
		e := parsed(t, Stripe(), nil, `{"id":105.0,"object":"event","type":"a.b","livemode":true,"created":`+created+`,"data":{"object":{"id":1.04e2,"object":"invoice"}}}`)[0]
		if e.Disposition != "" || e.At.Unix() != 1764000000 || e.ID != "105" || e.Object.ID != "104" {
			t.Errorf("%s: %+v", created, e)
		}
	}
}
