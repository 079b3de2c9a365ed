package store

import (
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Reconciler is the half of a database that package reconcile and those below it need: webhooks and the objects they speak of, what scans saw,
// plans, differences, and runs of jobs. A coordinator takes nothing of it.
type Reconciler interface {
	intake.Inbox
	intake.Gate
	intake.Reader
	plan.Plans
	plan.Drifts
	scan.Store
	schedule.Store
	schedule.Reader
}
