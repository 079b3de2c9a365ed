package inbox

import (
	"cmp"
	"context"
	"time"
)

// Forever as a field of Options.Retention keeps that kind for ever.
const Forever time.Duration = -1

const day = 24 * time.Hour

// withDefaults fills in what is kept by default, and says for ever as stores do.
func (r Retention) withDefaults() Retention {
	kept := func(d, usual time.Duration) time.Duration { return max(cmp.Or(d, usual), 0) }
	return Retention{Bodies: kept(r.Bodies, 30*day), Verdicts: kept(r.Verdicts, 90*day), Digests: kept(r.Digests, 400*day)}
}

const (
	purgeEvery = time.Hour
	purgeBatch = 1000 // rows of each kind in one transaction, so that no other one waits for long
)

// purgeLoop forgets what is old, once an hour, until ctx ends. Several processes may do so at once.
func (h *Processor) purgeLoop(ctx context.Context) {
	p, ok := h.gate.(Purger)
	if !ok {
		return
	}
	for {
		if wait(ctx, nil, purgeEvery); ctx.Err() != nil {
			return
		}
		n, err := h.purge(ctx, p)
		switch {
		case err != nil && ctx.Err() == nil:
			h.opts.Log.WithError(err).Warn("forgetting what is old failed; trying again in an hour")
		case n > 0:
			h.opts.Log.WithField("rows", n).Info("what was heard long ago is forgotten")
		}
	}
}

func (h *Processor) purge(ctx context.Context, p Purger) (total int, err error) {
	for {
		n, err := p.Purge(ctx, h.opts.Retention, purgeBatch)
		if total += n; err != nil || n == 0 {
			return total, err
		}
	}
}
