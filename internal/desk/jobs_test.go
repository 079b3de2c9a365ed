package desk

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// Only a run that ended well ends a command with 0.
func TestBadly(t *testing.T) {
	t.Parallel()
	for v, want := range map[schedule.Result]Code{
		schedule.OK: "", schedule.Partial: Failed, schedule.Failed: Failed, schedule.Refused: Conflict,
		schedule.Stopped: Conflict, schedule.Skipped: Conflict, "a newer one": Failed,
	} {
		run := runOf(&schedule.RunRow{Number: 1, Job: "orders", Outcome: schedule.Outcome{Result: v, Note: "words"}})
		err := run.badly()
		var f *Failure
		switch {
		case want == "" && err == nil:
		case !errors.As(err, &f) || f.Code != want || !strings.Contains(err.Error(), "words"):
			t.Errorf("%s: %v, want %q", v, err, want)
		}
	}
	if len(Results) != 6 {
		t.Errorf("%d results can be asked for", len(Results))
	}
}

// The most urgent thing is said of a job: what needs a person before a pause, a pause before an
// approval.
func TestJobNote(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	long := now.AddDate(0, 0, -7)
	mark := schedule.Mark{At: now, By: "anna", Why: "INC-7"}
	for name, tc := range map[string]struct {
		state schedule.JobState
		want  string
	}{
		"neglected and paused": {schedule.JobState{First: long, Schedule: "@daily", Fresh: 3, Paused: mark}, "needs a person: no run ended well yet"},
		"paused":               {schedule.JobState{First: now, Schedule: "@daily", Fresh: 3, Paused: mark}, "paused by anna at 2026-03-14T12:00:00Z: INC-7"},
		"unreadable":           {schedule.JobState{First: now, Schedule: "whenever", Fresh: 3, Paused: mark}, "this amends cannot read its schedule"},
		"new":                  {schedule.JobState{Name: "orders", First: now, Schedule: "@daily", Fresh: 3}, "only plans, until: amends reconcile approve orders"},
		"well":                 {schedule.JobState{First: now, Schedule: "@daily", Fresh: 3, Approved: mark}, ""},
	} {
		if got := jobDoc(&tc.state, now).Note; !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Where a page ends is read back as it was written, whatever is in a key.
func TestDriftCursor(t *testing.T) {
	t.Parallel()
	d := plan.Drift{Job: "orders:eu", Finding: plan.Finding{Key: "shop:order:1,2"}, First: time.Date(2026, 3, 14, 12, 0, 0, 123456000, time.UTC)}
	got, err := parseDriftCursor(driftCursor(&d))
	if err != nil || got.Job != d.Job || got.Key != d.Key || !got.First.Equal(d.First) {
		t.Errorf("%q is read as %+v, %v", driftCursor(&d), got, err)
	}
}

// What a person can do with a plan follows from what is in it.
func TestNextOfPlan(t *testing.T) {
	t.Parallel()
	starts := []plan.Tally{{Class: plan.Missing, Action: plan.Start, Risk: plan.Create, Count: 2}}
	asked := []plan.Tally{{Class: plan.Duplicate, Action: plan.Ask, Count: 1}}
	over := []plan.Excess{{Risk: plan.Create, Count: 2}}
	for name, tc := range map[string]struct {
		plan plan.Plan
		by   string
		want string
	}{
		"in sync":  {plan.Plan{Classes: []plan.Tally{{Class: plan.InSync, Action: plan.Nothing, Count: 9}}}, "", "there is nothing to do"},
		"asks":     {plan.Plan{Classes: asked}, "", "what is for a person: amends reconcile show 5f3a1c2d"},
		"acts":     {plan.Plan{Classes: starts}, "", "to do it: amends reconcile apply orders 5f3a1c2d --reason WHY"},
		"over":     {plan.Plan{Classes: starts, OverLimit: over}, "", "the same with --approve"},
		"approved": {plan.Plan{Classes: starts, OverLimit: over}, "anna", "to do it: "},
		"refused":  {plan.Plan{Classes: starts, RefusedReason: "the mapping"}, "", "nothing of it can be done"},
	} {
		tc.plan.Job, tc.plan.ID = "orders", "5f3a1c2d00000000"
		if got := (&Desk{}).nextOfPlan(&plan.Stored{Plan: tc.plan, Approved: saga.Actor{Name: tc.by}}); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q in it", name, got, tc.want)
		}
	}
}

// Where a page of runs ends is read back as it was written: of all jobs by time, of one by the
// number.
func TestRunCursor(t *testing.T) {
	t.Parallel()
	r := schedule.RunRow{Job: "orders:eu", Number: 7, Created: time.Date(2026, 3, 14, 12, 0, 0, 123456000, time.UTC)}
	for _, job := range []string{"", r.Job} {
		got, err := parseRunCursor(job, runCursor(job, &r))
		if err != nil || got.Job != r.Job || got.Number != r.Number || job == "" && !got.Created.Equal(r.Created) {
			t.Errorf("%q is read as %+v, %v", runCursor(job, &r), got, err)
		}
	}
	for _, wrong := range [][2]string{{"", "7"}, {"orders", "0"}, {"orders", "x"}, {"orders", runCursor("", &r)}} {
		if got, err := parseRunCursor(wrong[0], wrong[1]); err == nil {
			t.Errorf("%q of %q is read as %+v", wrong[1], wrong[0], got)
		}
	}
}
