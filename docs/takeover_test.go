package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// oldBooks are where an old script made invoices.
type oldBooks struct{ client *sagahttp.Client }

type bill struct {
	ID    string `json:"id"`
	Order string `json:"order"`
	Cents int64  `json:"cents"`
}

func (b bill) ExternalID() string { return b.ID }

// find asks for the order and not for our key, which the old script's invoices do not have.
func (b *oldBooks) find(ctx context.Context, c saga.Call[Order]) (saga.Finding[bill], error) {
	var all []bill
	_, err := b.client.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: "/invoices", Query: url.Values{"order": {c.Work}}, Into: &all})
	switch {
	case err != nil:
		return saga.CannotTell[bill](), err
	case len(all) == 1 && all[0].Cents != c.Input.Cents:
		return saga.FoundOther(all[0], fmt.Sprintf("%d cents, and the order has %d", all[0].Cents, c.Input.Cents)), nil
	default:
		return saga.Found(all...), nil // none: it is made; one: it is taken; more: a person is asked
	}
}

func (b *oldBooks) create(ctx context.Context, c saga.Call[Order]) (made bill, err error) {
	_, err = b.client.Do(ctx, sagahttp.Request{Method: http.MethodPost, Path: "/invoices", Body: bill{Order: c.Work, Cents: c.Input.Cents}, Into: &made})
	return made, err
}

func (b *oldBooks) change(ctx context.Context, c saga.Call[Order], id string) (made bill, err error) {
	_, err = b.client.Do(ctx, sagahttp.Request{
		Method: http.MethodPut, Path: sagahttp.Path("invoices", id), Updates: true, Into: &made,
		Body: bill{ID: id, Order: c.Work, Cents: c.Input.Cents},
	})
	return made, err
}

func (b *oldBooks) void(ctx context.Context, _ saga.Call[Order], made bill) error {
	_, err := b.client.Do(ctx, sagahttp.Request{Method: http.MethodDelete, Path: sagahttp.Path("invoices", made.ID)})
	return err
}

func mailReceipt(context.Context, saga.Call[Order]) (string, error) { return "sent", nil }

func takenOver(b *oldBooks, stopped time.Time) (*saga.Definition[Order], error) {
	return saga.Define("order-to-invoice", 1,
		saga.TakeOver[Order](stopped), // of the old script
		saga.Do("invoice", b.create).To("books").Find(b.find).Update(b.change).Undo(b.void),
		saga.Do("receipt", mailReceipt).To("mail").AtMostOnce().NoUndo("it is read").
			When(func(c saga.Call[Order]) bool { return !c.WasThere("invoice") }), // the script mailed what it invoiced
	)
}

// The page's saga over books in which an old script made one invoice, and another of which the order was changed since.
func TestTakeover(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	there := map[string]bill{"1": {"inv_old", "1", 1000}, "2": {"inv_changed", "2", 500}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /invoices", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		all := []bill{}
		if b, ok := there[r.URL.Query().Get("order")]; ok {
			all = append(all, b)
		}
		_ = json.NewEncoder(w).Encode(all)
	})
	write := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var b bill
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodPost {
			b.ID = "inv_" + b.Order
		}
		there[b.Order] = b
		_ = json.NewEncoder(w).Encode(b)
	}
	mux.HandleFunc("POST /invoices", write)
	mux.HandleFunc("PUT /invoices/{id}", write)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := sagahttp.New(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := takenOver(&oldBooks{client}, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	c, ctx, stop := runs(t, d)
	defer stop()
	for work, want := range map[string]string{"1": "inv_old", "2": "inv_changed", "3": "inv_3"} {
		if _, err := c.Start(ctx, "order-to-invoice", work, Order{Cents: 1000}, nil); err != nil {
			t.Fatal(err)
		}
		s, err := c.Wait(ctx, "order-to-invoice", work)
		if err != nil || s.Status != saga.Completed || s.Steps["invoice"].ExternalID != want || there[work].Cents != 1000 {
			t.Errorf("order %s: %s with invoice %q, %v; the books have %+v", work, s.Status, s.Steps["invoice"].ExternalID, err, there[work])
		}
		if mailed := s.Steps["receipt"].Done; mailed != (work == "3") {
			t.Errorf("order %s: mailed %t", work, mailed)
		}
	}
	if asked != 3 {
		t.Errorf("the books were asked %d times: one lookup for each invoice, where nothing fails, and want 3", asked)
	}
}
