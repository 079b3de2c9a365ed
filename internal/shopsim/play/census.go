package play

import (
	"cmp"
	"context"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// census counts the works of the ledger by where they stand.
type census struct {
	works    int
	live     int
	finished int
	review   []ledger.Instance
	first    string // the first by its id
	undone   string // one of the works that were compensated, if any
}

// count reads every head of the ledger.
func count(ctx context.Context, r ledger.Catalogue) (census, error) {
	var c census
	f := ledger.Filter{Limit: 1000}
	for {
		page, err := r.List(ctx, f)
		for i := range page.Instances {
			c.add(&page.Instances[i])
		}
		if f.After = page.Next; err != nil || page.Next == "" {
			return c, err
		}
	}
}

func (c *census) add(h *ledger.Instance) {
	c.works++
	if c.first == "" || h.ID.Work < c.first {
		c.first = h.ID.Work
	}
	switch {
	case h.Posted > h.Consumed:
		c.live++ // a signal was posted that the coordinator has not read yet
	case h.Status.Terminal():
		c.finished++
		if h.Status == saga.Compensated {
			c.undone = cmp.Or(c.undone, h.ID.Work)
		}
	case h.Status.Parked():
		c.review = append(c.review, *h)
	default:
		c.live++
	}
}
