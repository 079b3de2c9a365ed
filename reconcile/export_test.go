package reconcile

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Parts are what a test puts a reconciler together from: a third side that is not a ledger, and a
// listing with faults.
type Parts struct {
	Sweep     *scan.Sweep
	Instances instances
	Deliver   func(context.Context, inbox.Snapshot) error
	Void      func(context.Context, plan.Document) error
	Effects   func(o *scan.Listed, live, void []plan.Document) (map[string]Effect, error)
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
		name: p.Sweep.Name, sweep: p.Sweep, instances: p.Instances, deliver: p.Deliver, void: p.Void, effects: p.Effects, policy: p.Policy, bounds: p.Bounds,
		plans: p.Plans, drifts: p.Drifts, patience: p.Patience, workers: p.Workers, log: p.Log,
	})
}

// PlanAndApply is a run that the schedule wants.
func (r *Reconciler) PlanAndApply(ctx context.Context, approved bool) (Report, error) {
	return r.planAndApply(ctx, approved)
}

// CarryOutDecisions is a run that a person's decisions want.
func (r *Reconciler) CarryOutDecisions(ctx context.Context) (Report, error) {
	return r.carryOutDecisions(ctx)
}

// Instances is the third side.
func (r *Reconciler) Instances() instances { return r.instances }

// Pages is a scan's listing as a user writes one.
func Pages(list func(context.Context, scan.Query) (scan.Page, error)) func(context.Context, Query) ([]Listed, string, error) {
	if list == nil {
		return nil
	}
	return func(ctx context.Context, q Query) ([]Listed, string, error) {
		p, err := list(ctx, scan.Query(q))
		return p.Objects, p.Next, err
	}
}

// DestinationOf is a scan's destination as a user writes one.
func DestinationOf(d scan.Destination) Destination {
	return Destination{
		Limits: d.Limits, Find: d.Find, Settle: d.Settle,
		Marked: func(ctx context.Context, q Query) ([]Document, string, error) {
			p, err := d.Marked(ctx, scan.Query(q))
			return p.Documents, p.Next, err
		},
	}
}

// ByStep is what says the effects where nothing else does.
var ByStep = byStep
