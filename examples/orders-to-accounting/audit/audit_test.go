package audit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/examples/orders-to-accounting/audit"
	"github.com/amends-dev/amends/internal/outside"
)

var paidAt = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// facts is what an audit reads.
type facts struct {
	orders   []outside.Order
	invoices []outside.Invoice
	messages []outside.Message
}

// clean is a world in which all went well: two paid orders of one customer,
// one order cancelled after its invoice, which was voided, and one that nobody
// paid.
func clean() *facts {
	f := &facts{}
	for i, status := range []outside.Status{outside.Paid, outside.Paid, outside.Cancelled, outside.Pending} {
		f.orders = append(f.orders, outside.Order{
			ID: fmt.Sprint(i + 1), Status: status, TotalCents: 1000, PaidAt: paidAt,
			Customer: outside.Buyer{ID: "1", Email: "ada@post.example"},
		})
	}
	f.orders[0].InvoiceID, f.orders[1].InvoiceID = "inv_1", "inv_2"
	for i, state := range []outside.State{outside.Live, outside.Live, outside.Void} {
		f.invoices = append(f.invoices, outside.Invoice{
			ID: fmt.Sprintf("inv_%d", i+1), State: state, Draft: draft(f.orders[i].Ref()),
		})
	}
	f.message(1)
	f.message(2)
	return f
}

// message adds a receipt for order n.
func (f *facts) message(n int) *outside.Message {
	f.messages = append(f.messages, outside.Message{
		Number: len(f.messages) + 1, Letter: outside.Letter{Order: fmt.Sprintf("shop:order:%d", n), To: "ada@post.example"},
	})
	return &f.messages[len(f.messages)-1]
}

// invoice adds a live invoice for order n.
func (f *facts) invoice(n int) {
	f.invoices = append(f.invoices, outside.Invoice{ID: fmt.Sprintf("inv_%d", len(f.invoices)+1), State: outside.Live, Draft: draft(fmt.Sprintf("shop:order:%d", n))})
}

func draft(reference string) outside.Draft {
	return outside.Draft{Reference: reference, Content: outside.Content{TotalCents: 1000}}
}

func (f *facts) audit() audit.Result { return f.knowing(audit.Known{}) }

func (f *facts) knowing(known audit.Known) audit.Result {
	return audit.Check(f.orders, f.invoices, f.messages, known)
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
			"duplicate: shop:order:2: the receipt went out again: message 3",
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
			func(f *facts) { f.invoices[0].State = outside.Void },
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
			func(f *facts) { f.invoices[2].State = outside.Live },
			"orphan: shop:order:3: the order was cancelled, but inv_3 is live",
		},
		"cancelled, receipt sent": {
			func(f *facts) { f.message(3) },
			"orphan: shop:order:3: the order was cancelled, but a receipt was sent: message 3",
		},
		"cancelled, mark left": {
			func(f *facts) { f.orders[2].InvoiceID = "inv_3" },
			"mismatch: shop:order:3: the order was cancelled, but is marked with inv_3",
		},
		"not paid, invoice and receipt": {
			func(f *facts) { f.invoice(4); f.message(4) },
			"orphan: shop:order:4: a receipt was sent, but no paid order has this reference: message 3\n" +
				"orphan: shop:order:4: inv_4 is live, but no paid order has this reference",
		},
		"invoice for no order": {
			func(f *facts) { f.invoice(99) },
			"orphan: shop:order:99: inv_4 is live, but no paid order has this reference",
		},
		"receipt for no order": {
			func(f *facts) { f.message(5).Order = "" },
			"orphan: : a receipt was sent, but no paid order has this reference: message 3",
		},
		"cancelled late, two receipts": {
			func(f *facts) { f.orders[2].LateCancel = true; f.message(3); f.message(3) },
			"duplicate: shop:order:3: the receipt went out again: message 4",
		},
		"cancelled late, receipt elsewhere": {
			func(f *facts) { f.orders[2].LateCancel = true; f.message(3).To = "bo@post.example" },
			"mismatch: shop:order:3: a receipt went to bo@post.example instead of ada@post.example: message 3",
		},
		"cancelled late, invoice live, mark left": {
			func(f *facts) {
				f.orders[2].LateCancel, f.orders[2].InvoiceID = true, "inv_3"
				f.invoices[2].State = outside.Live
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
				f.invoices[0].State = outside.Void
			},
			"orphan: shop:order:1: the order was deleted, but a receipt was sent: message 1",
		},
		"deleted after the mark, two receipts": {
			func(f *facts) { f.orders[0].Deleted = true; f.invoices[0].State = outside.Void; f.message(1) },
			"duplicate: shop:order:1: the receipt went out again: message 3",
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
			"mismatch: shop:order:1: a receipt went to bo@post.example instead of ada@post.example: message 1",
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

// A receipt whose outcome is unknown is counted when it is not there, and not
// found missing; for any other order it is. One that is there counts for nothing.
func TestMayLackReceipt(t *testing.T) {
	t.Parallel()
	f := clean()
	f.messages = f.messages[1:]
	if r := f.knowing(audit.Known{MayLackReceipt: []string{"shop:order:1", "shop:order:2", "shop:order:3"}}); !r.Clean() || r.ReceiptsUnconfirmed != 1 {
		t.Errorf("found %v, %d unconfirmed", r.Findings, r.ReceiptsUnconfirmed)
	}
	if r := f.knowing(audit.Known{MayLackReceipt: []string{"shop:order:2"}}); r.Missing != 1 || r.ReceiptsUnconfirmed != 0 {
		t.Errorf("found %v, %d unconfirmed", r.Findings, r.ReceiptsUnconfirmed)
	}
}

// Two receipts are a finding, and so is one at a wrong address, whatever else
// may be missing or was tampered with.
func TestReceiptsAreAlwaysJudged(t *testing.T) {
	t.Parallel()
	f := clean()
	f.message(1).To = "bo@post.example"
	r := f.knowing(audit.Known{MayLackReceipt: []string{"shop:order:1"}, Tampered: []string{"shop:order:1"}})
	if r.Duplicates != 1 || r.Mismatches != 1 || r.ReceiptsUnconfirmed != 0 || len(r.Expected) != 0 {
		t.Errorf("%+v", r)
	}
	f = clean()
	f.messages = f.messages[1:]
	if r := f.knowing(audit.Known{Tampered: []string{"shop:order:1"}}); r.Missing != 1 {
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
		"voided":              {func(f *facts) { f.invoices[0].State = outside.Void }, "shop:order:1", 2},
		"deleted":             {func(f *facts) { f.invoices = f.invoices[1:] }, "shop:order:1", 2},
		"copied":              {func(f *facts) { f.invoice(1) }, "shop:order:1", 1},
		"mark taken off":      {func(f *facts) { f.orders[0].InvoiceID = "" }, "shop:order:1", 1},
		"made by hand":        {func(f *facts) { f.invoice(1); f.invoices[3].Reference = "phone" }, "phone", 1},
		"voided one restored": {func(f *facts) { f.invoices[2].State = outside.Live }, "shop:order:3", 1},
		"only noted":          {func(f *facts) { f.invoices[0].Note = "call back" }, "shop:order:1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clean()
			c.plant(f)
			if r := f.knowing(audit.Known{Tampered: []string{c.order}}); !r.Clean() || len(r.Expected) != c.want || r.Duplicates+r.Missing+r.Orphans+r.Mismatches != 0 {
				t.Errorf("found %v, expected %v", r.Findings, r.Expected)
			}
			if r := f.knowing(audit.Known{Tampered: []string{"shop:order:2"}}); len(r.Findings) != c.want || len(r.Expected) != 0 {
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
	f.orders[0].Deleted, f.invoices[0].State = true, outside.Void
	if r := f.audit(); !r.Clean() || r.Compensated != 2 || r.Orders != 3 {
		t.Errorf("%+v", r)
	}
	f.messages = f.messages[1:]
	if r := f.audit(); !r.Clean() {
		t.Errorf("without a receipt: %v", r.Findings)
	}
}
