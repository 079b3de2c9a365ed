package plan_test

import (
	"context"
	"fmt"
	"os"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// Three listings, in the order of their keys, become a plan.
func ExampleComparison_Compare() {
	listed := func(key, total string) plan.Seen {
		return plan.Seen{Key: key, ID: "inv_" + key[len("shop:order:"):], Revision: "1", Wanted: true, Fields: plan.Fields{"total": total}}
	}
	known := func(key string) plan.Head {
		return plan.Head{Key: key, Known: plan.Known{Works: 1, Status: saga.Completed, Revision: "1"}}
	}
	sides := plan.Sides{
		Source:      stream([]plan.Seen{listed("shop:order:1", "4200"), listed("shop:order:2", "1000"), listed("shop:order:3", "700")}),
		Destination: stream([]plan.Seen{listed("shop:order:1", "4200"), listed("shop:order:2", "900"), listed("shop:order:3", "700")}),
		Ledger:      stream([]plan.Head{known("shop:order:1"), known("shop:order:2")}),
	}

	var found []plan.Finding
	how := plan.Comparison{Complete: true}
	counts, err := how.Compare(context.Background(), sides, func(f *plan.Finding) error {
		found = append(found, *f) // a program looks at each once more, and keeps it in a store
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	planner := plan.NewPlanner(&plan.Plan{Job: "orders", MappingVersion: "1", Scan: 1, Counts: counts.Census, Differences: counts.Spread}, counts.Tallies)
	for i := range found {
		if err := planner.Add(&found[i]); err != nil {
			fmt.Println(err)
			return
		}
	}
	proposed, err := planner.Plan(&plan.Bounds{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = plan.WriteText(os.Stdout, proposed, func(c plan.Class, _ int) ([]plan.Finding, error) {
		for _, f := range found {
			if f.Class == c {
				return []plan.Finding{f}, nil
			}
		}
		return nil, nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// Plan b066f5762ec0cf046d7c7f8794aa0fd5 of orders, mapping 1, generation 1
	// 3 keys: the source has 3, the destination 3, the ledger 2
	//
	// class        to be done  keys
	// in-sync      nothing     1
	// ledger-lost  adopt       1
	// diverged     review      1
	//
	// ledger-lost
	//   shop:order:3  adopt: the destination has it, exactly, and the ledger does not know (inv_3)
	//
	// diverged
	//   shop:order:2  review: fields of ours were changed at the destination (inv_2)
	//     - total: 900
	//     + total: 1000
	//     > keep the change and correct the source, or write ours again
}
