// Package jobs makes scheduled work of a sweep and of a reconciler, which know nothing of schedules. Give both
// [schedule.Proceed] and [schedule.Approved], and one of each serves all runs.
package jobs

import (
	"cmp"
	"context"

	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Work is what a job does.
type Work = func(context.Context, *schedule.Run) (schedule.Outcome, error)

// Changed hears what changed at the source since the last time. wake, if not nil, is called when something was stored: a
// hearer's Nudge.
func Changed(s *scan.Sweep, wake func()) Work {
	return func(ctx context.Context, _ *schedule.Run) (schedule.Outcome, error) {
		rep, err := s.Changed(ctx)
		if wake != nil {
			wake()
		}
		return swept(&rep), err
	}
}

// Compared compares everything, and does what follows within bounds; or what a person asked for: a plan, an apply, a
// rebuild.
func Compared(r *repair.Reconciler) Work {
	return func(ctx context.Context, run *schedule.Run) (schedule.Outcome, error) {
		rep, err := r.Do(ctx, run.Ask, run.At, repair.By{Actor: cmp.Or(run.By, "schedule"), Reason: cmp.Or(run.Why, "it was due")})
		return repaired(&rep), err
	}
}

func swept(r *scan.Report) schedule.Outcome {
	return schedule.Outcome{
		Verdict: schedule.Verdict(r.Verdict), Before: r.Before, After: r.After, Seen: r.Seen, Calls: r.Calls, Note: r.Why,
	}
}

func repaired(r *repair.Report) schedule.Outcome {
	return schedule.Outcome{
		Verdict: schedule.Verdict(r.Verdict), Seen: r.Seen, Planned: r.Planned, Applied: r.Applied,
		Refused: r.Withheld, Errors: r.Failed, Plan: r.Plan, Note: r.Words,
	}
}
