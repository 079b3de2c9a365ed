package outside

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// State says whether an invoice counts.
type State string

// The states of an invoice.
const (
	Live State = "live"
	Void State = "void"
)

// Codes by which the books refuse.
const (
	CodeUnknownCustomer = "unknown_customer" // 422
	CodeUnknownInvoice  = "unknown_invoice"  // 404
	CodeInvoiceVoid     = "invoice_void"     // 409: it cannot be updated
)

// Contact is the body of PUT /customers/{ref}.
type Contact struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Customer is a customer in the books. ID is the books' own name for it.
type Customer struct {
	ID  string `json:"id"`
	Ref string `json:"ref"`
	Contact
}

// ExternalID is the name others keep to find the customer again.
func (c Customer) ExternalID() string { return c.ID }

// Content is what an update changes of an invoice. The memo is a free text that the books keep and
// never read. The total is that of the lines, if there are any.
type Content struct {
	Memo       string `json:"memo,omitempty"`
	Lines      []Line `json:"lines,omitempty"`
	TotalCents int64  `json:"totalCents"`
}

// Draft is the body of POST /invoices. Customer is the id in the books.
type Draft struct {
	Customer  string `json:"customer,omitempty"`
	Reference string `json:"reference"`
	Content
}

// Invoice is an invoice in the books.
type Invoice struct {
	ID          string `json:"id"` // also its number: inv_0042
	State       State  `json:"state"`
	CustomerRef string `json:"customerRef,omitempty"`
	Draft
	// Note is what people wrote on it at the screens of the books.
	Note      string    `json:"note,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// ExternalID is the name others keep to find the invoice again.
func (i Invoice) ExternalID() string { return i.ID }

// entry is an invoice and what lookups show of it.
type entry struct {
	Invoice
	from   time.Time // until then lookups show what was before
	before *Content  // nil: nothing
}

// shown is the invoice as lookups show it now, if they do.
func (e *entry) shown() (Invoice, bool) {
	inv := e.Invoice
	if !time.Now().Before(e.from) {
		return inv, true
	}
	if e.before == nil {
		return inv, false
	}
	inv.Content = *e.before
	return inv, true
}

// Books are where the invoices are.
type Books struct {
	// Booked is called after an invoice was made by the API, before the answer leaves.
	Booked func(inv Invoice)
	// Keys has the books honour idempotency keys.
	Keys bool
	// Number names an invoice, the nth of its reference, otherwise than by the next number.
	Number func(reference string, nth int) string

	mu        sync.Mutex
	customers []Customer
	invoices  []*entry
	made      map[string]int // by reference, and in all
	keys      map[string]string
}

// NewBooks returns empty books.
func NewBooks() *Books { return &Books{keys: map[string]string{}, made: map[string]int{}} }

// PutCustomer finds the customer with this reference or makes it, and writes the contact on it.
func (b *Books) PutCustomer(ref string, c Contact) Customer {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.customers, func(c Customer) bool { return c.Ref == ref })
	if i < 0 {
		i = len(b.customers)
		b.customers = append(b.customers, Customer{ID: fmt.Sprintf("cus_%04d", i+1), Ref: ref})
	}
	b.customers[i].Contact = c
	return b.customers[i]
}

// complete is content with its total.
func (c Content) complete() Content {
	if len(c.Lines) > 0 {
		c.TotalCents = Total(c.Lines)
	}
	return c
}

// Add makes a live invoice, always a new one. Lookups see it once hidden has passed.
func (b *Books) Add(d Draft, hidden time.Duration) (Invoice, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(d, hidden)
}

func (b *Books) add(d Draft, hidden time.Duration) (Invoice, error) {
	customer := slices.IndexFunc(b.customers, func(c Customer) bool { return c.ID == d.Customer })
	if customer < 0 && d.Customer != "" {
		return Invoice{}, refuse(http.StatusUnprocessableEntity, CodeUnknownCustomer, "there is no customer %q", d.Customer)
	}
	b.made[""]++
	b.made[d.Reference]++
	d.Content = d.complete()
	e := &entry{Invoice: Invoice{ID: fmt.Sprintf("inv_%04d", b.made[""]), State: Live, Draft: d, CreatedAt: time.Now().UTC()}}
	if b.Number != nil {
		e.ID = b.Number(d.Reference, b.made[d.Reference])
	}
	if e.from = e.CreatedAt.Add(hidden); customer >= 0 {
		e.CustomerRef = b.customers[customer].Ref
	}
	b.invoices = append(b.invoices, e)
	return e.Invoice, nil
}

// Update writes new content on a live invoice. Lookups show it once hidden has passed, and until then
// what they showed before.
func (b *Books) Update(id string, c Content, hidden time.Duration) (Invoice, error) {
	return b.with(id, func(e *entry) error {
		if e.State == Void {
			return refuse(http.StatusConflict, CodeInvoiceVoid, "invoice %s is void", id)
		}
		if shown, visible := e.shown(); visible {
			e.before = &shown.Content
		}
		if from := time.Now().Add(hidden); from.After(e.from) {
			e.from = from
		}
		e.Content = c.complete()
		return nil
	})
}

// Void takes an invoice out of the count. A void one stays void.
func (b *Books) Void(id string) (Invoice, error) {
	return b.with(id, func(e *entry) error {
		e.State = Void
		return nil
	})
}

// Annotate writes the note on an invoice, whatever its state. The API has no such endpoint, nor one for the next.
func (b *Books) Annotate(id, note string) (Invoice, error) {
	return b.with(id, func(e *entry) error {
		e.Note = note
		return nil
	})
}

// Delete removes an invoice for good. Its number is not used again.
func (b *Books) Delete(id string) (Invoice, error) {
	return b.with(id, func(e *entry) error {
		b.invoices = slices.DeleteFunc(b.invoices, func(other *entry) bool { return other == e })
		return nil
	})
}

// with does something to an invoice.
func (b *Books) with(id string, do func(*entry) error) (Invoice, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.find(id)
	if err == nil {
		err = do(e)
	}
	if err != nil {
		return Invoice{}, err
	}
	return e.Invoice, nil
}

func (b *Books) find(id string) (*entry, error) {
	i := slices.IndexFunc(b.invoices, func(e *entry) bool { return e.ID == id })
	if i < 0 {
		return nil, refuse(http.StatusNotFound, CodeUnknownInvoice, "there is no invoice %s", id)
	}
	return b.invoices[i], nil
}

// Invoice returns one invoice as it is: asking by the id is never behind.
func (b *Books) Invoice(id string) (Invoice, error) {
	return b.with(id, func(*entry) error { return nil })
}

// Invoices returns every invoice as it is, whatever lookups see of it.
func (b *Books) Invoices() []Invoice {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Invoice, len(b.invoices))
	for i, e := range b.invoices {
		all[i] = e.Invoice
	}
	return all
}

// Lookup returns the invoices with this reference that lookups can see by now, void ones too, oldest
// first, with the content that lookups show by now.
func (b *Books) Lookup(reference string) []Invoice {
	return b.look(func(inv *Invoice) bool { return inv.Reference == reference })
}

// Marked returns the invoices whose reference begins with mark, as Lookup does.
func (b *Books) Marked(mark string) []Invoice {
	return b.look(func(inv *Invoice) bool { return strings.HasPrefix(inv.Reference, mark) })
}

func (b *Books) look(wanted func(*Invoice) bool) []Invoice {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := []Invoice{}
	for _, e := range b.invoices {
		if inv, visible := e.shown(); visible && wanted(&inv) {
			found = append(found, inv)
		}
	}
	return found
}
