package webhook

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// WooCommerce returns the provider for shops that run WooCommerce. A body is the whole object as it
// was when the delivery was made; its version is date_modified_gmt, in seconds. A deletion is only
// an id, so it is a hint.
//
// The signature covers the body and no time, and the topic is a header that is not signed. So the
// type of an object is the one in its link to itself (_links.self); where the topic names another,
// or the body has no link, the event is a hint. The ids of webhook and delivery are headers too: an
// event is the same as another when the body is. The greeting of a new webhook is an unsigned form;
// it is answered and forgotten.
//
// A shop tries each delivery once, and switches a webhook off after five failures in a row.
func WooCommerce() Provider {
	return Provider{
		name: "WooCommerce", headersUnsigned: true, key: plainKey, claim: base64Claim(wooSignature),
		parse: wooEvents, greets: wooGreets, volatile: []string{"_links"},
	}
}

const (
	wooSignature = "X-WC-Webhook-Signature"
	wooTopic     = "X-WC-Webhook-Topic"
	wooDelivery  = "X-WC-Webhook-Delivery-ID"
)

var wooPing = regexp.MustCompile(`^webhook_id=\d{1,20}$`)

func wooGreets(h http.Header, body []byte) bool {
	return h.Get(wooSignature) == "" && wooPing.Match(body)
}

func wooEvents(m message) ([]intake.Event, error) {
	var b struct {
		ID       word `json:"id"`
		Modified word `json:"date_modified_gmt"`
		Links    struct {
			Self []struct {
				Href string `json:"href"`
			} `json:"self"`
		} `json:"_links"`
	}
	if err := object(m.Body, &b); err != nil {
		return nil, fmt.Errorf("it is no object of WooCommerce: %w", err)
	}
	topic := m.Header.Get(wooTopic) // order.updated
	resource, happened, _ := strings.Cut(topic, ".")
	e := intake.Event{
		Object: inbox.Object{ID: string(b.ID)},
		Topic:  topic, ID: m.Header.Get(wooDelivery), Dedupe: intake.DigestOf(string(m.Body)),
		Payload: intake.Whole, Version: versionAt(b.Modified, time.Second), At: timeOf(b.Modified), Body: m.Body,
	}
	var signed string
	if len(b.Links.Self) == 1 {
		signed = wooType(b.Links.Self[0].Href, string(b.ID))
	}
	m.bind(&e, signed, resource, happened == "deleted")
	return []intake.Event{e}, nil
}

// wooType is the type in an object's link to itself: of
// https://shop.example/wp-json/wc/v3/orders/10492 order. Shops without readable links have the path
// in the query.
func wooType(link, id string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	parts := strings.Split(cmp.Or(u.Query().Get("rest_route"), u.Path), "/")
	if n := len(parts); n >= 2 && parts[n-1] == id {
		return singular(parts[n-2])
	}
	return ""
}
