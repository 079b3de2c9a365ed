// Package docs_test compiles what docs/recipes.md shows.
package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
	"github.com/amends-dev/amends/store/memory"
)

// Order is the input of most recipes.
type Order struct {
	Number   string
	Customer string
	Name     string
	Phone    string
	Cents    int64
}

// crm is the address book.
type crm struct{ client *sagahttp.Client }

func (a *crm) upsert(ctx context.Context, c saga.Call[Order]) (id string, err error) {
	var contact struct{ ID string }
	_, err = a.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPut,
		Path:   sagahttp.Path("contacts", "by-number", c.Input.Customer), // our number, never theirs
		Body:   map[string]string{"name": c.Input.Name, "phone": c.Input.Phone},
		Into:   &contact,
	})
	return contact.ID, err
}

func contactStep(a *crm) saga.Step[Order] {
	return saga.Do("contact", a.upsert).To("crm").Idempotent().NoUndo("a contact outlives its orders")
}

// sms is a provider that has idempotency keys.
type sms struct{ client *sagahttp.Client }

func (s *sms) send(ctx context.Context, c saga.Call[Order]) (id string, err error) {
	var message struct{ ID string }
	_, err = s.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: "/messages", Key: c.Key, Into: &message,
		Body: map[string]string{"to": c.Input.Phone, "text": "Order " + c.Input.Number + " is on its way."},
	})
	return message.ID, err
}

func smsStep(s *sms) saga.Step[Order] {
	return saga.Do("sms", s.send).To("sms").Keyed(24 * time.Hour).Once().NoUndo("an SMS cannot be taken back")
}

// slack is a workspace.
type slack struct{ client *sagahttp.Client }

func newSlack(address, token string) (*slack, error) {
	client, err := sagahttp.New(address, &sagahttp.Options{ // https://slack.example/api
		Header: http.Header{"Authorization": {"Bearer " + token}},
		CheckResponse: func(r *sagahttp.Response) error { // a refusal comes as 200 and {"ok":false}
			var a struct{ Error string }
			if json.Unmarshal(r.Body, &a) != nil || a.Error == "" {
				return nil
			}
			switch a.Error {
			case "channel_not_found", "is_archived", "msg_too_long":
				return saga.Permanent(errors.New(a.Error))
			case "invalid_auth", "token_expired":
				return saga.NotSent(errors.New(a.Error))
			}
			return errors.New(a.Error) // it may have happened
		},
		NotExecutedCodes: []string{"invalid_auth", "token_expired"},
	})
	return &slack{client}, err
}

func (s *slack) post(ctx context.Context, c saga.Call[Order]) (ts string, err error) {
	var sent struct{ TS string }
	_, err = s.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: "/chat.postMessage", Into: &sent,
		Body: map[string]any{
			"channel": "C024BE91L", "text": "Order " + c.Input.Number + " was paid.",
			"metadata": map[string]any{"event_type": "amends", "event_payload": map[string]string{"work": c.Work}},
		},
	})
	return sent.TS, err
}

// find reads the newest page only. A message that is not on it may be on an older one.
func (s *slack) find(ctx context.Context, c saga.Call[Order]) (saga.Finding[string], error) {
	var page struct {
		Messages []struct {
			TS       string
			Metadata struct {
				Payload struct{ Work string } `json:"event_payload"`
			}
		}
		HasMore bool `json:"has_more"`
	}
	_, err := s.client.Do(ctx, sagahttp.Request{
		Method: http.MethodGet, Path: "/conversations.history", Into: &page,
		Query: url.Values{"channel": {"C024BE91L"}, "include_all_metadata": {"true"}, "limit": {"200"}},
	})
	if err != nil {
		return saga.CannotTell[string](), err
	}
	for _, m := range page.Messages {
		if m.Metadata.Payload.Work == c.Work {
			return saga.Found(m.TS), nil
		}
	}
	if page.HasMore {
		return saga.CannotTell[string](), nil
	}
	return saga.NotFound[string](), nil
}

func slackStep(s *slack) saga.Step[Order] {
	return saga.Do("tell-sales", s.post).To("slack").AtMostOnce().Find(s.find).NoUndo("people have read it")
}

// helpdesk is where people work on tickets.
type helpdesk struct{ client *sagahttp.Client }

// Ticket is one of its tickets.
type Ticket struct {
	ID        string `json:"id,omitempty"`
	Reference string `json:"reference"` // our work id
	Subject   string `json:"subject"`
	State     string `json:"state,omitempty"`
}

// ExternalID is what the helpdesk calls it.
func (t Ticket) ExternalID() string { return t.ID }

func (h *helpdesk) open(ctx context.Context, c saga.Call[Order]) (made Ticket, err error) {
	_, err = h.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: "/tickets", Into: &made,
		Body: Ticket{Reference: c.Work, Subject: "Deliver order " + c.Input.Number},
	})
	return made, err
}

func (h *helpdesk) find(ctx context.Context, c saga.Call[Order]) (saga.Finding[Ticket], error) {
	var all []Ticket
	_, err := h.client.Do(ctx, sagahttp.Request{
		Method: http.MethodGet, Path: "/tickets", Query: url.Values{"reference": {c.Work}, "state": {"open"}}, Into: &all,
	})
	if err != nil {
		return saga.CannotTell[Ticket](), err
	}
	return saga.Found(all...), nil
}

func (h *helpdesk) close(ctx context.Context, _ saga.Call[Order], t Ticket) error {
	_, err := h.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("tickets", t.ID, "state"), Body: map[string]string{"state": "closed"},
	})
	return err
}

func ticketStep(h *helpdesk) saga.Step[Order] {
	return saga.Do("ticket", h.open).To("helpdesk").Settle(2 * time.Minute).Find(h.find).Once().Undo(h.close)
}

// payments is a payment provider that has idempotency keys.
type payments struct{ client *sagahttp.Client }

// Refund is the input of a saga of its own, whose work id is the number of the return.
type Refund struct {
	Payment string // as the provider calls it
	Invoice string // as the books call it
	Cents   int64
}

func (p *payments) refund(ctx context.Context, c saga.Call[Refund]) (id string, err error) {
	var made struct{ ID string }
	_, err = p.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: "/refunds", Key: c.Key, Into: &made,
		Body: map[string]any{"payment": c.Input.Payment, "amount": c.Input.Cents},
	})
	return made.ID, err
}

func refundSaga(p *payments) (*saga.Definition[Refund], error) {
	return saga.Define("refund", 1,
		saga.Approve[Refund]("approved").By("finance").NotStarter().Within(72*time.Hour),
		saga.Do("refund", p.refund).To("payments").Keyed(24*time.Hour).Once().NoUndo("money that was sent back stays there").Pivot(),
	)
}

// books are an accounting system whose issued invoices cannot be changed, only cancelled.
type books struct{ client *sagahttp.Client }

// Invoice is one of theirs.
type Invoice struct {
	ID        string `json:"id,omitempty"`
	Reference string `json:"reference"` // our work id
	Version   string `json:"version"`   // of the order that it shows
	Cents     int64  `json:"cents"`
	Status    string `json:"status,omitempty"`
}

// ExternalID is what the books call it.
func (i Invoice) ExternalID() string { return i.ID }

// cancel does no harm to an invoice that is cancelled already.
func (b *books) cancel(ctx context.Context, id string) error {
	_, err := b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("invoices", id, "status"), Updates: true,
		Body: map[string]string{"status": "cancelled"},
	})
	return err
}

func (b *books) issue(ctx context.Context, c saga.Call[Order]) (made Invoice, err error) {
	_, err = b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: "/invoices", Key: c.Key, Into: &made,
		Body: Invoice{Reference: c.Work, Version: c.Revision, Cents: c.Input.Cents},
	})
	return made, err
}

func (b *books) reissue(ctx context.Context, c saga.Call[Order], old string) (made Invoice, err error) {
	if err := b.cancel(ctx, old); err != nil {
		return made, err
	}
	return b.issue(ctx, c)
}

func (b *books) find(ctx context.Context, c saga.Call[Order]) (saga.Finding[Invoice], error) {
	var all, live []Invoice
	_, err := b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodGet, Path: "/invoices", Query: url.Values{"reference": {c.Work}}, Into: &all,
	})
	if err != nil {
		return saga.CannotTell[Invoice](), err
	}
	for _, i := range all {
		if i.Status != "cancelled" && (i.Version == c.Revision || i.ID != c.PreviousID()) {
			live = append(live, i)
		}
	}
	return saga.Found(live...), nil
}

func (b *books) undo(ctx context.Context, _ saga.Call[Order], i Invoice) error {
	return b.cancel(ctx, i.ID)
}

func invoiceStep(b *books) saga.Step[Order] {
	return saga.Do("invoice", b.issue).To("books").Find(b.find).Update(b.reissue).Undo(b.undo)
}

func (b *books) credit(ctx context.Context, c saga.Call[Refund]) (made Invoice, err error) {
	_, err = b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPost, Path: "/credit-notes", Key: c.Key, Into: &made,
		Body: map[string]any{"reference": c.Work, "invoice": c.Input.Invoice, "amount": c.Input.Cents},
	})
	return made, err
}

func (b *books) findCredit(ctx context.Context, c saga.Call[Refund]) (saga.Finding[Invoice], error) {
	var all []Invoice
	_, err := b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodGet, Path: "/credit-notes", Query: url.Values{"reference": {c.Work}, "status": {"open"}}, Into: &all,
	})
	if err != nil {
		return saga.CannotTell[Invoice](), err
	}
	return saga.Found(all...), nil
}

func (b *books) uncredit(ctx context.Context, _ saga.Call[Refund], note Invoice) error {
	_, err := b.client.Do(ctx, sagahttp.Request{Method: http.MethodDelete, Path: sagahttp.Path("credit-notes", note.ID), Undoes: true})
	return err
}

func creditSaga(b *books, p *payments) (*saga.Definition[Refund], error) {
	return saga.Define("credit", 1,
		saga.Do("credit-note", b.credit).To("books").Find(b.findCredit).Once().Undo(b.uncredit),
		saga.Do("refund", p.refund).To("payments").Keyed(24*time.Hour).Once().NoUndo("money that was sent back stays there").Pivot(),
	)
}

// oldShop tells no versions.
type oldShop struct{ client *sagahttp.Client }

func (s *oldShop) source(apply func(context.Context, saga.Change) error) *inbox.Source {
	return &inbox.Source{
		Name: "shop", Saga: "order-to-invoice", Fetch: s.fetch, Decide: decideOrder, Apply: apply,
		Policy: inbox.Policy{Volatile: []string{"lastSeenAt"}}, // or each look would be a change
	}
}

func (s *oldShop) fetch(ctx context.Context, of inbox.Object) (inbox.Fetched, error) {
	answer, err := s.client.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: sagahttp.Path("orders", of.ID)})
	if answer != nil && answer.Status == http.StatusNotFound {
		return inbox.Fetched{Gone: true}, nil
	}
	if err != nil {
		return inbox.Fetched{}, err
	}
	return inbox.Fetched{Body: answer.Body}, nil // no Version
}

func decideOrder(o inbox.Snapshot) (saga.Change, error) {
	var order struct {
		Order

		EditedBy string
	}
	err := o.Decode(&order)
	if order.EditedBy != "" {
		return saga.Change{Want: saga.WantHeld, Input: order.Order, Reason: order.EditedBy + " has it open in the shop"}, err
	}
	return saga.Change{Input: order.Order}, err
}

// The steps of the recipes are accepted, and stand together in one saga.
func TestRecipesAreDefined(t *testing.T) {
	t.Parallel()
	client := func(address string) *sagahttp.Client {
		c, err := sagahttp.New(address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	chat, err := newSlack("https://slack.example/api", "token")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := saga.Define("order-paid", 1,
		contactStep(&crm{client("https://crm.example/v1")}),
		invoiceStep(&books{client("https://books.example/v1")}),
		ticketStep(&helpdesk{client("https://helpdesk.example/v1")}),
		smsStep(&sms{client("https://sms.example/v1")}),
		slackStep(chat),
	); err != nil {
		t.Error(err)
	}
	paid := &payments{client("https://payments.example/v1")}
	if _, err := refundSaga(paid); err != nil {
		t.Error(err)
	}
	if _, err := creditSaga(&books{client("https://books.example/v1")}, paid); err != nil {
		t.Error(err)
	}
	source := (&oldShop{client("https://shop.example")}).source(func(context.Context, saga.Change) error { return nil })
	if _, err := inbox.New(memory.New(nil), []*inbox.Source{source}, nil); err != nil {
		t.Error(err)
	}
}

// runs is a coordinator that runs a saga over a ledger in memory, until stop has returned.
func runs(t *testing.T, d saga.Program) (c *coordinator.Coordinator, ctx context.Context, stop func()) {
	t.Helper()
	c, err := coordinator.New(memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()
	return c, ctx, func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// An order that is edited has one live invoice, of its newest version, although each answer to the
// first request of an issue is lost.
func TestAnInvoiceIsIssuedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all []Invoice
	lost := map[string]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /invoices", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		i := Invoice{ID: fmt.Sprint("inv-", len(all)+1)}
		if err := json.NewDecoder(r.Body).Decode(&i); err != nil {
			t.Error(err)
		}
		all = append(all, i)
		if !lost[i.Version] {
			lost[i.Version] = true
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(i)
	})
	mux.HandleFunc("GET /invoices", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(all)
	})
	mux.HandleFunc("PUT /invoices/{id}/status", func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for n := range all {
			if all[n].ID == r.PathValue("id") {
				all[n].Status = "cancelled"
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	client, err := sagahttp.New(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &books{client}
	def, err := saga.Define("invoice-order", 1, saga.Do("invoice", b.issue).Settle(10*time.Millisecond).Timeout(time.Second).
		Retry(saga.Retry{Initial: 10 * time.Millisecond}).Find(b.find).Update(b.reissue).Undo(b.undo))
	if err != nil {
		t.Fatal(err)
	}
	c, ctx, stop := runs(t, def)
	for version := 1; version <= 3; version++ {
		input := Order{Number: "42", Cents: int64(1000 * version)}
		if _, err := c.Start(ctx, "invoice-order", "shop:order:42", input, &saga.StartOptions{Revision: strconv.Itoa(version)}); err != nil {
			t.Fatal(err)
		}
		for done := false; !done; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // a poll
			s, err := c.Wait(ctx, "invoice-order", "shop:order:42")
			if err != nil {
				t.Fatal(err)
			}
			done = s.Revision == strconv.Itoa(version)
		}
	}
	stop()
	if len(all) != 3 || all[0].Status != "cancelled" || all[1].Status != "cancelled" || all[2].Status != "" || all[2].Cents != 3000 {
		t.Errorf("the books have %+v", all)
	}
}
