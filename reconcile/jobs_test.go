package reconcile

import (
	"testing"

	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Every word that a listing ends with is one that the runs table knows.
func TestResults(t *testing.T) {
	t.Parallel()
	for said, want := range map[scan.Result]schedule.Result{scan.OK: schedule.OK, scan.Partial: schedule.Partial} {
		if got := synced(&scan.Report{Result: said}).Result; got != want {
			t.Errorf("a sweep that is %s is recorded as %s", said, got)
		}
	}
}

// What a run counted is recorded under the same meaning.
func TestCounts(t *testing.T) {
	t.Parallel()
	got := synced(&scan.Report{Result: scan.OK, Before: "a", After: "b", Seen: 1, Calls: 2, Why: "w"})
	if want := (schedule.Outcome{Result: schedule.OK, Before: "a", After: "b", Seen: 1, Calls: 2, Note: "w"}); got != want {
		t.Errorf("a sweep: %+v, want %+v", got, want)
	}
	got = outcome(&Report{Plan: "5f3a", Result: schedule.OK, Message: "w", Seen: 1, Planned: 2, Applied: 3, OverLimit: 4, Failed: 5})
	want := schedule.Outcome{Result: schedule.OK, Plan: "5f3a", Note: "w", Seen: 1, Planned: 2, Applied: 3, OverLimit: 4, Errors: 5}
	if got != want {
		t.Errorf("a reconciler: %+v, want %+v", got, want)
	}
}
