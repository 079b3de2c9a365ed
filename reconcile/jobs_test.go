package reconcile

import (
	"testing"

	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Every word that a sweep or a reconciler ends with is one that the runs table knows.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for said, want := range map[scan.Verdict]schedule.Verdict{scan.OK: schedule.OK, scan.Partial: schedule.Partial} {
		if got := synced(&scan.Report{Verdict: said}).Verdict; got != want {
			t.Errorf("a sweep that is %s is recorded as %s", said, got)
		}
	}
	for said, want := range map[Verdict]schedule.Verdict{
		OK: schedule.OK, Partial: schedule.Partial, Refused: schedule.Refused, Failed: schedule.Failed,
	} {
		if got := outcome(&Report{Verdict: said}).Verdict; got != want {
			t.Errorf("a run that is %s is recorded as %s", said, got)
		}
	}
}

// What a run counted is recorded under the same meaning.
func TestCounts(t *testing.T) {
	t.Parallel()
	got := synced(&scan.Report{Verdict: scan.OK, Before: "a", After: "b", Seen: 1, Calls: 2, Why: "w"})
	if want := (schedule.Outcome{Verdict: schedule.OK, Before: "a", After: "b", Seen: 1, Calls: 2, Note: "w"}); got != want {
		t.Errorf("a sweep: %+v, want %+v", got, want)
	}
	got = outcome(&Report{Plan: "5f3a", Verdict: OK, Words: "w", Seen: 1, Planned: 2, Applied: 3, Withheld: 4, Failed: 5})
	want := schedule.Outcome{Verdict: schedule.OK, Plan: "5f3a", Note: "w", Seen: 1, Planned: 2, Applied: 3, Refused: 4, Errors: 5}
	if got != want {
		t.Errorf("a reconciler: %+v, want %+v", got, want)
	}
}
