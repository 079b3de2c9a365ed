package town

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// mark is how the references of our invoices begin. What follows is the order's id, and the whole
// is the work id.
const mark = "shop:order:"

// Invoice is an invoice as the books have it.
type Invoice struct {
	ID      string
	Mark    string // our reference: shop:order:41
	Version string // of the order, which it shows
	Total   string
	Void    bool
}

// Books are where the invoices are. Their post office cannot be asked what it has sent.
type Books struct {
	mu       sync.Mutex
	invoices []Invoice
	made     map[string]int // by mark
	mails    int
}

// NewBooks returns empty books.
func NewBooks() *Books { return &Books{made: map[string]int{}} }

// Settle is how long it takes until everybody who asks the books is told of a new invoice. Real
// ones say so, or are given some seconds.
const Settle = 10 * time.Millisecond

// Write brings the invoice with that id up to date, or makes one if none stands.
func (b *Books) Write(inv Invoice) string {
	if b.Edit(inv.ID, func(standing *Invoice) { *standing = inv }) {
		return inv.ID
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	inv.ID = "inv-" + strings.TrimPrefix(inv.Mark, mark)
	if b.made[inv.Mark]++; b.made[inv.Mark] > 1 {
		inv.ID += fmt.Sprintf("-%d", b.made[inv.Mark])
	}
	b.invoices = append(b.invoices, inv)
	return inv.ID
}

// Edit changes an invoice, if there is one that is not void.
func (b *Books) Edit(id string, edit func(*Invoice)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.invoices, func(inv Invoice) bool { return inv.ID == id && !inv.Void })
	if i >= 0 {
		edit(&b.invoices[i])
	}
	return i >= 0
}

// remove deletes an invoice, as a bookkeeper would by hand.
func (b *Books) remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.invoices = slices.DeleteFunc(b.invoices, func(inv Invoice) bool { return inv.ID == id })
}

// Mail sends one.
func (b *Books) Mail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mails++
}

// which are the invoices that a condition is true of, in the order of their ids.
func (b *Books) which(which func(*Invoice) bool) (found []Invoice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, inv := range b.invoices {
		if which(&inv) {
			found = append(found, inv)
		}
	}
	slices.SortFunc(found, func(a, b Invoice) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

// Marked are the invoices that carry our mark, in the order of their ids.
func (b *Books) Marked() []Invoice {
	return b.which(func(i *Invoice) bool { return strings.HasPrefix(i.Mark, mark) })
}

// Under are the invoices with one mark.
func (b *Books) Under(mark string) []Invoice {
	return b.which(func(i *Invoice) bool { return i.Mark == mark })
}

// String is what stands, in one line.
func (b *Books) String() string {
	var s strings.Builder
	for _, inv := range b.which(func(*Invoice) bool { return true }) {
		if says := inv.Total; inv.Void {
			fmt.Fprintf(&s, "%s void, ", inv.ID)
		} else {
			fmt.Fprintf(&s, "%s %s, ", inv.ID, says)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%s%d mails sent", s.String(), b.mails)
}
