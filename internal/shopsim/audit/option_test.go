package audit_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/shopsim/audit"
	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/mail"
)

// A receipt whose outcome is unknown is counted when it is not there, and not
// found missing; for any other order it is. One that is there counts for nothing.
func TestMayLackReceipt(t *testing.T) {
	t.Parallel()
	f := clean()
	f.messages = f.messages[1:]
	if r := f.audit(audit.MayLackReceipt("shop:order:1", "shop:order:2", "shop:order:3")); !r.Clean() || r.ReceiptsUnconfirmed != 1 {
		t.Errorf("found %v, %d unconfirmed", r.Findings, r.ReceiptsUnconfirmed)
	}
	if r := f.audit(audit.MayLackReceipt("shop:order:2")); r.Missing != 1 || r.ReceiptsUnconfirmed != 0 {
		t.Errorf("found %v, %d unconfirmed", r.Findings, r.ReceiptsUnconfirmed)
	}
	f.orders[0].Customer.Email = "gone@" + mail.BounceDomain
	if r := f.audit(audit.MayLackReceipt("shop:order:1")); !r.Clean() || r.ReceiptsUnconfirmed != 0 {
		t.Errorf("at an address that bounces: %v, %d unconfirmed", r.Findings, r.ReceiptsUnconfirmed)
	}
}

// Two receipts are a finding, and so is one at a wrong address, whatever else
// may be missing or was tampered with.
func TestReceiptsAreAlwaysJudged(t *testing.T) {
	t.Parallel()
	f := clean()
	f.message(1).To = "bo@post.example"
	r := f.audit(audit.MayLackReceipt("shop:order:1"), audit.Tampered("shop:order:1"))
	if r.Duplicates != 1 || r.Mismatches != 1 || r.ReceiptsUnconfirmed != 0 || len(r.Expected) != 0 {
		t.Errorf("%+v", r)
	}
	f = clean()
	f.messages = f.messages[1:]
	if r := f.audit(audit.Tampered("shop:order:1")); r.Missing != 1 {
		t.Errorf("no receipt, and found %v", r.Findings)
	}
}

// What is wrong with invoices that were tampered with is expected, each kind of
// it; the same under another reference is a finding.
func TestTampered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(*facts)
		order string
		want  int // how many things are wrong
	}{
		"total edited":        {func(f *facts) { f.invoices[0].TotalCents++ }, "shop:order:1", 1},
		"voided":              {func(f *facts) { f.invoices[0].State = books.Void }, "shop:order:1", 2},
		"deleted":             {func(f *facts) { f.invoices = f.invoices[1:] }, "shop:order:1", 2},
		"copied":              {func(f *facts) { f.invoice(1) }, "shop:order:1", 1},
		"mark taken off":      {func(f *facts) { f.orders[0].InvoiceID = "" }, "shop:order:1", 1},
		"made by hand":        {func(f *facts) { f.invoice(1); f.invoices[3].Reference = "phone" }, "phone", 1},
		"voided one restored": {func(f *facts) { f.invoices[2].State = books.Live }, "shop:order:3", 1},
		"only noted":          {func(f *facts) { f.invoices[0].Note = "call back" }, "shop:order:1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clean()
			c.plant(f)
			if r := f.audit(audit.Tampered(c.order)); !r.Clean() || len(r.Expected) != c.want || r.Duplicates+r.Missing+r.Orphans+r.Mismatches != 0 {
				t.Errorf("found %v, expected %v", r.Findings, r.Expected)
			}
			if r := f.audit(audit.Tampered("shop:order:2")); len(r.Findings) != c.want || len(r.Expected) != 0 {
				t.Errorf("with another one tampered with: found %v, expected %v", r.Findings, r.Expected)
			}
		})
	}
}

// An order that was marked and then deleted may have its receipt, and counts as
// undone when its invoice is void.
func TestDeletedOrder(t *testing.T) {
	t.Parallel()
	f := clean()
	f.orders[0].Deleted, f.invoices[0].State = true, books.Void
	if r := f.audit(); !r.Clean() || r.Compensated != 2 || r.Orders != 3 {
		t.Errorf("%+v", r)
	}
	f.messages = f.messages[1:]
	if r := f.audit(); !r.Clean() {
		t.Errorf("without a receipt: %v", r.Findings)
	}
}
