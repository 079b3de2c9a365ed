package coordinator

import (
	"encoding/json"

	"github.com/amends-dev/amends/saga"
)

// Adoption is what stands of one work that the ledger does not know, because it was lost or another program did it, as far as its source and
// its destinations tell.
type Adoption struct {
	Saga     string
	Work     string
	Input    any    // of the present version, as for [Coordinator.Start]
	Revision string // the version of the source object, as the source has it now

	// Effects says what is known of steps, by their names. A step that is not named is taken as its
	// class allows: what can be asked for is asked for when the work goes on, what is idempotent is
	// done then, and what can be neither (a mail) counts as done and is listed as unconfirmed.
	Effects map[string]Effect
	// Cancelled: the source cancelled the object. Then only what Effects names stands.
	Cancelled bool
	// Quarantine says, to a person, why something that stands cannot be taken over. The work is
	// recorded in review with these words. They are about the effect that is Foreign, else about
	// the first step that is not said to stand.
	Quarantine string

	By saga.Actor
}

// Effect is what an [Adoption] says of one step. Zero means that its effect stands, and has no
// external id.
type Effect struct {
	ExternalID string // empty: the Output's, if that is [saga.Identified], or a text and the step's id
	Output     any    // as the step's action would have returned it, or its JSON; nil when it is not known
	Revision   string // of the source object, that it shows; empty: the adoption's. What shows an older one is updated.
	Unknown    bool   // the outcome is unknown; the step counts as done and is never done again
	NotDone    bool   // there is evidence that it did not happen, or is gone
	Foreign    bool   // it stands under our mark and does not match: Quarantine says why
}

// Adopted tells what became of an adoption.
type Adopted struct {
	Known       bool // the ledger had the work already; nothing was recorded
	Status      saga.Status
	Reason      saga.Reason
	Revision    string
	Unconfirmed []string // steps that count as done although their outcome is unknown
	Err         error    // it is wrong, and was not recorded or not to its end; the others were
}

// kept is the effect's result as the ledger keeps it.
func (e *Effect) kept() (json.RawMessage, error) {
	if e.Output == nil {
		return nil, nil
	}
	return json.Marshal(e.Output)
}
