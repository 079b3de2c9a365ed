package repair

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// What a person can ask for, as amends reconcile does. An apply names the plan behind it.
const (
	AskPlan    = "plan"
	AskApply   = "apply"
	AskRebuild = "rebuild"
)

// Do does what was asked for: nothing in particular, which is [Reconciler.Run], a plan, "apply 5f3a…", or a rebuild. at is
// when it was asked for, the same for every attempt: a rebuild takes it for the time since when nobody sends anything.
func (r *Reconciler) Do(ctx context.Context, ask string, at time.Time, by By) (Report, error) {
	what, plan, _ := strings.Cut(ask, " ")
	switch {
	case ask == "":
		return r.Run(ctx)
	case ask == AskPlan:
		return r.Plan(ctx)
	case what == AskApply && plan != "":
		return r.Apply(ctx, plan)
	case ask == AskRebuild:
		return r.Rebuild(ctx, at, by)
	default:
		return Report{Job: r.name, Verdict: Failed}, fmt.Errorf("reconcile %s: nobody knows how to %q; ask for %s, %s PLAN or %s", r.name, ask, AskPlan, AskApply, AskRebuild)
	}
}
