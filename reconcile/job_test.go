package reconcile_test

import (
	"context"
	"testing"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/memory"
)

// store is where a job writes.
type store interface {
	scan.Store
	plan.Plans
	plan.Drifts
	intake.Reader
}

// job is a reconciler over a world, with the store it writes to.
type job struct {
	*reconcile.Reconciler
	*world
	t     *testing.T
	store store
	lists *scan.Sweep

	approved bool
}

// settings may change what a job is made of.
type settings struct {
	reconcile.Parts
	sweep scan.Config
}

func (w *world) job(t *testing.T, change func(*settings)) *job {
	t.Helper()
	return w.jobOver(t, memory.New(nil), change)
}

// jobOver is the job in another process, or another time.
func (w *world) jobOver(t *testing.T, store store, change func(*settings)) *job {
	t.Helper()
	c := settings{
		sweep: scan.Config{Name: "orders", Source: w.source(), Destination: w.destination(), Store: store, Mapping: "1"},
		Parts: reconcile.Parts{
			Instances: fakeLedger{w}, Deliver: w.deliver, Effects: effects, Plans: store, Drifts: store, Workers: 1,
		},
	}
	if change != nil {
		change(&c)
	}
	var err error
	if c.Sweep, err = scan.New(c.sweep); err != nil {
		t.Fatal(err)
	}
	return &job{Reconciler: reconcile.Assemble(&c.Parts), world: w, t: t, store: store, lists: c.Sweep, approved: true}
}

// many lets a job do as much as there is.
func many(c *settings) {
	all := plan.Bound{Count: 1_000_000, Percent: 100}
	c.Bounds.Create, c.Bounds.Update, c.Bounds.Destroy = all, all, all
}

func (j *job) mustPlan() reconcile.Report {
	j.t.Helper()
	return j.must(j.Plan(j.t.Context()))
}

// Run is a run that the schedule wants.
func (j *job) Run(ctx context.Context) (reconcile.Report, error) {
	return j.PlanAndApply(ctx, j.approved)
}

func (j *job) mustRun() reconcile.Report {
	j.t.Helper()
	return j.must(j.Run(j.t.Context()))
}

func (j *job) must(r reconcile.Report, err error) reconcile.Report {
	j.t.Helper()
	if err != nil {
		j.t.Fatalf("%v (%+v)", err, r)
	}
	return r
}

// rows are the findings of the newest plan.
func (j *job) rows() []plan.Row {
	j.t.Helper()
	p, err := j.store.Latest(j.t.Context(), "orders")
	if err != nil {
		j.t.Fatal(err)
	}
	rows, err := j.store.Findings(j.t.Context(), plan.FindingQuery{Plan: p.Ref(), Limit: 1_000_000})
	if err != nil {
		j.t.Fatal(err)
	}
	return rows
}

// row is the finding about one key; zero when there is none.
func (j *job) row(key string) plan.Row {
	j.t.Helper()
	for _, r := range j.rows() {
		if r.Key == key {
			return r
		}
	}
	return plan.Row{}
}
