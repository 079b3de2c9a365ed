package console

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// found stores findings of a job, as a comparison does, and runs the job: it carries out what is decided.
func (w *world) found(fs ...plan.Finding) {
	w.t.Helper()
	ctx := w.t.Context()
	ref, err := w.db.Draft(ctx, "orders")
	if err == nil {
		err = w.db.Remember(ctx, ref, plan.Part{}, fs)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	jobs, err := schedule.New(w.db, []schedule.Job{{Name: "orders", Schedule: "30 2 1 1 *", Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
		ds, err := w.db.Decisions(ctx, plan.DecisionQuery{Job: r.Job, Open: true})
		for i := range ds {
			ds[i].Outcome = plan.Applied
		}
		if err == nil {
			err = w.db.Settled(ctx, r.Job, ds)
		}
		return schedule.Outcome{Result: schedule.OK}, err
	}}}, &schedule.Options{Poll: 20 * time.Millisecond})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- jobs.Run(ctx) }()
	w.t.Cleanup(func() { stop(); <-done })
}

// A person who may act decides on a finding where it is shown, on just what is shown; then it needs none any more. Who only reads is offered nothing.
func TestAFindingIsDecidedOnItsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.found(
		plan.Finding{Key: "shop:order:1", Class: plan.Diverged, Action: plan.Ask, Reason: "fields of ours were changed", Documents: []string{"inv_1"}, Changes: []plan.Change{{Field: "total", Actual: "9", Desired: "10"}}},
		plan.Finding{Key: "shop:order:2", Class: plan.Duplicate, Action: plan.Ask, Reason: "there are two", Documents: []string{"inv_2", "inv_3"}},
	)
	if _, page := w.as("rita", Reader).get("/findings"); !strings.Contains(page, "shop:order:1") || strings.Contains(page, "/jobs/{job}/findings") {
		t.Errorf("a reader is shown:\n%s", page)
	}
	x := w.as("ada", Operator)
	x.press("/findings?key=shop:order:1", "Write ours over it", map[string]string{"reason": "nothing was agreed"})
	x.press("/", "Keep this one and void the others", map[string]string{"reason": "the first"})
	d := desk.New(w.db, "")
	for n := range 2 {
		key := fmt.Sprintf("shop:order:%d", n+1)
		for {
			l, err := d.Decisions(t.Context(), &desk.DecisionsIn{Job: "orders", Key: key, Limit: desk.Limit{N: 1}})
			if err != nil || len(l.Items) != 1 {
				t.Fatalf("%s: %+v, %v", key, l, err)
			}
			if l.Items[0].Outcome == plan.Applied {
				break
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a job in another goroutine
		}
	}
	if _, page := x.get("/"); strings.Contains(page, "shop:order:") {
		t.Errorf("what was decided needs a person still:\n%s", page)
	}
}
