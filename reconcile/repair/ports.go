package repair

import (
	"context"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/saga"
)

// Works is the ledger as a reconciler needs it: where the works of one saga stand, by natural key.
type Works interface {
	// Heads returns what is known of works in the order of their keys, behind after, by their heads alone: Made and
	// InDoubt are not told.
	Heads(ctx context.Context, after string, limit int) ([]Head, error)
	// Known returns everything that is known of one work; nil when there is none.
	Known(ctx context.Context, key string) (*plan.Known, error)
	// Resume wakes a work that should have moved.
	Resume(ctx context.Context, key string, by By) error
	// Adopt records what stands, and makes and sends nothing. It answers each at its own index; one that the
	// ledger knows already is left as it is, and one whose adoption was cut off is taken up. It may be repeated.
	Adopt(ctx context.Context, as []Adoption, by By) ([]Adopted, error)
	// Again runs a completed work once more, at the revision it has. The same request again changes nothing.
	Again(ctx context.Context, key, request string, by By) error
}

// Head is a work as a listing tells it.
type Head = plan.Head

// By says who wants something, and why.
type By = plan.By

// Adoption is what stands of one work, as far as source and destination tell.
type Adoption struct {
	Key    string       // the work id
	Change inbox.Change // the object as the source has it
	// Effects are the results of steps that stand. A step that is not named is as the saga has it: what is safe to
	// repeat is done when the work goes on, and what is not (a mail) counts as done.
	Effects map[string]Effect
	// Cancelled: nothing stands but what Effects names; the work is recorded as undone.
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
	NotDone    bool   // there is evidence that it was not done, or is gone; it is done when the work goes on, a mail, too
	Foreign    bool   // it stands under our mark, and is not what it should be: Adoption.Quarantine says why
}

// Adopted is what became of an adoption.
type Adopted struct {
	Status saga.Status // of the work
	Known  bool        // the ledger had it already; nothing was recorded
	Err    error       // it was not recorded; the others were
}
