package storetest

import (
	"github.com/amends-dev/amends/internal/ledger"
)

func (b *bench) overview() ledger.Overview {
	b.Helper()
	o, err := b.Overview(b.Context())
	if err != nil {
		b.Fatalf("overview: %v", err)
	}
	return o
}
