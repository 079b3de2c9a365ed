package storetest

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
)

var giveBackCases = []testCase{
	{name: "many stray works", run: strayMany},
	{name: "a claim whose answer was lost", run: giveBackLost},
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

// A claim whose answer was lost has given works to a process that does not know: the renewal names
// them, and given back they are claimed again (CORE-12, CORE-30).
func giveBackLost(b *bench) {
	t, other := b.session(), b.session()
	b.start(other, "w", started(), release)
	l := ledgertest.Faulty(b.Store, ledgertest.LoseAnswer(1, ledgertest.ClaimWorks))
	if _, err := l.Claim(b.Context(), t, ledger.Claim{Limit: 9, Known: known}); err == nil {
		b.Fatal("the answer was not lost")
	}
	if got := b.claim(t, 9); len(got) != 0 {
		b.Errorf("claimed %v, want nothing: the lost claim took it", works(got))
	}
	lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
	if err != nil || len(lease.Stray) != 1 {
		b.Fatalf("stray works %v, %v, want the one the lost claim took", works(lease.Stray), err)
	}
	b.giveBack(t, ledger.Return{Number: lease.Stray[0].Number})
	if got := works(b.claim(other, 9)); !slices.Equal(got, []string{"w"}) {
		b.Errorf("claimed %v, want the work that was given back", got)
	}
}
