package sqlstore

import (
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Store has every role of a SQL database, but for what its dialect does: opening and appending.
type Store struct {
	db *Dialect

	*chains
	*inboxRole
	*plans
	*sweeps
	*jobs
}

var (
	_ ledger.Controls = (*Store)(nil)
	_ intake.Store    = (*Store)(nil)
	_ intake.Reader   = (*Store)(nil)
	_ plan.Plans      = (*Store)(nil)
	_ plan.Drifts     = (*Store)(nil)
	_ scan.Store      = (*Store)(nil)
	_ schedule.Store  = (*Store)(nil)
	_ schedule.Reader = (*Store)(nil)
)

// New returns a store that speaks d.
func New(d *Dialect, sealed bool) *Store {
	d.sealed.Store(sealed)
	return &Store{db: d, chains: newChains(d), inboxRole: &inboxRole{d}, plans: &plans{d}, sweeps: &sweeps{d}, jobs: &jobs{d}}
}
