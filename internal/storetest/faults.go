package storetest

import (
	"context"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var faultCases = []testCase{
	{name: "every answer lost", run: faultLost},
	{name: "cancelled context", run: faultCancelled},
	{name: "a schema that became newer", run: faultSchema, needs: func(h Harness) bool { return h.Newer != nil },
		breaks: broken{"schema-known": func(s Store) Store { return credulous{s} }}},
	{name: "what was answered is there", run: crashAnswered, breaks: broken{"survives-kill": func(s Store) Store { return hasty{s} }},
		needs: func(h Harness) bool { return h.Address != nil }}, // else it dies with its process
}

// "A method that returns an error may or may not have taken effect, and calling it again with the
// same arguments settles which" (K8). Here every append takes effect, and every other answer is lost.
func faultLost(b *bench) {
	t := b.session()
	var chains []*chain
	for i := range 4 {
		chains = append(chains, b.fresh(t, order(i)))
	}
	for i, r := range []machine.Record{
		arming(started(), 1), arming(doing(machine.KindDone, saga.Running), 2), doing(machine.KindDone, saga.Completed),
	} {
		s := []*ledger.Schedule{hold, hold, release}[i]
		var batch []ledger.Entry
		for _, c := range chains {
			batch = append(batch, c.entry(r, s))
		}
		l := ledgertest.Faulty(b.Store, ledgertest.LoseAnswer(1, ledgertest.Append), ledgertest.FailBefore(2, ledgertest.Append))
		for range 2 {
			_, err := l.Append(b.Context(), t, batch)
			b.wantError("append", err, ledgertest.ErrInjected)
		}
		for k, a := range of(l.Append(b.Context(), t, batch)) {
			if a.Result != ledger.Mine || a.At.IsZero() || a.Number == 0 {
				b.Errorf("record %d of %s again: got %+v, want mine with time and number", i+1, chains[k].id, a)
			}
			chains[k].moved(batch[k], a)
		}
	}
	for _, c := range chains {
		if rs := c.history(); len(rs) != 3 {
			b.Errorf("%s has %d records, want each once", c.id, len(rs))
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
		batch = append(batch, b.fresh(t, order(i)).entry(started(), hold))
	}
	_, err := b.Append(ctx, t, batch)
	b.wantError("append", err, context.Canceled)
	b.wantError("accept", b.Accept(ctx, events(1)), context.Canceled)
	first := of(b.Append(b.Context(), t, batch))
	for _, a := range first {
		if a.Result != first[0].Result || a.Result != ledger.Appended && a.Result != ledger.Mine {
			b.Errorf("after an append on a cancelled context: got %s, want appended or mine throughout", a.Result)
		}
	}
	if ok(b.Accept(b.Context(), []intake.Event{event("later")})); len(b.all()) != 1 {
		b.Errorf("%d deliveries, want the later one alone", len(b.all()))
	}
}

// "A schema that is newer than this program answers ErrSchema", also when it has become so while
// the process runs (K16): a renewal notices, and no session is opened.
func faultSchema(b *bench) {
	t := b.session()
	b.harness.Newer(b.T, b.raw)
	_, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
	b.wantError("renew on a newer schema", err, ledger.ErrSchema)
	_, err = b.OpenSession(b.Context(), time.Hour, "suite", nil)
	b.wantError("open a session on a newer schema", err, ledger.ErrSchema)
}
