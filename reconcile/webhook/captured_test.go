package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// capture is a delivery that was recorded on its way: the body and the header that signs it, and
// not the secret.
type capture struct {
	source string
	header http.Header
	body   string
}

// under is the delivery with other headers, which are not signed.
func (c capture) under(pairs ...string) capture {
	c.header = c.header.Clone()
	for i := 0; i < len(pairs); i += 2 {
		c.header.Set(pairs[i], pairs[i+1])
	}
	return c
}

const (
	shopifySecret = "a-secret-for-shopify"
	githubSecret  = "a-secret-for-github"
)

// shopSource, gitSource are sources of providers that sign nothing but the body.
func shopSource() named {
	return named{"shopify", Sender{Provider: Shopify(), Secrets: []Secret{{"only", shopifySecret}}, Tenants: []string{"a.example"}, Types: []string{"order", "product"}}}
}

func gitSource() named {
	return named{"github", Sender{Provider: GitHub(), Secrets: []Secret{{"only", githubSecret}}, Types: []string{"issue", "repository", "issue_comment"}}}
}

func shopifyCapture(body string) capture {
	h := http.Header{}
	h.Set("X-Shopify-Hmac-SHA256", sum64([]byte(shopifySecret), []byte(body)))
	return capture{"shopify", h, body}.under("X-Shopify-Topic", "orders/updated", "X-Shopify-Shop-Domain", "a.example", "X-Shopify-Event-Id", "e0")
}

func wooCapture(body string) capture { return capture{"woo", wooSigned(body), body} }

func githubCapture(event string) capture {
	return capture{"github", http.Header{"X-Hub-Signature-256": {hexOf(githubSecret, githubIssue)}}, githubIssue}.under("X-GitHub-Event", event, "X-GitHub-Delivery", "d0")
}

func (h *hall) deliver(t *testing.T, c capture) {
	t.Helper()
	if got := h.post(t, c.source, c.header, c.body); got != 200 {
		t.Errorf("answer %d", got)
	}
}

// rows are what lies in the inbox, the oldest first.
func (h *hall) rows(t *testing.T) []intake.Delivery {
	t.Helper()
	ds, err := h.store.Deliveries(t.Context(), intake.DeliveryFilter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(ds)
	return ds
}

// entries are the objects in the gate that have a name.
func (h *hall) entries(t *testing.T) []intake.Entry {
	t.Helper()
	es, err := h.store.Entries(t.Context(), intake.EntryFilter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(es, func(e intake.Entry) bool { return e.Object.ID == "" || e.Object.Type == "" })
}

const (
	shopifyOrder = `{"id":820982911946154508,"admin_graphql_api_id":"gid://shopify/Order/820982911946154508","updated_at":"2026-11-20T10:30:00Z","total_price":"24.50"}`
	wooOrder     = `{"id":10492,"date_modified_gmt":"2026-11-20T10:30:00","total":"24.50","_links":{"self":[{"href":"https://shop.example/wp-json/wc/v3/orders/10492"}]}}`
	githubIssue  = `{"action":"edited","issue":{"id":11,"updated_at":"2026-11-20T10:30:00Z"},"repository":{"id":22,"updated_at":"2026-11-20T10:30:00Z"},"sender":{"id":33,"updated_at":"2026-11-20T10:30:00Z"}}`
)

// One captured delivery is one object and one state of it, under whatever headers it is shown
// again.
func TestCapturedUnderOtherHeaders(t *testing.T) {
	t.Parallel()
	shopify, woocommerce, github := shopifyCapture(shopifyOrder), wooCapture(wooOrder), githubCapture("issues")
	for name, tc := range map[string]struct {
		genuine capture
		replays []capture
	}{
		"shopify": {shopify, []capture{
			shopify.under("X-Shopify-Shop-Domain", "b.example"), shopify.under("X-Shopify-Shop-Domain", "c.example"),
			shopify.under("X-Shopify-Topic", "refunds/create"), shopify.under("X-Shopify-Topic", "products/update"),
			shopify.under("X-Shopify-Topic", "anything/update"), shopify.under("X-Shopify-Topic", "orders/delete"), shopify.under("X-Shopify-Topic", ""),
		}},
		"woocommerce": {woocommerce, []capture{
			woocommerce.under(wooTopic, "customer.updated"), woocommerce.under(wooTopic, "anything.updated"),
			woocommerce.under(wooTopic, "order.deleted"), woocommerce.under(wooTopic, ""),
		}},
		"github": {github, []capture{
			github.under("X-GitHub-Event", "repository"), github.under("X-GitHub-Event", "sender"), github.under("X-GitHub-Event", "anything_issue"),
			github.under("X-GitHub-Event", "issue_comment"), github.under("X-GitHub-Event", "issue"),
		}},
	} {
		h := openHall(t, shopSource(), woo(), gitSource())
		h.deliver(t, tc.genuine)
		for _, c := range tc.replays {
			h.deliver(t, c)
			h.deliver(t, c)
		}
		h.judge(t)
		es := h.entries(t)
		if len(es) != 1 || es[0].Accepted != 1 || es[0].Deleted {
			t.Errorf("%s: %d objects, of which %+v; want the genuine one, accepted once", name, len(es), es)
		}
		applied := 0
		for _, d := range h.rows(t) {
			switch d.Outcome {
			case intake.Applied:
				applied++
			case intake.Hint, intake.Unknown:
			default:
				t.Errorf("%s: %s (%s)", name, d.Outcome, d.Because)
			}
		}
		if n := len(h.rows(t)); applied != 1 || n > 4 {
			t.Errorf("%s: %d applied of %d rows; want 1, and few rows", name, applied, n)
		}
	}
}

// Ids in headers make no event: sixty replays are one row, whatever the header says.
func TestCapturedUnderOtherIDs(t *testing.T) {
	t.Parallel()
	h := openHall(t, shopSource(), woo(), gitSource())
	for i := range 60 {
		id := fmt.Sprint("id", i)
		h.deliver(t, shopifyCapture(shopifyOrder).under("X-Shopify-Event-Id", id, "X-Shopify-Webhook-Id", id, "X-Shopify-Triggered-At", id))
		h.deliver(t, wooCapture(wooOrder).under(wooID, id, wooDelivery, id))
		h.deliver(t, githubCapture("issues").under("X-GitHub-Delivery", id))
	}
	rows := h.rows(t)
	if len(rows) != 3 {
		t.Fatalf("%d rows of 180 deliveries of 3 events", len(rows))
	}
	for _, d := range rows {
		if d.Copies != 60 {
			t.Errorf("%d copies of %s; want 60", d.Copies, d.Object)
		}
	}
}

// Topics and tenants that were made up grow neither the inbox nor the gate, and ask no source.
func TestMadeUpTopics(t *testing.T) {
	t.Parallel()
	h := openHall(t, shopSource(), woo(), gitSource())
	bare := `{"id":1}`
	for i := range 400 {
		h.deliver(t, shopifyCapture(bare).under("X-Shopify-Topic", fmt.Sprintf("t%d/delete", i)))
		h.deliver(t, shopifyCapture(bare).under("X-Shopify-Topic", "orders/delete", "X-Shopify-Shop-Domain", fmt.Sprintf("t%d.example", i)))
		h.deliver(t, wooCapture(bare).under(wooTopic, fmt.Sprintf("t%d.deleted", i)))
		h.deliver(t, githubCapture(fmt.Sprintf("t%d_issue", i)))
	}
	h.judge(t)
	if rows, es := h.rows(t), h.entries(t); len(rows) != 4 || len(es) != 0 {
		t.Errorf("%d rows and %d objects of four captured deliveries; want 4 and none", len(rows), len(es))
	}
}

// A body that does not say what it is (a deletion is an id) is a hint about a type that is set
// up, and never more.
func TestSilentBodies(t *testing.T) {
	t.Parallel()
	h := openHall(t, shopSource(), woo())
	h.deliver(t, shopifyCapture(`{"id":1}`).under("X-Shopify-Topic", "orders/delete"))
	h.deliver(t, shopifyCapture(`{"id":2,"updated_at":"2026-11-20T10:30:00Z"}`))
	h.deliver(t, shopifyCapture(`{"id":6,"admin_graphql_api_id":"gid://shopify/Order/7","updated_at":"2026-11-20T10:30:00Z"}`))
	h.deliver(t, wooCapture(`{"id":3,"date_modified_gmt":"2026-11-20T10:30:00","_links":{"self":[{"href":"https://shop.example/wp-json/wc/v3/orders/4"}]}}`))
	h.deliver(t, wooCapture(`{"id":5,"date_modified_gmt":"2026-11-20T10:30:00","_links":{"self":[{"href":"https://shop.example/?rest_route=/wc/v3/orders/5"}]}}`))
	want := []intake.Disposition{intake.Hint, intake.Hint, intake.Hint, intake.Hint, intake.Applied}
	if got := h.judge(t); !slices.Equal(got, want) {
		t.Errorf("dispositions %v; want %v", got, want)
	}
}

// Where the header says something else than the body, the event is a hint about what the body
// names, also when it is the first that is heard of it.
func TestHeaderAgainstBody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]capture{
		"shopify":     shopifyCapture(shopifyOrder).under("X-Shopify-Topic", "products/update"),
		"deletion":    shopifyCapture(shopifyOrder).under("X-Shopify-Topic", "orders/delete"),
		"woocommerce": wooCapture(wooOrder).under(wooTopic, "customer.updated"),
		"github":      githubCapture("repository"),
	} {
		h := openHall(t, shopSource(), woo(), gitSource())
		h.deliver(t, c)
		got, es := h.judge(t), h.entries(t)
		if !slices.Equal(got, []intake.Disposition{intake.Hint}) || len(es) != 1 || es[0].Accepted != 0 || es[0].Object.Type != "order" && es[0].Object.Type != "issue" {
			t.Errorf("%s: dispositions %v, objects %+v; want a hint about the object of the body", name, got, es)
		}
	}
}

// A second deletion says the same as the first, word for word: after a minute it is a hint of its
// own.
func TestSecondDeletion(t *testing.T) {
	t.Parallel()
	h := openHall(t, woo())
	gone := wooCapture(`{"id":10492}`).under(wooTopic, "order.deleted")
	h.deliver(t, gone)
	h.deliver(t, gone)
	h.now.Add(int64(time.Minute))
	h.deliver(t, gone)
	if got := h.judge(t); !slices.Equal(got, []intake.Disposition{intake.Hint, intake.Hint}) {
		t.Errorf("dispositions %v; want two hints", got)
	}
}

// What a source leaves to headers that are not signed is said, or the source is refused with
// the reason.
func TestHeadersAreSettled(t *testing.T) {
	t.Parallel()
	with := func(s named, change func(s *named)) named { change(&s); return s }
	for name, tc := range map[string]struct {
		source named
		fault  string
	}{
		"no types":             {with(woo(), func(s *named) { s.Types = nil }), "has no Types"},
		"two tenants":          {with(shopSource(), func(s *named) { s.Tenants = []string{"a.example", "b.example"} }), "several Tenants (a.example, b.example)"},
		"any tenant":           {with(shopSource(), func(s *named) { s.Tenants = []string{AnyTenant} }), "several Tenants (*)"},
		"any tenant, hints":    {with(shopSource(), func(s *named) { s.Tenants, s.Headers = []string{AnyTenant}, HeadersHint }), "AnyTenant"},
		"two tenants, hints":   {with(shopSource(), func(s *named) { s.Tenants, s.Headers = []string{"a.example", "b.example"}, HeadersHint }), ""},
		"two tenants, trusted": {with(shopSource(), func(s *named) { s.Tenants, s.Headers = []string{"a.example", "b.example"}, HeadersTrusted }), ""},
		"no types, trusted":    {with(woo(), func(s *named) { s.Types, s.Headers = nil, HeadersTrusted }), ""},
		"another word":         {with(woo(), func(s *named) { s.Headers = "yes" }), "which is none"},
		"signed":               {with(shop(t), func(s *named) { s.Tenants = []string{"a", "b"} }), ""},
		"signed, trusted":      {with(shop(t), func(s *named) { s.Headers = HeadersTrusted }), "takes nothing from headers"},
	} {
		_, err := newReceiver(&fakeInbox{}, []named{tc.source}, nil)
		if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
			t.Errorf("%s: %v; want %q", name, err, tc.fault)
		}
	}
}

// Of a source with several tenants every delivery is a hint, so that the source of the tenant
// says what is true.
func TestSharedSourceHints(t *testing.T) {
	t.Parallel()
	s := shopSource()
	s.Tenants, s.Headers = []string{"a.example", "b.example"}, HeadersHint
	h := openHall(t, s)
	genuine := shopifyCapture(shopifyOrder)
	h.deliver(t, genuine)
	h.deliver(t, genuine.under("X-Shopify-Shop-Domain", "b.example"))
	if got := h.judge(t); !slices.Equal(got, []intake.Disposition{intake.Hint, intake.Hint}) {
		t.Errorf("dispositions %v; want two hints", got)
	}
	for _, e := range h.entries(t) {
		if e.Accepted != 0 || e.FetchRequested != 1 {
			t.Errorf("%s: %d accepted, %d hints", e.Object, e.Accepted, e.FetchRequested)
		}
	}
}

// The fields of a body say which event of GitHub it is.
func TestGitHubSubjects(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		githubIssue: "issues",
		`{"action":"created","comment":{"id":1},"issue":{"id":2},"repository":{}}`:                 "issue_comment",
		`{"action":"created","comment":{"id":1},"repository":{}}`:                                  "commit_comment",
		`{"action":"created","comment":{"id":1},"pull_request":{"id":2}}`:                          "pull_request_review_comment",
		`{"action":"created","comment":{"id":1},"discussion":{"id":2}}`:                            "discussion_comment",
		`{"action":"labeled","issue":{"id":1},"label":{"id":2},"milestone":{"id":3}}`:              "issues",
		`{"action":"labeled","pull_request":{"id":1},"label":{"id":2}}`:                            "pull_request",
		`{"action":"edited","label":{"id":2},"repository":{}}`:                                     "label",
		`{"deployment_status":{"id":1},"deployment":{"id":2},"workflow_run":{},"check_run":{}}`:    "deployment_status",
		`{"action":"edited","repository":{"id":1},"sender":{},"changes":{}}`:                       "repository",
		`{"action":"started","repository":{"id":1},"sender":{}}`:                                   "",
		`{"ref":"refs/heads/main","action":"edited","repository":{"id":1},"sender":{},"after":""}`: "",
		`{"issue":7,"repository":{"id":1}}`:                                                        "",
		`[]`:                                                                                       "",
	} {
		if got, _, err := githubSubject(raw(body)); err != nil || got != want {
			t.Errorf("%s is of %q; want %q", body, got, want)
		}
	}
}

// An order that is nested too deep to be compared is a hint: its body names it, so the source
// can be asked.
func TestDeepBody(t *testing.T) {
	t.Parallel()
	h := openHall(t, shop(t))
	body := strings.Replace(paid, `"status":"paid"`, `"status":`+strings.Repeat("[", 100)+strings.Repeat("]", 100), 1)
	h.deliver(t, capture{"shop", signed(t, "m1", body), body})
	if got := h.judge(t); !slices.Equal(got, []intake.Disposition{intake.Hint}) {
		t.Errorf("dispositions %v; want a hint", got)
	}
}

// hexOf is the signature of a body as GitHub writes it.
func hexOf(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
