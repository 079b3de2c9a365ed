package reconcile

import (
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
)

// Effect is what is known of one step of an instance whose ledger was lost; without a Revision it shows the object's present one.
type Effect = coordinator.Effect

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
