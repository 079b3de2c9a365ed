package ledgertest

import (
	"testing"

	"github.com/amends-dev/amends/internal/prove"
)

// Prove runs the test named test, which must call [Run] directly, once for each rule with that rule broken, in a
// process of its own, and fails unless the suite notices every one. A suite that cannot fail proves nothing. Of the
// suite only the part that is named for the rule runs, so Prove costs little more than starting the process.
func Prove(t *testing.T, test string) {
	t.Helper()
	prove.Rules(t, test, Rules)
}
