package books_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/books"
)

// make makes an invoice under a reference.
func (b *testBooks) make(t *testing.T, reference string) (made books.Invoice) {
	t.Helper()
	d := draft
	d.Reference = reference
	if status := b.do(t, "POST", "/invoices", d, &made); status != 201 {
		t.Fatalf("status %d", status)
	}
	return made
}

// marked asks for one page of the invoices under a mark.
func (b *testBooks) marked(t *testing.T, mark, after string, limit int) (l books.List) {
	t.Helper()
	q := url.Values{"mark": {mark}, "after": {after}, "limit": {fmt.Sprint(limit)}}
	if status := b.do(t, "GET", "/invoices?"+q.Encode(), nil, &l); status != 200 {
		t.Fatalf("status %d", status)
	}
	return l
}

// walk goes through all pages under a mark: "number reference state" of each invoice, page by page.
func (b *testBooks) walk(t *testing.T, mark string, limit int) string {
	t.Helper()
	var pages []string
	for after := ""; ; {
		l := b.marked(t, mark, after, limit)
		if len(l.Invoices) == 0 {
			if l.Next != after {
				t.Errorf("an empty page has the cursor %q, want %q", l.Next, after)
			}
			return strings.Join(pages, " | ")
		}
		var page []string
		for _, inv := range l.Invoices {
			page = append(page, inv.ID+" "+inv.Reference)
		}
		pages = append(pages, strings.Join(page, ", "))
		after = l.Next
	}
}

// The invoices whose reference begins with a mark are listed oldest first, void
// ones and duplicates too, once each; letters that mean something in a pattern
// mean themselves. A number that was deleted is still a place to go on from.
func TestListByMark(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	for _, reference := range []string{"shop:order:2", "phone order", "shop:order:1", "shop:order:1", "", "SHOP:order:3", "shop_order:4", "shop:order:10"} {
		b.make(t, reference)
	}
	b.do(t, "POST", "/invoices/inv_0003/void", nil, &books.Invoice{})
	for mark, want := range map[string]string{
		"shop:order:":   "inv_0001 shop:order:2, inv_0003 shop:order:1 | inv_0004 shop:order:1, inv_0008 shop:order:10",
		"shop:order:1":  "inv_0003 shop:order:1, inv_0004 shop:order:1 | inv_0008 shop:order:10",
		"shop_":         "inv_0007 shop_order:4",
		"%":             "",
		"shop:order:11": "",
	} {
		if got := b.walk(t, mark, 2); got != want {
			t.Errorf("%s: %s, want %s", mark, got, want)
		}
	}
	if first := b.marked(t, "shop:order:", "", 2); first.Invoices[1].State != books.Void || first.Next != "inv_0003" {
		t.Errorf("the first page is %+v", first)
	}
	if _, err := b.store.Delete(t.Context(), "inv_0003"); err != nil {
		t.Fatal(err)
	}
	if got := b.marked(t, "shop:order:", "inv_0003", 1).Invoices; len(got) != 1 || got[0].ID != "inv_0004" {
		t.Errorf("behind a deleted invoice come %+v", got)
	}
}

// A page has 100 invoices when nobody says otherwise, and never more than 200.
func TestPageSize(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	for n := range 201 {
		d := draft
		d.Reference = fmt.Sprint("shop:order:", n)
		if _, err := b.store.AddInvoice(t.Context(), d, 0); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[string]int{"": 100, "&limit=7": 7, "&limit=200": 200, "&limit=1000": 200} {
		var l books.List
		b.do(t, "GET", "/invoices?mark=shop:"+limit, nil, &l)
		if len(l.Invoices) != want {
			t.Errorf("%q: %d invoices, want %d", limit, len(l.Invoices), want)
		}
	}
}

// A list by mark is behind as a lookup is: it has a hidden invoice only later,
// shows an update only later, and until then what it showed before.
func TestLateList(t *testing.T) {
	t.Parallel()
	hidden := time.Duration(0)
	b := setup(t, books.Options{Hidden: func(context.Context) time.Duration { return hidden }})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	b.make(t, "shop:order:1")
	hidden = time.Minute
	b.make(t, "shop:order:2")
	b.do(t, "PUT", "/invoices/inv_0001", books.Update{Memo: "new", Lines: []books.Line{{Quantity: 1, UnitCents: 5}}}, &books.Invoice{})
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "inv_0001  1449 of 2 lines"},
		{59 * time.Second, "inv_0001  1449 of 2 lines"},
		{time.Second, "inv_0001 new 5 of 1 lines, inv_0002  1449 of 2 lines"},
	} {
		b.now = b.now.Add(step.after)
		var got []string
		for _, inv := range b.marked(t, "shop:", "", 10).Invoices {
			got = append(got, fmt.Sprintf("%s %s %d of %d lines", inv.ID, inv.Memo, inv.TotalCents, len(inv.Lines)))
		}
		if strings.Join(got, ", ") != step.want {
			t.Errorf("at %v: %v, want %s", b.now, got, step.want)
		}
	}
}
