package reconcile

import (
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
)

// Effect is what is known of one step of an instance whose ledger was lost. Zero means that its
// effect stands, and has no external id.
type Effect struct {
	ExternalID string // empty: the Output's, if that is [saga.Identified], or a text and the step's id
	Output     any    // as the step's action would have returned it, or its JSON; nil when it is not known
	Revision   string // of the source object, that it shows; empty: the present one. What shows an older one is updated.
	Unknown    bool   // the outcome is unknown; the step counts as done and is never done again
	NotDone    bool   // there is evidence that it did not happen, or is gone
	Foreign    bool   // it stands under our mark and does not match what it should be
}

// byStep is [Config.Effects] of a saga that makes one document in one step: where one stands, the
// step has made it. output is what the step's action returned for a document; nil: its id.
func byStep(step string, output func(d *plan.Document) (any, error)) func(*scan.Listed, []plan.Document, []plan.Document) (map[string]Effect, error) {
	return func(_ *scan.Listed, live, _ []plan.Document) (map[string]Effect, error) {
		stands := map[string]Effect{}
		for i := range live {
			d := &live[i]
			e := Effect{ExternalID: d.ID, Output: d.ID}
			if output != nil {
				var err error
				if e.Output, err = output(d); err != nil {
					return nil, err
				}
			}
			stands[step] = e
		}
		return stands, nil
	}
}
