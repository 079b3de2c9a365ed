package command

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
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
	d, meanwhile := desk.New(whole{DB: s}, ""), ""
	in := &desk.RunIn{Ask: "hours", RequestIn: desk.RequestIn{Job: "orders", By: desk.By{Actor: "anna", Reason: "INC-7"}, Wait: desk.Duration(200 * time.Millisecond)}}
	in.Asked = func(run *desk.Run, _ bool) { // another process takes it
		err := s.Turn(t.Context(), "orders", func(now time.Time, a *schedule.Agenda) error {
			for i := range a.Open {
				if r := &a.Open[i]; r.Number == run.Number {
					r.Holder, r.Until, r.Began, r.Attempt, r.Fence = "other", now.Add(time.Hour), now, 2, 1
					r.Outcome = schedule.Outcome{Seen: 7, Planned: 3, Applied: 2, Errors: 1}
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	in.Progress = func(r *desk.Run) { meanwhile = r.Stands() + "; so far " + r.Figures() }
	_, err := d.RunNow(t.Context(), in)
	var f *desk.Failure
	if !errors.As(err, &f) || f.Code != desk.TimedOut || !strings.Contains(err.Error(), "run 4 of orders has not ended within 200ms; it goes on without this command; so far 7 seen, 3 planned, 2 applied, 1 failed") {
		t.Errorf("it ends with %v", err)
	}
	if want := "run 4 of orders is at work, attempt 2; so far 7 seen, 3 planned, 2 applied, 1 failed"; meanwhile != want {
		t.Errorf("meanwhile it said %q", meanwhile)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in.Progress = func(*desk.Run) { cancel() }
	if _, err = d.RunNow(ctx, in); !errors.As(err, &f) || f.Code != desk.Interrupted {
		t.Errorf("broken off, it ends with %v", err)
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
	apply := func(job, id string) error {
		_, err := desk.New(whole{DB: s}, "").Apply(t.Context(), &desk.ApplyIn{
			Plan: id, Approve: true, RequestIn: desk.RequestIn{Job: job, By: desk.By{Actor: "anna", Reason: "INC-7"}, Wait: 1, NoWait: true},
		})
		return err
	}
	refuses := func(job, id, why string) {
		t.Helper()
		var f *desk.Failure
		err := apply(job, id)
		if !errors.As(err, &f) || f.Code != desk.Conflict || !strings.Contains(err.Error(), why) {
			t.Errorf("%s %s: %v, want %q", job, id, err, why)
		}
	}
	refuses("orders", broken.ID, "is one of job stock")
	refuses("stock", broken.ID, broken.RefusedReason)
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
	if err := apply("orders", plan.ID); err != nil {
		t.Errorf("what can be applied is refused: %v", err)
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
		var f *desk.Failure
		if err := (&app{err: io.Discard}).confirm(patient, in, "orders"); !errors.As(err, &f) || f.Code != desk.Misuse {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// whole is a store in memory with every role; none of these tests recovers it.
type whole struct {
	*memory.DB
	ledger.TxStarter
	ledger.Recoverer
	ledgertest.Keeps
}
