package storetest

import (
	"context"
	"crypto/rand"

	"github.com/amends-dev/amends/reconcile/drift"
)

// undying: a draft lives on beside the next one of its job.
type undying struct{ Store }

func (u undying) Draft(ctx context.Context, job string) (drift.Ref, error) {
	return u.Store.Draft(ctx, job+rand.Text())
}

// clinging: what turned out to be in sync stays found.
type clinging struct{ Store }

func (c clinging) Find(ctx context.Context, draft drift.Ref, fs []drift.Finding) error {
	var drifted []drift.Finding
	for _, f := range fs {
		if f.Class != drift.InSync {
			drifted = append(drifted, f)
		}
	}
	return c.Store.Find(ctx, draft, drifted)
}

// oblivious: drift starts over with every run.
type oblivious struct{ Store }

func (o oblivious) Remember(ctx context.Context, plan drift.Ref, part drift.Part, fs []drift.Finding) error {
	if err := o.Store.Remember(ctx, plan, part, nil); err != nil {
		return err
	}
	return o.Store.Remember(ctx, plan, part, fs)
}
