package main

import (
	"encoding/hex"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile"
)

// memo is what an invoice says of itself, so that a ledger that is lost can be rebuilt from the
// books: which version of the order it shows, and a digest of what we wrote on it.
func memo(revision string, o outside.Order) string {
	return "version " + revision + " #" + digest(fields(o.Customer.Ref(), o.Lines))
}

// readMemo reads the version that an invoice with these fields shows, and whether they are still
// what we wrote.
func readMemo(text string, f reconcile.Fields) (revision string, intact bool) {
	rest, ours := strings.CutPrefix(text, "version ")
	revision, sum, whole := strings.Cut(rest, " #")
	if !ours || !whole {
		return "", false
	}
	return revision, sum == digest(f)
}

// digest is short, because people see it.
func digest(f reconcile.Fields) string {
	sum := intake.DigestOf(f["customer"], f["total"], f["lines"])
	return hex.EncodeToString(sum[:4])
}
