package repair

import (
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/sweep"
)

// Made is Config.Effects of a saga that makes one document in one step: where one stands, the step has made it. output is
// what the step's action returned for a document; nil: its id.
func Made(step string, output func(d *drift.Document) (any, error)) func(*sweep.Object, []drift.Document, []drift.Document) (map[string]Effect, error) {
	return func(_ *sweep.Object, live, _ []drift.Document) (map[string]Effect, error) {
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
