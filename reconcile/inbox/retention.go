package inbox

import (
	"context"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/nap"
)

// Forever as a field of Options.Retention keeps that kind for ever.
const Forever time.Duration = -1

const (
	purgeFirst = time.Minute // after a start: a process may not live for an hour
	purgeEvery = time.Hour
	purgeBatch = 1000 // rows of each kind in one transaction, so that no other one waits for long
)

// purgeLoop forgets what is old, soon and then once an hour, until ctx ends. Several processes may do so at once.
func (h *Processor) purgeLoop(ctx context.Context) {
	p, ok := h.gate.(intake.Purger)
	if !ok {
		return
	}
	for wait := purgeFirst; ; wait = purgeEvery {
		if _ = nap.For(ctx, wait); ctx.Err() != nil {
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

func (h *Processor) purge(ctx context.Context, p intake.Purger) (total int, err error) {
	for {
		n, err := p.Purge(ctx, intake.Retention(h.opts.Retention).WithDefaults(), purgeBatch)
		if total += n; err != nil || n == 0 {
			return total, err
		}
	}
}
