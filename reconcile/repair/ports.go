package repair

import (
	"context"
	"errors"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/sweep"
)

// ErrNotFound is matched by the error about a plan that the store does not have.
var ErrNotFound = errors.New("there is no such plan")

// Works is the ledger as a reconciler needs it: where the works of one saga stand, by natural key.
type Works interface {
	// Heads returns what is known of works in the order of their keys, behind after, by their heads alone: Made and
	// InDoubt are not told.
	Heads(ctx context.Context, after string, limit int) ([]Head, error)
	// Known returns everything that is known of one work; nil when there is none.
	Known(ctx context.Context, key string) (*drift.Known, error)
	// Resume wakes a work that should have moved.
	Resume(ctx context.Context, key string, by By) error
	// Adopt records what stands, and makes and sends nothing. It answers each at its own index; one that the
	// ledger knows already is left as it is.
	Adopt(ctx context.Context, as []Adoption) ([]Adopted, error)
	// Again runs an ended work once more for the object as it is, at the revision it has.
	Again(ctx context.Context, c reconcile.Change, by By) error
}

// Head is a work as a listing tells it.
type Head struct {
	Key   string
	Known drift.Known
}

// By says who wants something, and why.
type By struct {
	Actor  string
	Reason string
}

// Adoption is what stands of one work, as far as source and destination tell.
type Adoption struct {
	Change reconcile.Change // the object as the source has it
	// Effects are the results of steps that stand. A step that is not named is as the saga has it: what is safe to
	// repeat is done when the work goes on, and what is not (a mail) counts as done.
	Effects map[string]Effect
	// Cancelled: the object is not wanted any more, and nothing stands.
	Cancelled bool
	// Quarantine: something stands that does not match. The work is recorded in review with these words, so that
	// nothing is started for it.
	Quarantine string
}

// Effect is the result of one step.
type Effect struct {
	ExternalID string
	Output     any    // as the step's action would return it; nil when it is not known
	Revision   string // of the object, which the effect shows; empty: the present one
	Unknown    bool   // nobody can tell; it counts as done and is never done again
	NotDone    bool   // there is evidence that it was not done
}

// Adopted is what became of an adoption.
type Adopted struct {
	Status string // of the work
	Known  bool   // the ledger had it already; nothing was recorded
}

// Store keeps plans, what became of their actions, and drift that lasts.
type Store interface {
	// Draft begins a plan of a job and returns its number. What was drafted earlier and never finished is erased.
	Draft(ctx context.Context, job string) (number int64, err error)
	// Find adds findings to a draft, in the order of their keys; the same keys again replace theirs.
	Find(ctx context.Context, number int64, fs []drift.Finding) error
	// Finish makes the draft a plan. at is the database's clock.
	Finish(ctx context.Context, number int64, p drift.Plan) (at time.Time, err error)
	// Plan returns a plan by its id; Latest the newest plan of a job. [ErrNotFound].
	Plan(ctx context.Context, id string) (Stored, error)
	Latest(ctx context.Context, job string) (Stored, error)
	// Findings returns findings of a plan in the order of keys.
	Findings(ctx context.Context, q FindingQuery) ([]Row, error)
	// Approve notes who wants a plan to be applied although it is over its bounds.
	Approve(ctx context.Context, id string, by By) error
	// Done notes what became of actions.
	Done(ctx context.Context, number int64, rows []Row) error

	// Remember makes the drift of a job what it is now: what was there before keeps its first time, what is not among
	// fs any more is gone. It is told in parts, in the order of keys; part says which keys it covers.
	Remember(ctx context.Context, job string, part Part, fs []drift.Finding) error
	// Drifts returns the drift of jobs, the oldest first.
	Drifts(ctx context.Context, q DriftQuery) ([]Drift, error)
}

// Stored is a plan as the store has it.
type Stored struct {
	drift.Plan
	Number   int64
	Made     time.Time
	Approved By // zero: nobody has
	When     time.Time
}

// Outcome is what became of one action.
type Outcome string

// The outcomes.
const (
	Pending    Outcome = ""           // nothing yet
	Applied    Outcome = "applied"    //
	Superseded Outcome = "superseded" // it was not so any more right before the action; nothing was done
	Failed     Outcome = "failed"     // see Row.Error; it is planned again by the next run
	Withheld   Outcome = "withheld"   // over a bound
	ForPerson  Outcome = "person"     // a person decides
)

// Row is a finding with what became of it.
type Row struct {
	drift.Finding
	Outcome Outcome
	Error   string
	At      time.Time
}

// FindingQuery selects findings.
type FindingQuery struct {
	Number  int64
	After   string // keys behind this one
	Acting  bool   // only those for which something is to be done by itself and has not been done
	Class   drift.Class
	Outcome Outcome // with Acting false; empty: any
	Limit   int
}

// Part is a range of keys: behind From, up to and with Until. An empty Until is the end.
type Part struct{ From, Until string }

// Drift is one difference that was found, and since when.
type Drift struct {
	Job string
	drift.Finding
	First, Last time.Time
	Times       int // how many runs in a row found it
}

// DriftQuery selects drift.
type DriftQuery struct {
	Job   string
	Key   string
	Class drift.Class
	Times int // found at least so often in a row
	After Drift
	Limit int
}

// Sides are the source and the destination of a job.
type Sides struct {
	Source      sweep.Source
	Destination sweep.Destination
}
