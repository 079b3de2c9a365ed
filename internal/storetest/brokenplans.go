package storetest

import (
	"context"
	"crypto/rand"

	"github.com/amends-dev/amends/internal/plan"
)

// undying: a draft lives on beside the next one of its job.
type undying struct{ Store }

func (u undying) Draft(ctx context.Context, job string) (plan.Ref, error) {
	return u.Store.Draft(ctx, job+rand.Text())
}

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

// oblivious: drift starts over with every run.
type oblivious struct{ Store }

func (o oblivious) Remember(ctx context.Context, plan plan.Ref, part plan.Part, fs []plan.Finding) error {
	if err := o.Store.Remember(ctx, plan, part, nil); err != nil {
		return err
	}
	return o.Store.Remember(ctx, plan, part, fs)
}
