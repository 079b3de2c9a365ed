package storetest

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var faultCases = []testCase{
	{name: "every answer lost", run: faultLost},
	{name: "cancelled context", run: faultCancelled},
}

// "A method that returns an error may or may not have taken effect, and calling it again with the
// same arguments settles which." Here every append takes effect, and every other answer is lost.
func faultLost(b *bench) {
	t := b.session()
	var chains []*chain
	for i := range 4 {
		chains = append(chains, b.fresh(t, order(i)))
	}
	records := []machine.Record{
		arming(started(), 1), arming(doing(machine.KindDone, saga.Running), 2), doing(machine.KindDone, saga.Completed),
	}
	for i, r := range records {
		s := hold
		if i == len(records)-1 {
			s = release
		}
		var batch []ledger.Entry
		for _, c := range chains {
			batch = append(batch, c.entry(r, s))
		}
		l := ledgertest.Faulty(b.Store, ledgertest.LoseAnswer(1, ledgertest.Append), ledgertest.FailBefore(2, ledgertest.Append))
		for _, what := range []string{"the answer is lost", "it never arrives"} {
			if as, err := l.Append(b.Context(), t, batch); err == nil {
				b.Fatalf("%s: got %+v and no error", what, as)
			}
		}
		as, err := l.Append(b.Context(), t, batch)
		if err != nil {
			b.Fatal(err)
		}
		for k, a := range as {
			if a.Result != ledger.Mine || a.At.IsZero() || a.Number == 0 {
				b.Errorf("record %d of %s again: got %+v, want mine with time and number", i+1, chains[k].id, a)
			}
			chains[k].moved(batch[k], a)
		}
	}
	for _, c := range chains {
		if rs := c.history(); len(rs) != len(records) {
			b.Errorf("%s has %d records, want each once: %d", c.id, len(rs), len(records))
		}
	}
}

// A call on a cancelled context fails, or it is done; it does not do half.
func faultCancelled(b *bench) {
	t := b.session()
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	var batch []ledger.Entry
	for i := range 5 {
		batch = append(batch, b.fresh(t, fmt.Sprint(i)).entry(started(), hold))
	}
	if _, err := b.Append(ctx, t, batch); err == nil {
		b.Error("append on a cancelled context succeeded")
	}
	first := b.append(t, batch...)
	for _, a := range first {
		if a.Result != first[0].Result || a.Result != ledger.Appended && a.Result != ledger.Mine {
			b.Errorf("after an append on a cancelled context: got %s, want appended or mine throughout", a.Result)
		}
	}
}
