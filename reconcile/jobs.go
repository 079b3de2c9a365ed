package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// What a person can ask a job for, as amends reconcile does. An apply names the plan behind it.
const (
	askPlan    = "plan"
	askApply   = "apply"
	askRebuild = "rebuild"
	askDecided = "decided"
)

// SyncChanges is the work of a job: it stores what changed at the source since the last time in the
// inbox, like a webhook.
func (r *Reconciler) SyncChanges(ctx context.Context, _ *schedule.Run) (schedule.Outcome, error) {
	rep, err := r.sweep.Changed(ctx)
	if r.wake != nil {
		r.wake()
	}
	return synced(&rep), err
}

// Run is the work of a job: it compares everything, and does what follows within bounds; or what a
// person asked for: a plan, an apply, a rebuild. Before a person has approved the job it only
// plans, and a plan may be applied by its id.
func (r *Reconciler) Run(ctx context.Context, run *schedule.Run) (schedule.Outcome, error) {
	rep, err := r.asked(ctx, run)
	return outcome(&rep), err
}

// asked does what was asked for: nothing in particular, which is a plan and what follows from it, a
// plan, "apply 5f3a…", what people decided, or a rebuild. run.At is when it was asked for, the same for every attempt: a
// rebuild takes it for the time since when nothing is sent any more.
func (r *Reconciler) asked(ctx context.Context, run *schedule.Run) (Report, error) {
	what, plan, _ := strings.Cut(run.Ask, " ")
	switch {
	case run.Ask == "":
		if _, err := r.carryOutDecisions(ctx); err != nil { // that a run of their own has left
			return Report{Job: r.name, Result: schedule.Failed}, err
		}
		return r.planAndApply(ctx, run.Approved)
	case run.Ask == askPlan:
		return r.Plan(ctx)
	case what == askApply && plan != "":
		return r.Apply(ctx, plan)
	case run.Ask == askDecided:
		return r.carryOutDecisions(ctx)
	case run.Ask == askRebuild:
		return r.Rebuild(ctx, run.At, saga.Actor{Name: cmp.Or(run.By, "schedule"), Reason: cmp.Or(run.Why, "it was due")})
	default:
		return Report{Job: r.name, Result: schedule.Failed}, fmt.Errorf("reconcile %s: %q is unknown; ask for %s, %s PLAN, %s or %s", r.name, run.Ask, askPlan, askApply, askDecided, askRebuild)
	}
}

func synced(r *scan.Report) schedule.Outcome {
	return schedule.Outcome{
		Result: schedule.Result(r.Result), Before: r.Before, After: r.After, Seen: r.Seen, Calls: r.Calls, Note: r.Why,
	}
}

func outcome(r *Report) schedule.Outcome {
	return schedule.Outcome{
		Result: r.Result, Seen: r.Seen, Planned: r.Planned, Applied: r.Applied,
		OverLimit: r.OverLimit, Errors: r.Failed, Plan: r.Plan, Note: r.Message,
	}
}
