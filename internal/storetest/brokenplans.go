package storetest

import (
	"context"

	"github.com/amends-dev/amends/internal/plan"
)

// clinging: what turned out to be in sync stays found.
type clinging struct{ Store }

func (c clinging) Find(ctx context.Context, draft plan.Ref, fs []plan.Finding) error {
	var drifted []plan.Finding
	for _, f := range fs {
		if f.Class != plan.InSync {
			drifted = append(drifted, f)
		}
	}
	return c.Store.Find(ctx, draft, drifted)
}
