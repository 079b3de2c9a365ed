package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A run that is at work when the wait is over goes on: the status and the words say so, and what it
// did so far.
func TestWaitForRunAtWork(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	if err := reconciled(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	run, err := schedule.Request(t.Context(), s, "orders", "hours", saga.Actor{Name: "anna", Reason: "INC-7"})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Turn(t.Context(), "orders", func(now time.Time, a *schedule.Agenda) error {
		for i := range a.Open {
			if r := &a.Open[i]; r.Number == run.Number {
				r.Holder, r.Until, r.Began, r.Attempt, r.Fence = "other", now.Add(time.Hour), now, 2, 1
				r.Outcome = schedule.Outcome{Seen: 7, Planned: 3, Applied: 2, Errors: 1}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	later := time.Now()
	a := &app{err: &errs, now: func() time.Time { later = later.Add(time.Minute); return later }}
	_, err = a.end(t.Context(), s, run, 200*time.Millisecond)
	var f *failure
	if !errors.As(err, &f) || f.exit != exitTimedOut || !strings.Contains(err.Error(), "run 4 of orders has not ended within 200ms; it goes on without this command; so far 7 seen, 3 planned, 2 applied, 1 failed") {
		t.Errorf("it ends with %v", err)
	}
	if want := "run 4 of orders is at work, attempt 2; so far 7 seen, 3 planned, 2 applied, 1 failed\n"; !strings.Contains(errs.String(), want) {
		t.Errorf("meanwhile it said %q", errs.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = a.end(ctx, s, run, time.Hour); !errors.As(err, &f) || f.exit != exitInterrupted {
		t.Errorf("broken off, it ends with %v", err)
	}
}

// Only a run that ended well ends a command with 0.
func TestBadly(t *testing.T) {
	t.Parallel()
	for v, want := range map[schedule.Result]exit{
		schedule.OK: exitDone, schedule.Partial: exitFailed, schedule.Failed: exitFailed, schedule.Refused: exitConflict,
		schedule.Stopped: exitConflict, schedule.Skipped: exitConflict, "a newer one": exitFailed,
	} {
		err := badly(&schedule.RunRow{Number: 1, Job: "orders", Outcome: schedule.Outcome{Result: v, Note: "words"}})
		var f *failure
		switch {
		case want == exitDone && err == nil:
		case !errors.As(err, &f) || f.exit != want || !strings.Contains(err.Error(), "words"):
			t.Errorf("%s: %v, want status %d", v, err, want)
		}
	}
	if len(results) != 6 {
		t.Errorf("%d results can be asked for", len(results))
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
		if got := jobNote(&tc.state, now); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A plan is not asked to be carried out by a job that is paused, or another one; nor when its
// diagnosis says that nothing of it may be done. Nobody is asked then, and no bounds are lifted.
// That a person names it is enough for a job that nobody has approved yet.
func TestApplicable(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	if err := reconciled(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	plan, err := ordersPlan().plan()
	if err != nil {
		t.Fatal(err)
	}
	broken, err := brokenPlan().plan()
	if err != nil {
		t.Fatal(err)
	}
	r := &request{by: saga.Actor{Name: "anna", Reason: "INC-7"}, noWait: true}
	refuses := func(job, id, why string) {
		t.Helper()
		var f *failure
		err := (&app{out: io.Discard, err: io.Discard}).apply(t.Context(), s, job, id, r, true)
		if !errors.As(err, &f) || f.exit != exitConflict || !strings.Contains(err.Error(), why) {
			t.Errorf("%s %s: %v, want %q", job, id, err, why)
		}
	}
	refuses("orders", broken.ID, "is one of job stock")
	refuses("stock", broken.ID, broken.Refused)
	refuses("parcels", plan.ID, "job parcels is paused")
	if err := schedule.Pause(t.Context(), s, schedule.Everything, saga.Actor{Name: "bob", Reason: "INC-8"}); err != nil {
		t.Fatal(err)
	}
	refuses("orders", plan.ID, "all jobs are paused")

	stored, err := s.Plan(t.Context(), plan.ID)
	if err != nil || stored.Approved.Name != "" {
		t.Errorf("the bounds were lifted: %+v, %v", stored.Approved, err)
	}
	if open, err := s.Runs(t.Context(), schedule.RunFilter{Open: true, Job: "orders"}); err != nil || len(open) > 0 {
		t.Errorf("a run was asked for: %+v, %v", open, err)
	}
	if err := schedule.Unpause(t.Context(), s, schedule.Everything); err != nil {
		t.Fatal(err)
	}
	err = s.Turn(t.Context(), "orders", func(_ time.Time, a *schedule.Agenda) error {
		a.State.Approved = schedule.Mark{}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&app{out: io.Discard, err: io.Discard}).apply(t.Context(), s, "orders", plan.ID, r, true); err != nil {
		t.Errorf("what can be applied is refused: %v", err)
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
	starts := []plan.Tally{{Class: plan.Missing, Do: plan.Start, Risk: plan.Create, Count: 2}}
	asked := []plan.Tally{{Class: plan.Duplicate, Do: plan.Ask, Count: 1}}
	over := []plan.Excess{{Risk: plan.Create, Count: 2}}
	for name, tc := range map[string]struct {
		plan plan.Plan
		by   string
		want string
	}{
		"in sync":  {plan.Plan{Tallies: []plan.Tally{{Class: plan.InSync, Do: plan.Nothing, Count: 9}}}, "", "there is nothing to do"},
		"asks":     {plan.Plan{Tallies: asked}, "", "what is for a person: amends reconcile show 5f3a1c2d"},
		"acts":     {plan.Plan{Tallies: starts}, "", "to do it: amends reconcile apply orders 5f3a1c2d --reason WHY"},
		"over":     {plan.Plan{Tallies: starts, Withheld: over}, "", "the same with --approve"},
		"approved": {plan.Plan{Tallies: starts, Withheld: over}, "anna", "to do it: "},
		"refused":  {plan.Plan{Tallies: starts, Refused: "the mapping"}, "", "nothing of it can be done"},
	} {
		tc.plan.Job, tc.plan.ID = "orders", "5f3a1c2d00000000"
		if got := (&app{}).nextOfPlan(&plan.Stored{Plan: tc.plan, Approved: saga.Actor{Name: tc.by}}); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q in it", name, got, tc.want)
		}
	}
}

// A question can be broken off without an answer, and is not asked where nobody can give one.
func TestConfirm(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readLine(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("broken off, it says %v", err)
	}
	if line, err := readLine(t.Context(), strings.NewReader("orders")); err != nil || line != "orders" {
		t.Errorf("a line without an end is read as %q, %v", line, err)
	}
	patient, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	for name, in := range map[string]io.Reader{"nothing": nil, "a pipe": r, "a text": strings.NewReader("orders\n")} {
		var f *failure
		if err := (&app{err: io.Discard}).confirm(patient, in, "orders"); !errors.As(err, &f) || f.exit != exitUsage {
			t.Errorf("%s: %v", name, err)
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
