package ledgertest

import (
	"context"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
)

// MustCheck runs [ledger.Check] on everything in r and fails tb with what it finds. Call it at the
// end of every test that used a ledger, while the ledger is still open.
func MustCheck(tb testing.TB, r ledger.Catalogue) {
	tb.Helper()
	report, err := ledger.Check(context.Background(), r, nil) // also in a Cleanup, where the test's context is over
	if err != nil {
		tb.Errorf("check the ledger: %v", err)
	}
	for _, f := range report.Findings {
		tb.Errorf("check the ledger: %s", f)
	}
}
