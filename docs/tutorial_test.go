package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// The programs of the tutorials: they are compiled, and the pages show them word for word.

type Basket struct{ ID string }

type PaidOrder struct{ ID string }

type Made struct{ ID string }

func (m Made) ExternalID() string { return m.ID }

func checkout(pay, orders *sagahttp.Client) (*saga.Definition[Basket], error) {
	return saga.Define("checkout", 1,
		saga.Do("charge", func(ctx context.Context, c saga.Call[Basket]) (Made, error) {
			var made Made
			_, err := pay.Do(ctx, sagahttp.Request{Method: "POST", Path: "/charges", Key: c.Key, Body: c.Input, Into: &made})
			return made, err
		}).Keyed(24*time.Hour).UndoMaybe(func(ctx context.Context, c saga.Call[Basket], _ *Made) error {
			_, err := pay.Do(ctx, sagahttp.Request{Method: "POST", Path: "/refunds", Key: c.Key, Body: map[string]string{"charge": c.MadeKey}})
			return err
		}),
		saga.Do("order", func(ctx context.Context, c saga.Call[Basket]) (Made, error) {
			var made Made
			_, err := orders.Do(ctx, sagahttp.Request{Method: "PUT", Path: sagahttp.Path("orders", c.Input.ID), Body: c.Input, Into: &made})
			return made, err
		}).Idempotent().NoUndo("it is the last step"),
	)
}

func handler(c *coordinator.Coordinator, def *saga.Definition[Basket]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b Basket
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		work := "basket:" + b.ID
		switch err := def.Start(r.Context(), c, work, b); {
		case errors.Is(err, coordinator.ErrInvalid):
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case errors.Is(err, coordinator.ErrConflict): // the same basket, with another content
			http.Error(w, err.Error(), http.StatusConflict)
			return
		case err != nil: // the ledger does not answer: the client may send it again
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		s, err := c.Wait(ctx, "checkout", work)
		switch {
		case err != nil: // it goes on without this request
			w.WriteHeader(http.StatusAccepted)
		case s.Status == saga.Completed:
			w.WriteHeader(http.StatusCreated)
		default:
			http.Error(w, "not ordered: "+s.Note, http.StatusUnprocessableEntity)
		}
	}
}

func syncOrder(books, shop *sagahttp.Client, mail func(context.Context, saga.Call[PaidOrder]) (string, error)) (*saga.Definition[PaidOrder], error) {
	return saga.Define("order-to-invoice", 1,
		saga.Do("invoice", func(ctx context.Context, c saga.Call[PaidOrder]) (Made, error) {
			var made Made
			r := sagahttp.Request{Method: "PUT", Path: sagahttp.Path("invoices", c.Work), Body: c.Input, Into: &made} // our reference: twice is once
			_, err := books.Do(ctx, r)
			return made, err
		}).Idempotent().UndoMaybe(func(ctx context.Context, c saga.Call[PaidOrder], _ *Made) error {
			_, err := books.Do(ctx, sagahttp.Request{Method: "DELETE", Path: sagahttp.Path("invoices", c.Work)})
			return err
		}),
		saga.Do("mark", func(ctx context.Context, c saga.Call[PaidOrder]) (struct{}, error) {
			_, err := shop.Do(ctx, sagahttp.Request{Method: "PUT", Path: sagahttp.Path("orders", c.Input.ID, "synced")})
			return struct{}{}, err
		}).Idempotent().NoID().NoUndo("the shop shows it").Pivot(),
		saga.Do("receipt", mail).AtMostOnce().NoUndo("a mail cannot be unsent"),
	)
}

func everyFiveMinutes(ctx context.Context, c *coordinator.Coordinator, sync *saga.Definition[PaidOrder], paid func(context.Context) ([]PaidOrder, error)) error {
	orders, err := paid(ctx)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if err := sync.Start(ctx, c, "shop:order:"+o.ID, o); err != nil && !errors.Is(err, coordinator.ErrConflict) {
			return err
		}
	}
	return nil
}

// The definitions of the tutorials are sound.
func TestTutorials(t *testing.T) {
	t.Parallel()
	client, err := sagahttp.New("https://api.example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	mail := func(context.Context, saga.Call[PaidOrder]) (string, error) { return "", nil }
	if _, err := checkout(client, client); err != nil {
		t.Error(err)
	}
	if _, err := syncOrder(client, client, mail); err != nil {
		t.Error(err)
	}
	if handler(nil, nil) == nil || everyFiveMinutes(t.Context(), nil, nil, func(context.Context) ([]PaidOrder, error) { return nil, nil }) != nil {
		t.Error("the programs of the tutorials do not run")
	}
}
