package shop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/rest"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

type testShop struct {
	store *shop.Store
	path  string
	url   string
	now   time.Time
}

// open starts a shop over path with a clock that the test moves.
func open(t *testing.T, path string) *testShop {
	t.Helper()
	store, err := shop.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &testShop{store: store, path: path, now: time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)}
	store.Now = func() time.Time { return s.now }
	server, err := rest.Listen(t.Context(), shop.NewHandler(store))
	if err != nil {
		t.Fatal(err)
	}
	s.url = server.URL
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// setup starts a shop with n paid orders, 1 to n.
func setup(t *testing.T, n int) *testShop {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "shop.db"))
	for i := range n {
		err := s.store.Add(t.Context(), shop.Order{
			ID: fmt.Sprint(i + 1), Status: shop.Paid, Version: 1,
			Lines: []shop.Line{{SKU: "tea", Quantity: 2, UnitCents: 150}}, TotalCents: 300,
			PaidAt: s.now.Add(-time.Hour), UpdatedAt: s.now.Add(-time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// do asks the shop and decodes the answer into out when there is one.
func (s *testShop) do(t *testing.T, method, path string, in, out any) int {
	t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, &body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if out != nil {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return resp.StatusCode
}

// refused expects a refusal with this status and code.
func (s *testShop) refused(t *testing.T, method, path string, in any, status int, code string) {
	t.Helper()
	var p rest.Error
	if got := s.do(t, method, path, in, &p); got != status || p.Code != code {
		t.Errorf("%s %s: got %d %q, want %d %q", method, path, got, p.Code, status, code)
	}
}

// Pages hold the chosen orders, oldest first, and the cursor leads through all
// of them, once each, also after an empty page.
func TestPages(t *testing.T) {
	t.Parallel()
	s := setup(t, 5)
	s.do(t, "POST", "/orders/2/cancel", nil, nil)
	s.do(t, "PUT", "/orders/4/synced", shop.Mark{InvoiceID: "inv_1"}, nil)
	walk := func(query, after string) (ids, next string) {
		for {
			var p shop.Page
			if status := s.do(t, "GET", "/orders?limit=2&"+query+"&after="+after, nil, &p); status != 200 {
				t.Fatalf("status %d", status)
			}
			if len(p.Orders) == 0 {
				return ids, p.Next
			}
			for _, o := range p.Orders {
				ids += o.ID
			}
			after = p.Next
		}
	}
	for query, want := range map[string]string{
		"":                      "12345",
		"status=paid":           "1345",
		"status=paid&synced=no": "135",
		"status=cancelled":      "2",
	} {
		if got, _ := walk(query, ""); got != want {
			t.Errorf("%q: orders %s, want %s", query, got, want)
		}
	}
	_, end := walk("status=paid", "")
	if err := s.store.Add(t.Context(), shop.Order{ID: "6", Status: shop.Paid}); err != nil {
		t.Fatal(err)
	}
	if got, _ := walk("status=paid", end); got != "6" {
		t.Errorf("after the end came %q, want the new order 6", got)
	}
	s.refused(t, "GET", "/orders?after=x", nil, 400, "bad_request")
	s.refused(t, "GET", "/orders?limit=0", nil, 400, "bad_request")
}

// Our own mark moves version and updatedAt, and repeating it changes nothing.
func TestMark(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	var first, again, read shop.Order
	if status := s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_7"}, &first); status != 200 {
		t.Fatalf("status %d", status)
	}
	if first.InvoiceID != "inv_7" || first.Version != 2 || !first.UpdatedAt.Equal(s.now) {
		t.Errorf("after the mark: %+v", first)
	}
	s.now = s.now.Add(time.Minute)
	s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_7"}, &again)
	s.do(t, "GET", "/orders/1", nil, &read)
	for _, o := range []shop.Order{again, read} {
		if o.Version != 2 || !o.UpdatedAt.Equal(first.UpdatedAt) || o.TotalCents != 300 || len(o.Lines) != 1 {
			t.Errorf("the second mark changed the order: %+v", o)
		}
	}
	s.refused(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_8"}, 409, shop.CodeOrderSynced)
	s.refused(t, "PUT", "/orders/1/synced", shop.Mark{}, 400, "bad_request")
	s.refused(t, "PUT", "/orders/9/synced", shop.Mark{InvoiceID: "inv_8"}, 404, shop.CodeUnknownOrder)
}

// The mark can be taken off, and taking it off twice is no error.
func TestClearMark(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_7"}, nil)
	for range 2 {
		if status := s.do(t, "DELETE", "/orders/1/synced", nil, nil); status != 204 {
			t.Errorf("status %d", status)
		}
	}
	var o shop.Order
	s.do(t, "GET", "/orders/1", nil, &o)
	if o.InvoiceID != "" || o.Version != 3 {
		t.Errorf("after clearing twice: %+v, want no mark and version 3", o)
	}
}

// A cancelled order refuses the mark with a code of its own.
func TestCancel(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	for range 2 {
		var o shop.Order
		if status := s.do(t, "POST", "/orders/1/cancel", nil, &o); status != 200 || o.Status != shop.Cancelled || o.Version != 2 {
			t.Errorf("cancel: %d %+v", status, o)
		}
	}
	s.refused(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_1"}, 422, shop.CodeOrderCancelled)
	s.do(t, "PUT", "/orders/2/synced", shop.Mark{InvoiceID: "inv_2"}, nil)
	if err := s.store.Add(t.Context(), shop.Order{ID: "3", Status: shop.Pending}); err != nil {
		t.Fatal(err)
	}
	s.refused(t, "PUT", "/orders/3/synced", shop.Mark{InvoiceID: "inv_3"}, 422, shop.CodeOrderNotPaid)
	tally, err := s.store.Tally(t.Context())
	if want := (shop.Tally{Paid: 1, Synced: 1, Cancelled: 1}); err != nil || tally != want {
		t.Errorf("tally %+v, %v, want %+v", tally, err, want)
	}
}

// A marked order can be cancelled. The mark stays until it is taken off, cannot
// be set again, and the order remembers that it was there.
func TestLateCancel(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	var late, early, later shop.Order
	s.do(t, "POST", "/orders/2/cancel", nil, &early)
	s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_7"}, nil)
	s.do(t, "POST", "/orders/1/cancel", nil, &late)
	if late.Status != shop.Cancelled || late.InvoiceID != "inv_7" || !late.LateCancel || late.Version != 3 {
		t.Errorf("cancelled late: %+v", late)
	}
	if early.LateCancel {
		t.Errorf("cancelled early: %+v", early)
	}
	s.refused(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_7"}, 422, shop.CodeOrderCancelled)
	s.do(t, "DELETE", "/orders/1/synced", nil, nil)
	s.do(t, "POST", "/orders/1/cancel", nil, nil)
	s.do(t, "GET", "/orders/1", nil, &later)
	if later.InvoiceID != "" || !later.LateCancel || later.Version != 4 {
		t.Errorf("with the mark taken off: %+v", later)
	}
}

// An edit replaces the lines, moves total and version, and leaves the mark
// alone. Repeating it changes nothing; cancelled orders and empty edits refuse.
func TestEdit(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.do(t, "PUT", "/orders/1/synced", shop.Mark{InvoiceID: "inv_7"}, nil)
	edit := shop.Edit{Lines: []shop.Line{{SKU: "tea", Quantity: 3, UnitCents: 150}, {SKU: "cup", Quantity: 1, UnitCents: 999}}}
	for range 2 {
		var o, read shop.Order
		if status := s.do(t, "POST", "/orders/1/edit", edit, &o); status != 200 {
			t.Fatalf("status %d", status)
		}
		s.do(t, "GET", "/orders/1", nil, &read)
		for _, o := range []shop.Order{o, read} {
			if o.TotalCents != 1449 || !slices.Equal(o.Lines, edit.Lines) || o.Version != 3 || o.InvoiceID != "inv_7" || !o.UpdatedAt.Equal(s.now) {
				t.Errorf("edited: %+v", o)
			}
		}
	}
	s.refused(t, "POST", "/orders/1/edit", shop.Edit{}, 422, shop.CodeEmptyOrder)
	s.refused(t, "POST", "/orders/1/edit", "no lines", 400, "bad_request")
	s.refused(t, "POST", "/orders/9/edit", edit, 404, shop.CodeUnknownOrder)
	s.do(t, "POST", "/orders/2/cancel", nil, nil)
	s.refused(t, "POST", "/orders/2/edit", edit, 422, shop.CodeOrderCancelled)
}

// What the shop knows is in its file.
func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	first, err := shop.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Add(t.Context(), shop.Order{ID: "1", Status: shop.Paid}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.MarkSynced(t.Context(), "1", "inv_1"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	var o shop.Order
	open(t, path).do(t, "GET", "/orders/1", nil, &o)
	if o.InvoiceID != "inv_1" || o.Version != 2 {
		t.Errorf("after reopening: %+v", o)
	}
}
