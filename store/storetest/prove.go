package storetest

import (
	"maps"
	"testing"

	"github.com/amends-dev/amends/internal/prove"
)

// Prove runs the test named test, which must call [Harness.Run] directly, once for each rule with that rule broken,
// in a process of its own, and fails unless the suite notices every one. A suite that cannot fail proves nothing. Of
// the suite only the part that is named for the rule runs, so Prove costs little more than starting the process.
func (h Harness) Prove(t *testing.T, test string) {
	t.Helper()
	rules := maps.Clone(Rules)
	if h.Address == nil {
		delete(rules, SurvivesKill)
	}
	prove.Rules(t, test, rules)
}
