package books_test

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// A posted invoice can be neither updated nor voided, and says so by a code of
// its own. Its note can still be written, and posting it again changes nothing.
// A void one cannot be posted.
func TestPosted(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	b.make(t, "shop:order:1")
	b.make(t, "shop:order:2")
	for range 2 {
		if inv, err := b.store.Post(t.Context(), "inv_0001"); err != nil || !inv.Posted {
			t.Fatalf("posted %+v, %v", inv, err)
		}
	}
	var p rest.Error
	if status := b.do(t, "PUT", "/invoices/inv_0001", books.Update{Lines: draft.Lines[:1]}, &p); status != 409 || p.Code != books.CodeInvoicePosted {
		t.Errorf("update: %d %q", status, p.Code)
	}
	if status := b.do(t, "POST", "/invoices/inv_0001/void", nil, &p); status != 409 || p.Code != books.CodeInvoicePosted {
		t.Errorf("void: %d %q", status, p.Code)
	}
	if _, err := b.store.Annotate(t.Context(), "inv_0001", "paid in cash"); err != nil {
		t.Error(err)
	}
	var read books.Invoice
	b.do(t, "GET", "/invoices/inv_0001", nil, &read)
	if !read.Posted || read.State != books.Live || read.TotalCents != 1449 || read.Note != "paid in cash" {
		t.Errorf("read %+v", read)
	}
	b.do(t, "POST", "/invoices/inv_0002/void", nil, &books.Invoice{})
	_, err := b.store.Post(t.Context(), "inv_0002")
	var refused *rest.Error
	if !errors.As(err, &refused) || refused.Code != books.CodeInvoiceVoid {
		t.Errorf("posting a void one: %v", err)
	}
}

// The note is not the API's: an update leaves it as people wrote it.
func TestNote(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	b.make(t, "shop:order:1")
	if _, err := b.store.Annotate(t.Context(), "inv_0001", "call back"); err != nil {
		t.Fatal(err)
	}
	var inv books.Invoice
	b.do(t, "PUT", "/invoices/inv_0001", map[string]any{"memo": "new", "note": "", "lines": draft.Lines}, &inv)
	if inv.Note != "call back" || inv.Memo != "new" {
		t.Errorf("after an update: %+v", inv)
	}
}

// A deleted invoice is gone for good, and its number is not used again, even
// when it was the newest.
func TestDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t, books.Options{})
	b.do(t, "PUT", "/customers/shop:customer:1", books.Contact{Name: "Ada"}, &books.Customer{})
	b.make(t, "shop:order:1")
	if inv, err := b.store.Delete(t.Context(), "inv_0001"); err != nil || inv.ID != "inv_0001" {
		t.Fatalf("deleted %+v, %v", inv, err)
	}
	var p rest.Error
	if status := b.do(t, "GET", "/invoices/inv_0001", nil, &p); status != 404 || p.Code != books.CodeUnknownInvoice {
		t.Errorf("read: %d %q", status, p.Code)
	}
	var found books.List
	b.do(t, "GET", "/invoices?reference=shop:order:1", nil, &found)
	if len(found.Invoices) != 0 {
		t.Errorf("found %+v", found)
	}
	if next := b.make(t, "shop:order:1"); next.ID != "inv_0002" {
		t.Errorf("the next invoice is %s", next.ID)
	}
	for what, err := range map[string]error{
		"delete": second(b.store.Delete(t.Context(), "inv_0001")),
		"note":   second(b.store.Annotate(t.Context(), "inv_0001", "")),
		"post":   second(b.store.Post(t.Context(), "inv_0001")),
	} {
		var refused *rest.Error
		if !errors.As(err, &refused) || refused.Code != books.CodeUnknownInvoice {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second(_ books.Invoice, err error) error { return err }
