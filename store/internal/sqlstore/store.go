package sqlstore

import (
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/reconcile/sweep"
)

// Store has every role of a SQL database, but for what its dialect does: opening, appending, accepting and the gate.
type Store struct {
	db *Dialect

	*chains
	*inbox
	*plans
	*sweeps
	*jobs
}

var (
	_ ledger.Controls  = (*Store)(nil)
	_ reconcile.Reader = (*Store)(nil)
	_ drift.Plans      = (*Store)(nil)
	_ drift.Drifts     = (*Store)(nil)
	_ sweep.Store      = (*Store)(nil)
	_ schedule.Store   = (*Store)(nil)
	_ schedule.Reader  = (*Store)(nil)
)

// New returns a store that speaks d.
func New(d *Dialect) *Store {
	return &Store{db: d, chains: newChains(d), inbox: &inbox{d}, plans: &plans{d}, sweeps: &sweeps{d}, jobs: &jobs{d}}
}
