package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// WooCommerce returns the provider for shops that run WooCommerce. A body is the whole object as it was when the
// delivery was made; its version is date_modified_gmt, in seconds. A deletion is only an id, so it is a hint.
//
// The signature covers the body and no time, and the topic is a header that nobody signed. The id of a delivery
// is weak (two within a second can share it), so an event is the same as another when webhook, topic, object
// and body are. The greeting of a new webhook is an unsigned form; it is answered and forgotten.
//
// A shop tries each delivery once, and switches a webhook off after five failures in a row.
func WooCommerce() Provider {
	return Provider{
		Name: "WooCommerce", Key: plainKey, Claim: base64Claim(wooSignature),
		Parse: wooEvents, Greets: wooGreets, Volatile: []string{"_links"},
	}
}

const (
	wooSignature = "X-WC-Webhook-Signature"
	wooTopic     = "X-WC-Webhook-Topic"
	wooID        = "X-WC-Webhook-ID"
	wooDelivery  = "X-WC-Webhook-Delivery-ID"
)

var wooPing = regexp.MustCompile(`^webhook_id=\d{1,20}$`)

func wooGreets(h http.Header, body []byte) bool {
	return h.Get(wooSignature) == "" && wooPing.Match(body)
}

func wooEvents(m Message) ([]reconcile.Event, error) {
	var b struct {
		ID       word
		Modified word `json:"date_modified_gmt"`
	}
	if !isObject(m.Body) || json.Unmarshal(m.Body, &b) != nil {
		return nil, errors.New("it is no object of WooCommerce")
	}
	topic := m.Header.Get(wooTopic) // order.updated
	resource, happened, _ := strings.Cut(topic, ".")
	e := reconcile.Event{
		Object: reconcile.Object{Type: resource, ID: string(b.ID)},
		Topic:  topic, ID: m.Header.Get(wooDelivery),
		Payload: reconcile.Whole, Version: versionAt(b.Modified, time.Second), At: timeOf(b.Modified), Body: m.Body,
	}
	if happened == "deleted" {
		e.Payload, e.Version, e.Deleted = reconcile.Thin, reconcile.Version{}, true
	}
	e.Dedupe = reconcile.DigestOf("woocommerce", m.Header.Get(wooID), topic, e.Object.ID, string(m.Body))
	return []reconcile.Event{e}, nil
}
