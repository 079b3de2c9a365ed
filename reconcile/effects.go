package reconcile

import (
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/plan"
)

// Made is [Config.Effects] of a saga that makes one document in one step: where one stands, the step has made it. output is
// what the step's action returned for a document; nil: its id.
func Made(step string, output func(d *plan.Document) (any, error)) func(*scan.Object, []plan.Document, []plan.Document) (map[string]coordinator.Effect, error) {
	return func(_ *scan.Object, live, _ []plan.Document) (map[string]coordinator.Effect, error) {
		stands := map[string]coordinator.Effect{}
		for i := range live {
			d := &live[i]
			e := coordinator.Effect{ExternalID: d.ID, Output: d.ID}
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
