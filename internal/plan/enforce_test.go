package plan_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// Nobody touched the document: it says what the ledger says it should. The source says something
// else at the version that was applied (its clock counts seconds), or at an older one (its reader
// is behind). To write the old input again helps nobody, and would be planned for ever.
func TestEnforceWritesTheOldAgain(t *testing.T) {
	for _, revision := range []string{"2026-11-01T10:00:00Z", "2026-11-01T09:59:59Z"} {
		i := plan.Item{
			Key:       "shop:order:1",
			Truth:     &plan.Truth{Key: "shop:order:1", Revision: revision, Wanted: true, Fields: plan.Fields{"total": "12"}},
			Documents: []plan.Document{{ID: "inv_1", Key: "shop:order:1", Fields: plan.Fields{"total": "10"}, Revision: "2026-11-01T10:00:00Z", Intact: true}},
			Known:     &plan.Known{Works: 1, Status: saga.Completed, Revision: "2026-11-01T10:00:00Z", Fields: plan.Fields{"total": "10"}, Made: "inv_1"},
		}
		if f := plan.Classify(&i, &plan.Policy{Fields: map[string]plan.Rule{"total": plan.Enforce}}); f.Action == plan.Again {
			t.Errorf("source at %s: %s, %s: %s", revision, f.Class, f.Action, f.Reason)
		}
	}
}
