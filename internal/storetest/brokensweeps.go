package storetest

import (
	"context"

	"github.com/amends-dev/amends/internal/scan"
)

// torn: the events of a page are stored first, and what it saw a moment later.
type torn struct{ Store }

func (t torn) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	for i := range page.Events {
		if err := t.Accept(ctx, page.Events[i:i+1]); err != nil {
			return p, err
		}
	}
	page.Events = nil
	return t.Store.Advance(ctx, p, page)
}
