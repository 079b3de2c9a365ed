package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// What follows from what is received is for [inbox.Source]; here only the receiver is shown.
var (
	fetch = func(context.Context, inbox.Object) (inbox.Fetched, error) {
		return inbox.Fetched{}, errors.New("not shown")
	}
	decide = func(o inbox.Snapshot) (saga.Change, error) { return saga.Change{Input: o.Body}, nil }
	apply  = func(context.Context, saga.Change) error { return errors.New("not shown") }
)

// A shop of our own signs as Standard Webhooks does; its orders count their versions.
func Example() {
	const secret = "whsec_YS1zZWNyZXQtZm9yLXRlc3RzLW9ubHkh"
	store := memory.New(nil)
	in, err := inbox.New(store, []*inbox.Source{{
		Name: "shop", Saga: "invoice-order", Fetch: fetch, Decide: decide, Apply: apply,
		Webhooks: &webhook.Sender{
			Provider: webhook.Standard(webhook.Mapping{Version: "data.version"}),
			Secrets:  []webhook.Secret{{Name: "2026-11", Text: secret}},
		},
	}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	receiver, err := webhook.New(in, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(receiver)
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

	deliveries, err := store.Deliveries(context.Background(), intake.DeliveryFilter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range deliveries {
		fmt.Println(resp.StatusCode, d.Topic, d.Object, "version", d.Version.Revision(), "signed with", d.Secret)
	}
	// Output: 200 order.paid shop:order:10492 version 3 signed with 2026-11
}

// A form of Typeform and a flow of n8n: neither needs code.
func ExampleCustom() {
	const secret, key = "a-secret-for-tests-only", "another-secret-for-tests"
	form := &webhook.Sender{
		Provider: webhook.Custom(
			webhook.Auth{Method: "hmac", Header: "Typeform-Signature", Prefix: "sha256=", Encoding: "base64"},
			webhook.Mapping{
				Topic: "event_type", Type: "response", Body: "form_response", ID: "form_response.token",
				EventID: "event_id", At: "form_response.submitted_at",
			}),
		Secrets: []webhook.Secret{{Name: "2026-11", Text: secret}},
	}
	flow := &webhook.Sender{
		Provider: webhook.Custom(
			webhook.Auth{Method: "bearer", Header: "X-API-Key"},
			webhook.Mapping{Topic: "event", Type: "order", Body: "."}),
		Secrets: []webhook.Secret{{Name: "2026-11", Text: key}},
	}
	store := memory.New(nil)
	in, err := inbox.New(store, []*inbox.Source{
		{Name: "form", Webhooks: form, Saga: "answer-form", Fetch: fetch, Decide: decide, Apply: apply},
		{Name: "flow", Webhooks: flow, Saga: "invoice-order", Fetch: fetch, Decide: decide, Apply: apply},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	receiver, err := webhook.New(in, nil)
	if err != nil {
		log.Fatal(err)
	}

	send := func(source, header, value, body string) {
		req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/webhooks/"+source, strings.NewReader(body))
		req.Header.Set(header, value)
		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, req)
		fmt.Println(source, "answered", answer.Code)
	}
	send("form", "Typeform-Signature", "sha256=GhNJ/pFE2yVOHoH9gUhq2VXHEJQoh9HuAla3ommTO9I=",
		`{"event_id":"e1","event_type":"form_response","form_response":{"token":"9cb5b9bb","submitted_at":"2026-11-20T11:59:50Z"}}`)
	send("flow", "X-API-Key", key, `{"event":"order.paid","id":"10492"}`)
	send("flow", "X-API-Key", "a-wrong-one-of-any-kind", `{"event":"order.paid","id":"10493"}`)

	deliveries, err := store.Deliveries(context.Background(), intake.DeliveryFilter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range deliveries {
		fmt.Println(d.Topic, d.Object)
	}
	// Output:
	// form answered 200
	// flow answered 200
	// flow answered 401
	// order.paid flow:order:10492
	// form_response form:response:9cb5b9bb
}
