package sqlstore

import (
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// Projects reports whether the record changes its instance's row.
func Projects(e *ledger.Entry) bool {
	r := &e.Record
	return e.Schedule != nil || len(r.Signals) > 0 || len(r.Snapshot) > 0 || r.Kind == machine.KindRevised ||
		ledger.Unconfirmed(r) || ledger.AtIssue(r, "") != ""
}

// Null is s as a parameter: nil when it is empty.
func Null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
