package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var appendCases = []testCase{
	{name: "result without a lease", run: appendResult, breaks: broken{"result-kept": func(s Store) Store { return resultForgetter{s} }}},
	{name: "every answer in one batch", run: appendMixed},
	{name: "caller's memory", run: appendCopies},
}

// "Recording a result needs only the tail": what was learned is never dropped. On NoLease the same
// result is appended without its arm, by the session whose lease ended.
func appendResult(b *bench) {
	t := b.session()
	c := b.start(t, "w", arming(started(), 1), hold)
	b.bury(t)
	done := doing(machine.KindDone, saga.Running)
	done.ExternalID = "inv_5530"
	b.want(t, c.entry(arming(done, 1), hold), ledger.NoLease)
	c.add(done, release)
	if rs := c.history(); len(rs) != 2 || rs[1].ExternalID != "inv_5530" || rs[1].Session != t {
		b.Errorf("the result is not in the chain: %+v", rs)
	}
	if h := c.now(); h.Session != 0 || h.Due.IsZero() {
		b.Errorf("the work was not released: %+v", h)
	}
}

// Every entry has an answer of its own, whatever became of its neighbours.
func appendMixed(b *bench) {
	t := b.session()
	var cs []*chain
	for i := range 6 {
		cs = append(cs, b.start(t, order(i), started(), hold))
	}
	done := func(c *chain) ledger.Entry { return c.entry(doing(machine.KindDone, saga.Running), hold) }
	mine, stale, gone := done(cs[1]), cs[2].view(t), cs[3].view(t)
	b.append(t, mine, done(cs[2]))
	gone.tail[0] ^= 1
	bad := doing(machine.KindRefused, saga.Running)
	bad.Error = "a\x00b"
	batch := []ledger.Entry{
		done(cs[0]),
		mine,
		stale.entry(doing(machine.KindUnknown, saga.Running), hold),
		done(gone),
		b.fresh(t, order(4)).entry(due(started(), time.Hour), release),
		cs[5].entry(bad, hold),
		b.fresh(t, "new").entry(started(), hold),
	}
	want := []ledger.Result{
		ledger.Appended, ledger.Mine, ledger.Stale, ledger.Missing, ledger.Exists, ledger.Invalid, ledger.Appended,
	}
	for i, a := range b.append(t, batch...) {
		if a.Result != want[i] {
			b.Errorf("entry %d: got %s (%v), want %s", i, a.Result, a.Err, want[i])
		}
	}
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

// headDiff says in which fields two heads differ.
func headDiff(a, c ledger.Instance) (diff string) {
	line := func(name string, got, want any, same bool) {
		if !same {
			diff += fmt.Sprintf("\n\t%s: got %v, want %v", name, got, want)
		}
	}
	line("Number", a.Number, c.Number, a.Number == c.Number)
	line("ID", a.ID, c.ID, a.ID == c.ID)
	line("Version", a.Version, c.Version, a.Version == c.Version)
	line("Revision", a.Revision, c.Revision, a.Revision == c.Revision)
	line("Status", a.Status, c.Status, a.Status == c.Status)
	line("Reason", a.Reason, c.Reason, a.Reason == c.Reason)
	line("Class", a.Class, c.Class, a.Class == c.Class)
	line("Step", a.Step, c.Step, a.Step == c.Step)
	line("Unconfirmed", a.Unconfirmed, c.Unconfirmed, a.Unconfirmed == c.Unconfirmed)
	line("Session", a.Session, c.Session, a.Session == c.Session)
	line("Due", a.Due, c.Due, a.Due.Equal(c.Due))
	line("WaitsFor", a.WaitsFor, c.WaitsFor, a.WaitsFor == c.WaitsFor)
	line("Base", a.Base, c.Base, a.Base == c.Base)
	line("Posted", a.Posted, c.Posted, a.Posted == c.Posted)
	line("Consumed", a.Consumed, c.Consumed, a.Consumed == c.Consumed)
	line("Created", a.Created, c.Created, a.Created.Equal(c.Created))
	line("Updated", a.Updated, c.Updated, a.Updated.Equal(c.Updated))
	line("Finished", a.Finished, c.Finished, a.Finished.Equal(c.Finished))
	return diff
}
