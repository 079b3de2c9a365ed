package storetest

import (
	"context"

	"github.com/amends-dev/amends/internal/ledger"
)

// What breaks the rules of controls.

// shortlived: of what people did to a control only the last is kept.
type shortlived struct{ Store }

func (s shortlived) Acts(ctx context.Context, kind ledger.ControlKind, name string, _ int) ([]ledger.Control, error) {
	return s.Store.Acts(ctx, kind, name, 1)
}
