package world_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/shopsim/audit"
	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/internal/shopsim/world"
)

// get asks for out.
func get(t *testing.T, url string, out any) {
	t.Helper()
	status, body := send(t, http.MethodGet, url, nil)
	if !strings.HasPrefix(status, "200") {
		t.Fatalf("GET %s: %s", url, status)
	}
	if err := json.Unmarshal([]byte(body), out); err != nil {
		t.Fatal(err)
	}
}

// settle books every order as a sync does, every step-th first, and marks it.
func settle(t *testing.T, w *world.World, c world.Config, step int) {
	t.Helper()
	post := func(method, url string, in, out any) {
		t.Helper()
		status, body := send(t, method, url, in)
		if !strings.HasPrefix(status, "20") || json.Unmarshal([]byte(body), out) != nil {
			t.Fatalf("%s %s: %s %s", method, url, status, body)
		}
	}
	orders := world.Orders(c)
	for i := range orders {
		o := orders[i*step%len(orders)]
		var customer books.Customer
		post(http.MethodPut, w.BooksURL+"/customers/"+o.Customer.Ref(), books.Contact{Name: o.Customer.Name}, &customer)
		draft := books.Draft{Customer: customer.ID, Reference: o.Ref(), Memo: "version 1"}
		for _, l := range o.Lines {
			draft.Lines = append(draft.Lines, books.Line{Description: l.Description, Quantity: l.Quantity, UnitCents: l.UnitCents})
		}
		var inv books.Invoice
		post(http.MethodPost, w.BooksURL+"/invoices", draft, &inv)
		post(http.MethodPut, w.ShopURL+"/orders/"+o.ID+"/synced", shop.Mark{InvoiceID: inv.ID}, &shop.Order{})
	}
	await(t, w)
}

// standing returns the invoices under our mark as the API lists them, by number.
func standing(t *testing.T, w *world.World) map[string]books.Invoice {
	t.Helper()
	all := map[string]books.Invoice{}
	for after := ""; ; {
		var l books.List
		get(t, w.BooksURL+"/invoices?"+url.Values{"mark": {"shop:order:"}, "after": {after}, "limit": {"7"}}.Encode(), &l)
		for _, inv := range l.Invoices {
			all[inv.ID] = inv
		}
		if len(l.Invoices) == 0 {
			return all
		}
		after = l.Next
	}
}

var twice = world.Tampering{Edited: 2, Noted: 2, Voided: 2, Deleted: 2, Copied: 2, Posted: 2, Handmade: 2}

// Each deed is done as often as asked, to an invoice of its own, and is what its
// name says; no other invoice changes.
func TestTamper(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 6, Orders: 40, Tampering: twice}
	w := start(t, c)
	settle(t, w, c, 1)
	was := standing(t, w)
	done, err := w.Tamper(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	is, times, orders := standing(t, w), map[world.Deed]int{}, map[string]shop.Order{}
	for _, o := range theirs(t, w) {
		orders[o.Ref()] = o
	}
	for _, d := range done {
		times[d.Deed]++
		checkDeed(t, w, d, was, is[d.Invoice], orders[d.Reference])
		delete(was, d.Invoice)
		delete(is, d.Invoice)
	}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("what nobody touched was\n%+v\nand is\n%+v", was, is)
	}
	if len(times) != 7 || len(done) != 14 || len(slices.Compact(slices.Sorted(slices.Values(done.References())))) != 14 {
		t.Errorf("done: %+v", done)
	}
}

// checkDeed compares an invoice of before a deed with how it is afterwards.
func checkDeed(t *testing.T, w *world.World, d world.Done, before map[string]books.Invoice, is books.Invoice, o shop.Order) {
	t.Helper()
	was, known := before[d.Invoice]
	want := was
	ok := known && was.Reference == d.Reference
	switch d.Deed {
	case world.Edited:
		ok = ok && is.TotalCents != was.TotalCents && is.TotalCents == books.Total(is.Lines) && len(is.Lines) > 0
		want.Lines, want.TotalCents = is.Lines, is.TotalCents
	case world.Noted:
		ok = ok && is.Note != ""
		want.Note = is.Note
	case world.Voided:
		want.State = books.Void
	case world.Deleted:
		want = books.Invoice{}
		if status, _ := send(t, http.MethodGet, w.BooksURL+"/invoices/"+d.Invoice, nil); !strings.HasPrefix(status, "404") {
			t.Errorf("%+v answers %s", d, status)
		}
	case world.Posted:
		ok = ok && o.TotalCents != was.TotalCents && o.Version == 3 && o.InvoiceID == d.Invoice
		want.Posted = true
	case world.Copied:
		first := before[o.InvoiceID]
		want = first
		want.ID, want.CreatedAt = is.ID, is.CreatedAt
		ok = !known && is.ID == d.Invoice && first.Reference == d.Reference
	case world.Handmade:
		get(t, w.BooksURL+"/invoices/"+d.Invoice, &is)
		want = is
		ok = !known && is.State == books.Live && is.Reference == d.Reference && !strings.Contains(d.Reference, "shop:")
	}
	if !ok || !reflect.DeepEqual(is, want) {
		t.Errorf("%+v: the invoice was\n%+v\nand is\n%+v", d, was, is)
	}
}

// An audit that is told what was tampered with finds nothing else, and expects
// what can be seen of each deed. One that is not told finds just that.
func TestAuditOfATamperedWorld(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 6, Orders: 40, Tampering: twice}
	w := start(t, c)
	settle(t, w, c, 1)
	var orders []string
	for _, o := range world.Orders(c) {
		orders = append(orders, o.Ref())
	}
	nobodyWrote := audit.MayLackReceipt(orders...)
	if r, err := audit.World(t.Context(), w, nobodyWrote); err != nil || !r.Clean() || r.ReceiptsUnconfirmed != 40 {
		t.Fatalf("before: %+v, %v", r, err)
	}
	done, err := w.Tamper(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told, err := audit.World(t.Context(), w, nobodyWrote, audit.Tampered(done.References()...))
	if err != nil || !told.Clean() || told.ReceiptsUnconfirmed != 40 {
		t.Errorf("told: %+v, %v", told, err)
	}
	want := map[string]bool{}
	for _, d := range done {
		if d.Deed != world.Noted { // which an audit has no eye for
			want[d.Reference] = true
		}
	}
	untold, err := audit.World(t.Context(), w, nobodyWrote)
	if err != nil || !reflect.DeepEqual(untold.Findings, told.Expected) {
		t.Errorf("untold it finds\n%v, %v\ntold it expects\n%v", untold.Findings, err, told.Expected)
	}
	found := map[string]bool{}
	for _, f := range told.Expected {
		found[f.Order] = true
	}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// What is done to which order depends on the seed, not on the numbers that the
// books gave.
func TestTamperingDependsOnTheSeed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64, step int) (deeds map[string]world.Deed, numbers []string) {
		c := world.Config{Seed: seed, Orders: 31, Tampering: twice}
		w := start(t, c)
		settle(t, w, c, step)
		done, err := w.Tamper(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		deeds = map[string]world.Deed{}
		for _, d := range done {
			deeds[d.Reference] = d.Deed
			numbers = append(numbers, d.Invoice)
		}
		return deeds, numbers
	}
	one, ids := run(1, 1)
	same, others := run(1, 3)
	other, _ := run(2, 1)
	if !maps.Equal(one, same) || slices.Equal(ids, others) || maps.Equal(one, other) {
		t.Errorf("seed 1: %v on %v and %v on %v; seed 2: %v", one, ids, same, others, other)
	}
}

// Where there are fewer invoices than deeds, the deeds take turns as far as they
// come. Cancelled, deleted and unmarked orders have none, and what was touched is
// left alone the next time.
func TestFewInvoices(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 6, Orders: 8, Tampering: world.Tampering{Noted: 3, Voided: 1}}
	w := start(t, c)
	settle(t, w, c, 1)
	for _, gone := range []string{"POST /orders/10001/cancel", "DELETE /orders/10002", "DELETE /orders/10003/synced"} {
		method, path, _ := strings.Cut(gone, " ")
		if status, _ := send(t, method, w.ShopURL+path, nil); !strings.HasPrefix(status, "20") {
			t.Fatalf("%s: %s", gone, status)
		}
	}
	var deeds, orders []string
	for range 3 {
		done, err := w.Tamper(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range done {
			deeds = append(deeds, string(d.Deed))
			orders = append(orders, d.Reference)
		}
	}
	slices.Sort(orders)
	want := []string{"shop:order:10004", "shop:order:10005", "shop:order:10006", "shop:order:10007", "shop:order:10008"}
	if !slices.Equal(deeds, slices.Insert(slices.Repeat([]string{"noted"}, 4), 1, "voided")) || !slices.Equal(orders, want) {
		t.Errorf("did %v to %v", deeds, orders)
	}
}

// A world that is not asked for it leaves the books alone.
func TestNoTampering(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 6, Orders: 5}
	w := start(t, c)
	settle(t, w, c, 1)
	was := standing(t, w)
	if done, err := w.Tamper(t.Context()); err != nil || len(done) != 0 || !reflect.DeepEqual(standing(t, w), was) {
		t.Errorf("did %v, %v", done, err)
	}
}
