package reconcile

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
)

// Parts are what a test puts a reconciler together from: a third side that is not a ledger, and a listing with faults.
type Parts struct {
	Sweep     *scan.Sweep
	Instances instances
	Deliver   func(context.Context, inbox.Snapshot) error
	Effects   func(o *scan.Object, live, void []plan.Document) (map[string]coordinator.Effect, error)
	Policy    plan.Policy
	Bounds    plan.Bounds
	Plans     plan.Plans
	Drifts    plan.Drifts
	Patience  time.Duration
	Workers   int
	Log       logrus.FieldLogger
}

// Assemble puts it together.
func Assemble(p *Parts) *Reconciler {
	return assemble(&parts{
		name: p.Sweep.Name, sweep: p.Sweep, instances: p.Instances, deliver: p.Deliver, effects: p.Effects, policy: p.Policy, bounds: p.Bounds,
		plans: p.Plans, drifts: p.Drifts, patience: p.Patience, workers: p.Workers, log: p.Log,
	})
}

// PlanAndApply is a run that the schedule wants.
func (r *Reconciler) PlanAndApply(ctx context.Context, approved bool) (Report, error) {
	return r.planAndApply(ctx, approved)
}

// Instances is the third side.
func (r *Reconciler) Instances() instances { return r.instances }
