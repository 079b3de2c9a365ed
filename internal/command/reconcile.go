package command

import (
	"github.com/spf13/cobra"
)

// reconcileVerbs is the table of what amends can do about reconciliations.
var reconcileVerbs = []func(*app) *cobra.Command{
	(*app).reconcilePlan,
	(*app).reconcileShow,
	(*app).reconcileApply,
	(*app).reconcileApprove,
	(*app).reconcileRuns,
	(*app).reconcileRebuild,
}

func (a *app) reconcile() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "reconcile",
		Short: "Compare source, ledger and destination, and repair what is safe to repair",
		Long: `Compare what a source of truth says with what the ledger knows and with what the destination has, name every
difference, and repair what is safe to repair.

A job does that, in the program that knows source and destination; amends asks for it. A plan is made first and is
kept under an id. It is applied within bounds: what is over one is withheld until a person approves that very plan.
What cannot be told for certain is for a person in any case. By itself a new job only
plans, until it is approved.`,
		Example: `  amends reconcile plan orders                     # what differs, and what would be done? Nothing is changed
  amends reconcile show 5f3a1c2d --class duplicate
  amends reconcile apply orders 5f3a1c2d --reason "read and found right"
  amends reconcile runs orders`,
	}, reconcileVerbs)
}
