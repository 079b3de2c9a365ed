package shop_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// heard is what the outbox holds behind a place, one webhook a line.
func (s *testShop) heard(t *testing.T, after int64) []string {
	t.Helper()
	all, err := s.store.Outbox(t.Context(), after, 100)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(all))
	for i, w := range all {
		var e shop.Event
		if err := json.Unmarshal(w.Body, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != w.Topic || e.Data.ID != w.Order || e.Data.Version != w.Version || !e.Timestamp.Equal(e.Data.UpdatedAt) {
			t.Errorf("%+v says %+v", w, e)
		}
		lines[i] = fmt.Sprintf("%d %s %s %s %s %d", w.Seq, w.ID(), e.Type, e.Data.Status, e.Data.InvoiceID, e.Data.TotalCents)
	}
	return lines
}

// Every change is a webhook with the whole order as the change left it, and
// what changes nothing or is refused is none. The one who is told at once is
// told the same.
func TestOutbox(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	var told []shop.Webhook
	s.store.Changed = func(w shop.Webhook) { told = append(told, w) }
	for range 2 {
		s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_7"}, nil)
	}
	s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_8"}, nil) // refused
	for range 2 {
		s.do(t, "POST", "/orders/1/edit", shop.Edit{Lines: []shop.Line{{SKU: "tea", Quantity: 1, UnitCents: 150}}}, nil)
	}
	for range 2 {
		s.do(t, "POST", "/orders/1/cancel", nil, nil)
	}
	s.do(t, "POST", "/orders/1/edit", shop.Edit{Lines: []shop.Line{{SKU: "tea", Quantity: 9, UnitCents: 150}}}, nil) // refused
	for range 2 {
		s.do(t, "DELETE", "/orders/1/synced", nil, nil)
	}
	if err := s.store.Add(t.Context(), shop.Order{ID: "2", Status: shop.Pending}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 msg_1_1 order.paid paid  300",
		"2 msg_1_2 order.marked paid inv_7 300",
		"3 msg_1_3 order.edited paid inv_7 150",
		"4 msg_1_4 order.cancelled cancelled inv_7 150",
		"5 msg_1_5 order.unmarked cancelled  150",
		"6 msg_2_1 order.created pending  0",
	}
	if got := s.heard(t, 0); !slices.Equal(got, want) {
		t.Errorf("the outbox has\n%q\nwant\n%q", got, want)
	}
	stored, err := s.store.Outbox(t.Context(), 1, 5)
	if err != nil || !reflect.DeepEqual(stored, told) {
		t.Errorf("stored\n%+v, %v\ntold\n%+v", stored, err, told)
	}
}

// What was acknowledged is not in the outbox any more, also after a restart.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	s := setup(t, 3)
	for range 2 {
		if err := s.store.Acknowledge(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"1 msg_1_1 order.paid paid  300", "3 msg_3_1 order.paid paid  300"}
	for _, s := range []*testShop{s, open(t, s.path)} {
		if got := s.heard(t, 0); !slices.Equal(got, want) {
			t.Errorf("the outbox has %q, want %q", got, want)
		}
		if got, err := s.store.Told(t.Context()); err != nil || got != (shop.Told{Made: 3, Acknowledged: 1}) {
			t.Errorf("%+v, %v, want 1 of 3 acknowledged", got, err)
		}
	}
	if got := s.heard(t, 1); !slices.Equal(got, want[1:]) {
		t.Errorf("behind the first there is %q, want %q", got, want[1:])
	}
}

// A change whose webhook cannot be stored does not happen: both are one
// transaction.
func TestChangeAndWebhookAreOne(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.store.Changed = func(w shop.Webhook) { t.Errorf("told of %+v", w) }
	if err := s.store.Exec(t.Context(), `DROP TABLE outbox`); err != nil {
		t.Fatal(err)
	}
	if status := s.do(t, "POST", "/orders/1/cancel", nil, nil); status != 500 {
		t.Errorf("status %d", status)
	}
	var o shop.Order
	s.do(t, "GET", "/orders/1", nil, &o)
	if o.Status != shop.Paid || o.Version != 1 {
		t.Errorf("the order is %+v", o)
	}
}
