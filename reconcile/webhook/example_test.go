package webhook_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/store/memory"
)

// A shop of our own signs as Standard Webhooks does; its orders count their versions.
func Example() {
	const secret = "whsec_YS1zZWNyZXQtZm9yLXRlc3RzLW9ubHkh"
	provider, err := webhook.Standard(webhook.Mapping{Version: "data.version", Clock: reconcile.CounterClock})
	if err != nil {
		log.Fatal(err)
	}
	store := memory.New(nil)
	door, err := webhook.New(store, []webhook.Source{
		{Name: "shop", Provider: provider, Secrets: []webhook.Secret{{Name: "2026-11", Text: secret}}},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(door)
	defer server.Close()

	// The shop's side.
	const body = `{"type":"order.paid","data":{"id":"10492","version":3,"status":"paid"}}`
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/webhooks/shop", strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	if err := webhook.SignStandard(req.Header, secret, "msg_1", time.Now(), []byte(body)); err != nil {
		log.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()

	deliveries, err := store.Deliveries(context.Background(), reconcile.DeliveryFilter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range deliveries {
		fmt.Println(resp.StatusCode, d.Topic, d.Object, "version", d.Version.Revision(), "signed with", d.Secret)
	}
	// Output: 200 order.paid shop:order:10492 version 3 signed with 2026-11
}
