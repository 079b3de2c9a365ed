package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

var giveBackCases = []testCase{
	{name: "many stray works", run: strayMany},
}

func (b *bench) giveBack(t machine.Token, works ...ledger.Return) {
	b.Helper()
	if err := b.GiveBack(b.Context(), t, works); err != nil {
		b.Fatalf("give back %v: %v", works, err)
	}
}

// One renewal names at most [ledger.MaxStray] of them, and the next ones the others, once those are
// given back.
func strayMany(b *bench) {
	t := b.session()
	const n = ledger.MaxStray + 10
	var batch []ledger.Entry
	for i := range n {
		batch = append(batch, b.fresh(t, order(i)).entry(started(), hold))
	}
	b.append(t, batch...)
	seen := 0
	for seen < n {
		lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
		if err != nil || len(lease.Stray) == 0 || len(lease.Stray) > ledger.MaxStray {
			b.Fatalf("%d stray works, %v; %d of %d were given back", len(lease.Stray), err, seen, n)
		}
		seen += len(lease.Stray)
		var back []ledger.Return
		for _, h := range lease.Stray {
			back = append(back, ledger.Return{Number: h.Number})
		}
		b.giveBack(t, back...)
	}
	if got := b.claim(b.session(), 2*n); len(got) != n {
		b.Errorf("claimed %d works, want all %d that were given back", len(got), n)
	}
}
