package audit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/audit"
	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

var paidAt = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// facts is what an audit reads.
type facts struct {
	orders   []shop.Order
	invoices []books.Invoice
	messages []mail.Message
}

// clean is a world in which all went well: two paid orders of one customer,
// one order cancelled after its invoice, which was voided, and one that nobody
// paid.
func clean() *facts {
	f := &facts{}
	for i, status := range []shop.Status{shop.Paid, shop.Paid, shop.Cancelled, shop.Pending} {
		f.orders = append(f.orders, shop.Order{
			ID: fmt.Sprint(i + 1), Status: status, TotalCents: 1000, PaidAt: paidAt,
			Customer: shop.Customer{ID: "1", Email: "ada@post.example"},
		})
	}
	f.orders[0].InvoiceID, f.orders[1].InvoiceID = "inv_1", "inv_2"
	for i, state := range []books.State{books.Live, books.Live, books.Void} {
		f.invoices = append(f.invoices, books.Invoice{
			ID: fmt.Sprintf("inv_%d", i+1), State: state, Reference: f.orders[i].Ref(), TotalCents: 1000,
		})
	}
	f.message(1)
	f.message(2)
	return f
}

// message adds a receipt for order n.
func (f *facts) message(n int) *mail.Message {
	f.messages = append(f.messages, mail.Message{Order: fmt.Sprintf("shop:order:%d", n), To: "ada@post.example", File: fmt.Sprintf("%d.eml", len(f.messages)+1)})
	return &f.messages[len(f.messages)-1]
}

// invoice adds a live invoice for order n.
func (f *facts) invoice(n int) {
	f.invoices = append(f.invoices, books.Invoice{ID: fmt.Sprintf("inv_%d", len(f.invoices)+1), State: books.Live, Reference: fmt.Sprintf("shop:order:%d", n), TotalCents: 1000})
}

func (f *facts) audit(known ...audit.Option) audit.Result {
	return audit.Check(f.orders, f.invoices, f.messages, known...)
}

// A world in which all went well has no findings, and its figures are these.
func TestClean(t *testing.T) {
	t.Parallel()
	r := clean().audit()
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"orders":3,"invoices":2,"receipts":2,"compensated":1,"duplicates":0,"missing":0,"orphans":0,"mismatches":0,"findings":[],"receiptsUnconfirmed":0}`
	if string(got) != want || !r.Clean() {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Each fault, planted alone, is found: the kind, the order and the words.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(*facts)
		want  string // the findings, one a line
	}{
		"second live invoice": {
			func(f *facts) { f.invoice(1) },
			"duplicate: shop:order:1: inv_4 is one live invoice too many, after inv_1",
		},
		"third live invoice": {
			func(f *facts) { f.invoice(1); f.invoice(1) },
			"duplicate: shop:order:1: inv_4 is one live invoice too many, after inv_1\n" +
				"duplicate: shop:order:1: inv_5 is one live invoice too many, after inv_1",
		},
		"second receipt": {
			func(f *facts) { f.message(2) },
			"duplicate: shop:order:2: the receipt went out again: 3.eml",
		},
		"one number twice": {
			func(f *facts) { f.invoices[1].ID = "inv_1"; f.orders[1].InvoiceID = "inv_1" },
			"duplicate: shop:order:2: the number inv_1 is on another invoice too, for shop:order:1",
		},
		"no invoice": {
			func(f *facts) { f.invoices = f.invoices[1:]; f.orders[0].InvoiceID = "" },
			"missing: shop:order:1: the order is not marked in the shop\nmissing: shop:order:1: there is no live invoice",
		},
		"invoice voided, mark left": {
			func(f *facts) { f.invoices[0].State = books.Void },
			"mismatch: shop:order:1: the shop's mark names inv_1, which is no live invoice of this order\n" +
				"missing: shop:order:1: there is no live invoice",
		},
		"no mark": {
			func(f *facts) { f.orders[0].InvoiceID = "" },
			"missing: shop:order:1: the order is not marked in the shop",
		},
		"no receipt": {
			func(f *facts) { f.messages = f.messages[1:] },
			"missing: shop:order:1: no receipt was sent",
		},
		"nothing at all": {
			func(f *facts) { f.invoices, f.messages, f.orders = nil, nil, f.orders[:1]; f.orders[0].InvoiceID = "" },
			"missing: shop:order:1: no receipt was sent\nmissing: shop:order:1: the order is not marked in the shop\nmissing: shop:order:1: there is no live invoice",
		},
		"cancelled, invoice live": {
			func(f *facts) { f.invoices[2].State = books.Live },
			"orphan: shop:order:3: the order was cancelled, but inv_3 is live",
		},
		"cancelled, receipt sent": {
			func(f *facts) { f.message(3) },
			"orphan: shop:order:3: the order was cancelled, but a receipt was sent: 3.eml",
		},
		"cancelled, mark left": {
			func(f *facts) { f.orders[2].InvoiceID = "inv_3" },
			"mismatch: shop:order:3: the order was cancelled, but is marked with inv_3",
		},
		"not paid, invoice and receipt": {
			func(f *facts) { f.invoice(4); f.message(4) },
			"orphan: shop:order:4: a receipt was sent, but no paid order has this reference: 3.eml\n" +
				"orphan: shop:order:4: inv_4 is live, but no paid order has this reference",
		},
		"invoice for no order": {
			func(f *facts) { f.invoice(99) },
			"orphan: shop:order:99: inv_4 is live, but no paid order has this reference",
		},
		"receipt for no order": {
			func(f *facts) { f.message(5).Order = "" },
			"orphan: : a receipt was sent, but no paid order has this reference: 3.eml",
		},
		"cancelled late, two receipts": {
			func(f *facts) { f.orders[2].LateCancel = true; f.message(3); f.message(3) },
			"duplicate: shop:order:3: the receipt went out again: 4.eml",
		},
		"cancelled late, receipt elsewhere": {
			func(f *facts) { f.orders[2].LateCancel = true; f.message(3).To = "bo@post.example" },
			"mismatch: shop:order:3: a receipt went to bo@post.example instead of ada@post.example: 3.eml",
		},
		"cancelled late, invoice live, mark left": {
			func(f *facts) {
				f.orders[2].LateCancel, f.orders[2].InvoiceID = true, "inv_3"
				f.invoices[2].State = books.Live
			},
			"mismatch: shop:order:3: the order was cancelled, but is marked with inv_3\n" +
				"orphan: shop:order:3: the order was cancelled, but inv_3 is live",
		},
		"deleted, invoice live": {
			func(f *facts) { f.orders[0].Deleted = true },
			"orphan: shop:order:1: the order was deleted, but inv_1 is live",
		},
		"deleted before the mark, receipt sent": {
			func(f *facts) {
				f.orders[0].Deleted, f.orders[0].InvoiceID = true, ""
				f.invoices[0].State = books.Void
			},
			"orphan: shop:order:1: the order was deleted, but a receipt was sent: 1.eml",
		},
		"deleted after the mark, two receipts": {
			func(f *facts) { f.orders[0].Deleted = true; f.invoices[0].State = books.Void; f.message(1) },
			"duplicate: shop:order:1: the receipt went out again: 3.eml",
		},
		"edited, invoice old": {
			func(f *facts) { f.orders[0].TotalCents = 1200 },
			"mismatch: shop:order:1: inv_1 is over 10.00, the order over 12.00",
		},
		"wrong amount": {
			func(f *facts) { f.invoices[1].TotalCents = 1001 },
			"mismatch: shop:order:2: inv_2 is over 10.01, the order over 10.00",
		},
		"wrong address": {
			func(f *facts) { f.messages[0].To = "bo@post.example" },
			"mismatch: shop:order:1: a receipt went to bo@post.example instead of ada@post.example: 1.eml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clean()
			c.plant(f)
			r := f.audit()
			var lines []string
			for _, finding := range r.Findings {
				lines = append(lines, finding.String())
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			count := func(kind audit.Kind) int { return strings.Count("\n"+c.want, "\n"+string(kind)+": ") }
			got := [4]int{r.Duplicates, r.Missing, r.Orphans, r.Mismatches}
			want := [4]int{count(audit.Duplicate), count(audit.Missing), count(audit.Orphan), count(audit.Mismatch)}
			if got != want || r.Clean() {
				t.Errorf("duplicates, missing, orphans, mismatches are %v, want %v", got, want)
			}
		})
	}
}

// An order paid after the moment of the audit may lack things, but not have
// too much.
func TestAsOf(t *testing.T) {
	t.Parallel()
	f := &facts{orders: clean().orders[:1]}
	f.orders[0].InvoiceID = ""
	if r := f.audit(audit.AsOf(paidAt.Add(-time.Second))); !r.Clean() {
		t.Errorf("not due yet, but found %v", r.Findings)
	}
	if r := f.audit(audit.AsOf(paidAt)); r.Missing != 3 {
		t.Errorf("due, but found %v", r.Findings)
	}
	f.invoice(1)
	f.invoice(1)
	if r := f.audit(audit.AsOf(paidAt.Add(-time.Second))); r.Duplicates != 1 {
		t.Errorf("invoiced twice before it is due, but found %v", r.Findings)
	}
}

// No receipt is expected at an address that bounces.
func TestBounce(t *testing.T) {
	t.Parallel()
	f := clean()
	f.orders[0].Customer.Email = "gone@" + mail.BounceDomain
	f.messages = f.messages[1:]
	if r := f.audit(); !r.Clean() {
		t.Errorf("found %v", r.Findings)
	}
}

// An order that was marked before it was cancelled may have had its receipt, or
// not.
func TestCancelledLate(t *testing.T) {
	t.Parallel()
	f := clean()
	f.orders[2].LateCancel = true
	if r := f.audit(); !r.Clean() || r.Compensated != 1 {
		t.Errorf("without a receipt: %+v", r)
	}
	f.message(3)
	if r := f.audit(); !r.Clean() || r.Compensated != 1 {
		t.Errorf("with a receipt: %+v", r)
	}
}

// A cancelled order counts as compensated only when its invoice was made and
// none is left.
func TestCompensated(t *testing.T) {
	t.Parallel()
	f := clean()
	f.invoices = f.invoices[:2]
	if r := f.audit(); r.Compensated != 0 || !r.Clean() {
		t.Errorf("never invoiced: %+v", r)
	}
	f = clean()
	f.invoice(3)
	if r := f.audit(); r.Compensated != 0 || r.Orphans != 1 {
		t.Errorf("one voided and one left: %+v", r)
	}
}
