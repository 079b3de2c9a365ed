package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/amends-dev/amends/callback"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// Order is what a customer has ordered, as the shop says it.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Plan     string `json:"plan"`
	Cents    int64  `json:"cents"`
}

// made is what a partner made for an order.
type made struct {
	ID    string `json:"id"`
	State string `json:"state"` // of a job: running, ready, failed or released
	Why   string `json:"why,omitempty"`
}

// ExternalID is what the partner calls it.
func (m made) ExternalID() string { return m.ID }

// partners are the systems that the saga speaks with.
type partners struct {
	client    *sagahttp.Client
	callbacks string // where we are called back, with the token behind it
	approvals string // where people decide, with the path of the page behind it
}

// chargeAndProvision is the saga. What fails, at whichever step, is undone: the order is cancelled, the server is released, the money is
// paid back.
func chargeAndProvision(p *partners, patience time.Duration) (*saga.Definition[Order], error) {
	brisk := saga.Defaults{Timeout: 2 * time.Second, Settle: 500 * time.Millisecond, Retry: saga.Retry{Initial: 50 * time.Millisecond, Max: time.Second}}
	return saga.Define("charge-and-provision", 1,
		saga.Do("validate", p.validate).With(brisk).Idempotent().NoID().NoUndo("it only looks"),
		saga.Approve[Order]("approved").About(about).By("finance").Votes(2).NotStarter().When(large).Within(patience).
			Ask(saga.Do("ask-finance", p.ask).With(brisk).To("mail").Keyed(24*time.Hour).NoID().NoUndo("its page says that it is over")).
			Remind(patience/3).Escalate(patience/2, "cfo"),
		saga.Delay[Order]("second-thoughts", patience/100).When(large),
		saga.Do("charge", p.charge).With(brisk).To("payments").Keyed(24*time.Hour).Once().UndoMaybe(p.refund),
		saga.Do("order", p.order).With(brisk).To("orders").Idempotent().UndoMaybe(p.cancel),
		saga.Do("provision", p.provision).With(brisk).To("provisioner").Keyed(24*time.Hour).Once().UndoMaybe(p.release),
		saga.Await("provisioned", p.read).Callback("provision").Within(patience, saga.Compensate).Find(p.find).Poll(patience/4).To("provisioner").Pivot(),
		saga.Do("finish", p.finish).With(brisk).To("orders").Idempotent().NoUndo("the customer has what was paid for"),
	)
}

func (p *partners) validate(_ context.Context, c saga.Call[Order]) (struct{}, error) {
	if c.Input.Cents <= 0 || c.Input.Customer == "" {
		return struct{}{}, saga.Permanent(fmt.Errorf("order %s is of %d cents for customer %q", c.Input.ID, c.Input.Cents, c.Input.Customer))
	}
	return struct{}{}, nil
}

// large says which orders finance decides about before money moves.
func large(c saga.Call[Order]) bool { return c.Input.Cents > 2000 }

// about is what they read first.
func about(c saga.Call[Order]) saga.About {
	return saga.About{
		Title: "Charge " + c.Input.Customer + " for the plan " + c.Input.Plan, Amount: fmt.Sprintf("EUR %d.%02d", c.Input.Cents/100, c.Input.Cents%100),
		Link: "https://shop.example/orders/" + url.PathEscape(c.Input.ID), Fields: []saga.Field{{Name: "order", Value: c.Input.ID}},
	}
}

// ask writes to those who decide. Its key has the mail server send it once; the mail has a link, and a link alone decides nothing.
func (p *partners) ask(ctx context.Context, c saga.Call[Order]) (struct{}, error) {
	b := c.Brief()
	subject := fmt.Sprintf("Please approve by %s: %s, %s (%s)", b.Until.UTC().Format(time.RFC1123), b.About.Title, b.About.Amount, c.Work)
	switch {
	case b.Reminder:
		subject = "Reminder: " + subject
	case b.Escalated:
		subject = "Escalated to you: " + subject
	}
	_, err := p.send(ctx, http.MethodPost, "/mails", c.Key, map[string]any{"for": c.Work, "to": b.Roles, "subject": subject, "link": p.approvals + b.Path})
	return struct{}{}, err
}

func (p *partners) send(ctx context.Context, method, path, key string, body any) (m made, err error) {
	_, err = p.client.Do(ctx, sagahttp.Request{Method: method, Path: path, Key: key, Body: body, Into: &m})
	return m, err
}

func (p *partners) charge(ctx context.Context, c saga.Call[Order]) (made, error) {
	return p.send(ctx, http.MethodPost, "/charges", c.Key, map[string]any{"for": c.Work, "cents": c.Input.Cents})
}

// refund pays back what was charged under the key of the charge; what was not charged is nothing to pay back.
func (p *partners) refund(ctx context.Context, c saga.Call[Order], _ *made) error {
	_, err := p.send(ctx, http.MethodPost, "/refunds", c.Key, map[string]any{"for": c.Work, "charge": c.MadeKey})
	return err
}

func (p *partners) order(ctx context.Context, c saga.Call[Order]) (made, error) {
	return p.send(ctx, http.MethodPut, sagahttp.Path("orders", c.Work), c.Key, map[string]any{"plan": c.Input.Plan})
}

func (p *partners) cancel(ctx context.Context, c saga.Call[Order], _ *made) error {
	_, err := p.send(ctx, http.MethodPut, sagahttp.Path("orders", c.Work), c.Key, map[string]any{"cancelled": true})
	return err
}

func (p *partners) finish(ctx context.Context, c saga.Call[Order]) (made, error) {
	return p.send(ctx, http.MethodPut, sagahttp.Path("orders", c.Work), c.Key, map[string]any{"server": c.ExternalID("provisioned")})
}

// provision asks for a server. That takes a while: the provisioner answers with a job, and calls back when it is done.
func (p *partners) provision(ctx context.Context, c saga.Call[Order]) (made, error) {
	return p.send(ctx, http.MethodPost, "/jobs", c.Key, map[string]any{"for": c.Work, "callback": p.callbacks + c.CallbackToken()})
}

func (p *partners) release(ctx context.Context, c saga.Call[Order], _ *made) error {
	_, err := p.client.Do(ctx, sagahttp.Request{Method: http.MethodDelete, Path: "/jobs", Query: url.Values{"for": {c.Work}}, Key: c.Key})
	return err
}

// read reads a callback of the provisioner: a job that is ready.
func (p *partners) read(c saga.Call[Order], m saga.Message) (job made, err error) {
	if err := callback.Into(m, &job); err != nil {
		return job, err
	}
	if job.ID != c.ExternalID("provision") || job.State != "ready" {
		return job, errors.New("it is not our job, or not ready")
	}
	return job, nil
}

// find asks how far the job is: a callback that is lost is only a delay.
func (p *partners) find(ctx context.Context, c saga.Call[Order]) (saga.Finding[made], error) {
	var job made
	_, err := p.client.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: sagahttp.Path("jobs", c.ExternalID("provision")), Into: &job})
	switch {
	case err != nil:
		return saga.CannotTell[made](), err
	case job.State == "ready":
		return saga.Found(job), nil
	case job.State == "failed":
		return saga.FoundFailed[made](job.Why), nil
	default:
		return saga.FoundUnfinished(job), nil
	}
}
