package books_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/rest"
)

type testBooks struct {
	store *books.Store
	url   string
	now   time.Time
}

func setup(t *testing.T, o books.Options) *testBooks {
	t.Helper()
	store, err := books.Open(filepath.Join(t.TempDir(), "books.db"))
	if err != nil {
		t.Fatal(err)
	}
	b := &testBooks{store: store, now: time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)}
	store.Now = func() time.Time { return b.now }
	server, err := rest.Listen(t.Context(), books.NewHandler(store, o))
	if err != nil {
		t.Fatal(err)
	}
	b.url = server.URL
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *testBooks) do(t *testing.T, method, path string, in, out any) int {
	t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, &body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "always-the-same")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode
}

var draft = books.Draft{
	Customer: "cus_0001", Reference: "shop:order:1",
	Lines: []books.Line{{Description: "tea", Quantity: 3, UnitCents: 150}, {Description: "cup", Quantity: 1, UnitCents: 999}},
}

// A customer's reference is its identity: a second PUT finds it and brings
// the contact up to date.
func TestCustomers(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	put := func(ref, name string) (c books.Customer) {
		if status := b.do(t, "PUT", "/customers/"+ref, books.Contact{Name: name, Email: "a@post.example"}, &c); status != 200 {
			t.Fatalf("status %d", status)
		}
		return c
	}
	ada, again, other := put("shop:customer:1", "Ada"), put("shop:customer:1", "Ada L."), put("shop:customer:2", "Bo")
	if ada.ID != "cus_0001" || again.ID != ada.ID || again.Name != "Ada L." || other.ID == ada.ID {
		t.Errorf("got %+v, %+v, %+v", ada, again, other)
	}
}

// The reference of an invoice is not unique and no key is honoured: a second
// POST makes a second invoice.
func TestInvoicesAreNotUnique(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	var first, second books.Invoice
	if status := b.do(t, "POST", "/invoices", draft, &first); status != 201 {
		t.Fatalf("status %d", status)
	}
	b.do(t, "POST", "/invoices", draft, &second)
	if first.ID != "inv_0001" || second.ID != "inv_0002" || first.TotalCents != 1449 || first.State != books.Live || first.CustomerRef != "shop:customer:1" || !slices.Equal(first.Lines, draft.Lines) {
		t.Errorf("got %+v and %+v", first, second)
	}
	var found books.List
	b.do(t, "GET", "/invoices?reference=shop:order:1", nil, &found)
	if len(found.Invoices) != 2 || !reflect.DeepEqual(found.Invoices[0], first) {
		t.Errorf("found %+v", found)
	}
	b.do(t, "GET", "/invoices?reference=shop:order:2", nil, &found)
	if found.Invoices == nil || len(found.Invoices) != 0 {
		t.Errorf("found %+v, want an empty list", found)
	}
}

// Drafts that make no sense are refused with a code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	unknown, empty := draft, draft
	unknown.Customer, empty.Lines = "cus_0099", nil
	for _, c := range []struct {
		method, path string
		in           any
		status       int
		code         string
	}{
		{"POST", "/invoices", unknown, 422, books.CodeUnknownCustomer},
		{"POST", "/invoices", empty, 422, books.CodeEmptyInvoice},
		{"POST", "/invoices", "no draft", 400, "bad_request"},
		{"POST", "/invoices/inv_0099/void", nil, 404, books.CodeUnknownInvoice},
		{"POST", "/invoices/42/void", nil, 404, books.CodeUnknownInvoice},
		{"GET", "/invoices", nil, 400, "bad_request"},
		{"GET", "/invoices?mark=a&reference=b", nil, 400, "bad_request"},
		{"GET", "/invoices?mark=a&limit=0", nil, 400, "bad_request"},
		{"GET", "/invoices?mark=a&after=7", nil, 400, "bad_request"},
		{"GET", "/invoices/inv_0099", nil, 404, books.CodeUnknownInvoice},
		{"PUT", "/invoices/inv_0099", books.Update{Lines: draft.Lines}, 404, books.CodeUnknownInvoice},
		{"PUT", "/invoices/inv_0099", books.Update{}, 422, books.CodeEmptyInvoice},
		{"PUT", "/invoices/inv_0099", "no update", 400, "bad_request"},
	} {
		var p rest.Error
		if status := b.do(t, c.method, c.path, c.in, &p); status != c.status || p.Code != c.code {
			t.Errorf("%s %s: got %d %q, want %d %q", c.method, c.path, status, p.Code, c.status, c.code)
		}
	}
	if all, err := b.store.Invoices(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("refusals left %v, %v", all, err)
	}
}

// A void invoice stays void, keeps its number and is still found.
func TestVoid(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	var made, void books.Invoice
	b.do(t, "POST", "/invoices", draft, &made)
	for range 2 {
		if status := b.do(t, "POST", "/invoices/inv_0001/void", nil, &void); status != 200 || void.State != books.Void || void.ID != made.ID {
			t.Errorf("void: %d %+v", status, void)
		}
	}
	var found books.List
	b.do(t, "GET", "/invoices?reference=shop:order:1", nil, &found)
	if len(found.Invoices) != 1 || !reflect.DeepEqual(found.Invoices[0], void) {
		t.Errorf("found %+v", found)
	}
}

// A hidden invoice is there at once, but lookups see it only later.
func TestLateLookup(t *testing.T) {
	t.Parallel()
	booked := 0
	b := setup(t, books.Options{
		Hidden: func(context.Context) time.Duration { return time.Minute },
		Booked: func(context.Context, books.Invoice) { booked++ },
	})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	b.do(t, "POST", "/invoices", draft, &books.Invoice{})
	if all, err := b.store.Invoices(t.Context()); err != nil || len(all) != 1 || booked != 1 {
		t.Fatalf("stored %v, %v, told %d times", all, err, booked)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {59 * time.Second, 0}, {time.Second, 1}} {
		b.now = b.now.Add(step.after)
		var found books.List
		b.do(t, "GET", "/invoices?reference=shop:order:1", nil, &found)
		if len(found.Invoices) != step.want {
			t.Errorf("at %v: found %d, want %d", b.now, len(found.Invoices), step.want)
		}
	}
}

// An update writes new content on the same invoice; repeating it changes
// nothing. A void invoice refuses, and keeps what it says.
func TestUpdate(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	first := draft
	first.Memo = "revision 1"
	var made, updated, read books.Invoice
	b.do(t, "POST", "/invoices", first, &made)
	if made.Memo != "revision 1" {
		t.Errorf("made %+v", made)
	}
	want := made
	update := books.Update{Memo: "revision 3", Lines: []books.Line{{Description: "tea", Quantity: 1, UnitCents: 150}}}
	want.Memo, want.Lines, want.TotalCents = update.Memo, update.Lines, 150
	for range 2 {
		if status := b.do(t, "PUT", "/invoices/"+made.ID, update, &updated); status != 200 || !reflect.DeepEqual(updated, want) {
			t.Errorf("update: %d %+v, want %+v", status, updated, want)
		}
	}
	b.do(t, "POST", "/invoices/"+made.ID+"/void", nil, &books.Invoice{})
	var p rest.Error
	if status := b.do(t, "PUT", "/invoices/"+made.ID, books.Update{Memo: "late", Lines: draft.Lines}, &p); status != 409 || p.Code != books.CodeInvoiceVoid {
		t.Errorf("update of a void one: %d %q", status, p.Code)
	}
	want.State = books.Void
	if status := b.do(t, "GET", "/invoices/"+made.ID, nil, &read); status != 200 || !reflect.DeepEqual(read, want) {
		t.Errorf("read: %d %+v, want %+v", status, read, want)
	}
}

// Lookups show an update late, and until then what they showed before: the
// content before it, or nothing of an invoice that was hidden itself. They never
// go back. Asking by the id is never behind.
func TestLateUpdate(t *testing.T) {
	t.Parallel()
	hidden := time.Duration(0)
	b := setup(t, books.Options{Hidden: func(context.Context) time.Duration { return hidden }})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	lookup := func(want string) {
		t.Helper()
		var list books.List
		b.do(t, "GET", "/invoices?reference=shop:order:1", nil, &list)
		got := "nothing"
		if len(list.Invoices) > 0 {
			got = fmt.Sprint(list.Invoices[0].Memo, " over ", list.Invoices[0].TotalCents)
		}
		if got != want {
			t.Errorf("at %v lookups show %s, want %s", b.now, got, want)
		}
	}
	update := func(memo string, cents int64, late time.Duration) {
		t.Helper()
		hidden = late
		var inv, read books.Invoice
		b.do(t, "PUT", "/invoices/inv_0001", books.Update{Memo: memo, Lines: []books.Line{{Quantity: 1, UnitCents: cents}}}, &inv)
		b.do(t, "GET", "/invoices/inv_0001", nil, &read)
		if inv.Memo != memo || inv.TotalCents != cents || !reflect.DeepEqual(read, inv) {
			t.Errorf("updated %+v, read %+v", inv, read)
		}
	}
	hidden = time.Minute
	b.do(t, "POST", "/invoices", draft, &books.Invoice{})
	lookup("nothing")
	update("two", 2, 0)
	lookup("nothing")
	b.now = b.now.Add(time.Minute)
	lookup("two over 2")
	update("three", 3, time.Minute)
	lookup("two over 2")
	b.now = b.now.Add(30 * time.Second)
	update("four", 4, time.Minute)
	lookup("two over 2")
	b.now = b.now.Add(59 * time.Second)
	lookup("two over 2")
	b.now = b.now.Add(time.Second)
	lookup("four over 4")
	update("five", 5, 0)
	lookup("five over 5")
}
