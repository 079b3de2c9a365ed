package storetest

import (
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var appendCases = []testCase{
	{name: "caller's memory", run: appendCopies},
}

// What a caller does with its slices after a call, or with those it was given, does not change the
// ledger.
func appendCopies(b *bench) {
	t := b.session()
	c := b.fresh(t, "w")
	e := c.entry(arming(started(), 1), hold)
	e.Record.Body = slices.Clone(e.Record.Body)
	c.moved(e, b.one(t, e))
	e.Record.Body[2], e.Record.Dispatch.Key = 'X', "other"
	got := c.history()
	got[0].Body[2], got[0].Dispatch.Key = 'Y', "other"
	if r := c.history()[0]; r.Sum(c.id, theSalt, machine.Hash{}) != r.Hash || string(r.Body) != string(started().Body) {
		b.Errorf("the record changed behind the ledger's back: body %s, key %s", r.Body, r.Dispatch.Key)
	}
	output := []byte(`"as posted"`)
	if err := b.Post(b.Context(), c.id, machine.Signal{Kind: machine.SignalLate, Key: "k", Resolution: saga.Resolution{Output: output}}); err != nil {
		b.Fatal(err)
	}
	output[1] = 'X'
	for _, s := range b.signals(c.id) {
		s.Output[1] = 'Y'
	}
	if ss := b.signals(c.id); len(ss) != 1 || string(ss[0].Output) != `"as posted"` {
		b.Errorf("the signal changed behind the ledger's back: %+v", ss)
	}
}
