package audit

import (
	"time"

	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// Option tells an audit something that shop, books and mailbox do not say.
type Option func(*auditor)

// AsOf lets orders paid after t lack something still.
func AsOf(t time.Time) Option {
	return func(a *auditor) { a.due = func(o shop.Order) bool { return !o.PaidAt.After(t) } }
}

// MayLackReceipt names orders, by their references, for which the program cannot
// know whether a receipt was sent: a program that lost its record of the sending
// must not send again. A receipt that is missing there is no finding; it is
// counted in Result.ReceiptsUnconfirmed.
func MayLackReceipt(orders ...string) Option {
	return func(a *auditor) { note(a.mayLack, orders) }
}

// Tampered names the references under which people laid hands on the books.
// What is wrong there with invoices and marks is expected. Receipts are not made
// in the books, so for them nothing changes.
func Tampered(references ...string) Option {
	return func(a *auditor) { note(a.tampered, references) }
}

func note(in map[string]bool, references []string) {
	for _, r := range references {
		in[r] = true
	}
}
