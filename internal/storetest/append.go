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
	{name: "empty batch", run: appendEmpty},
	{name: "answers at their index", run: appendAnswers},
	{name: "mine", run: appendMine, breaks: broken{"mine-known": func(s Store) Store { return estranged{s} }}},
	{name: "mine outlives the session", run: appendMineDead},
	{name: "stale", run: appendStale, breaks: broken{"predecessor": func(s Store) Store { return forker{s} }}},
	{name: "missing", run: appendMissing},
	{name: "no lease", run: appendNoLease, breaks: broken{"lease": func(s Store) Store { return reviver{s} }}},
	{name: "result without a lease", run: appendResult, breaks: broken{"result-kept": func(s Store) Store { return resultForgetter{s} }}},
	{name: "what is there comes before the lease", run: appendOrder},
	{name: "every answer in one batch", run: appendMixed},
	{name: "times never go back", run: appendTimes},
	{name: "caller's memory", run: appendCopies},
}

// An empty batch is no work and no error.
func appendEmpty(b *bench) {
	b.append(b.session())
}

// "Append stores records, many works per call, and answers each at its own index".
func appendAnswers(b *bench) {
	t := b.session()
	before := b.clock()
	var starts, nexts []ledger.Entry
	var chains []*chain
	for i := range 40 {
		c := b.fresh(t, order((i*17)%40)) // not in order: the answers must not be sorted
		chains = append(chains, c)
		starts = append(starts, c.entry(started(), hold))
	}
	numbers := map[int64]bool{}
	for i, a := range b.append(t, starts...) {
		if a.Result != ledger.Appended || a.Number == 0 || a.At.Before(before) || a.Err != nil {
			b.Fatalf("start %d: got %+v, want appended, with number and time", i, a)
		}
		numbers[a.Number] = true
		chains[i].moved(starts[i], a)
	}
	if len(numbers) != len(starts) {
		b.Errorf("%d works share %d numbers", len(starts), len(numbers))
	}
	for _, c := range chains {
		nexts = append(nexts, c.entry(arming(doing(machine.KindDispatched, saga.Running), 1), keep))
	}
	for i, a := range b.append(t, nexts...) {
		c := chains[i]
		if h := c.now(); a.Result != ledger.Appended || a.Number != h.Number || h.Number != c.head {
			b.Errorf("record 2 of %s: got %+v, want appended to number %d", c.id, a, h.Number)
		}
		rs := c.history()
		if len(rs) != 2 || rs[0].Hash != starts[i].Record.Hash || rs[1].Hash != nexts[i].Record.Hash || !rs[1].At.Equal(a.At) {
			b.Errorf("history of %s: got %d records %+v, want the two that were appended", c.id, len(rs), rs)
		}
	}
}

// Mine: "this very record was there already: the answer to an ambiguous commit", with its time and
// number. An error of Append says that nothing is known, so the very same batch comes again, and
// must change nothing.
func appendMine(b *bench) {
	t := b.session()
	old := b.start(t, "old", started(), hold)
	batch := []ledger.Entry{
		b.fresh(t, "new").entry(arming(started(), 1), hold),
		old.entry(doing(machine.KindDone, saga.Completed), release),
	}
	first := b.append(t, batch...)
	before := b.list(ledger.Filter{})
	for range 3 {
		for i, a := range b.append(t, batch...) {
			if a.Result != ledger.Mine || a.Number != first[i].Number || !a.At.Equal(first[i].At) {
				b.Errorf("entry %d again: got %+v, want mine with time and number of %+v", i, a, first[i])
			}
		}
	}
	if after := b.list(ledger.Filter{}); !slices.EqualFunc(before, after, sameHead) {
		b.Errorf("repeating a batch changed heads: got %+v, want %+v", after, before)
	}
	old.moved(batch[1], first[1])
	old.add(doing(machine.KindNoted, saga.Completed), keep)
	b.want(t, batch[1], ledger.Mine) // however long the chain is by now
}

// A record that is there is mine, also when the session that wrote it has died since: it was judged
// then.
func appendMineDead(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	start, arm := b.fresh(t, "v").entry(arming(started(), 1), hold), c.entry(arming(doing(machine.KindDispatched, saga.Running), 1), keep)
	b.append(t, start, arm)
	b.bury(t)
	b.want(t, start, ledger.Mine)
	b.want(t, arm, ledger.Mine)
}

// Stale: "another record is at this place". Whatever was decided on an old tail is not stored.
func appendStale(b *bench) {
	t, other := b.session(), b.session()
	c := b.start(t, "w", started(), hold)
	late := c.view(other)
	c.add(doing(machine.KindDone, saga.Running), hold)
	b.want(other, late.entry(doing(machine.KindUnknown, saga.Running), hold), ledger.Stale)
	for i := range 3 { // and the longer the chain has become, the same
		c.add(doing(machine.KindDispatched, saga.Running), keep)
		b.want(other, late.entry(doing(machine.KindUnknown, saga.Running), hold), ledger.Stale)
		if n := len(c.history()); n != 3+i {
			b.Fatalf("a stale append changed the chain: %d records, want %d", n, 3+i)
		}
	}
	if h := c.now(); h.Session != t {
		b.Errorf("a stale append changed the head: held by %s, want %s", h.Session, t)
	}
	// The same content at the same place in another hand is another record.
	b.want(other, late.entry(doing(machine.KindDone, saga.Running), hold), ledger.Stale)
}

// Missing: "the predecessor is gone: the database went back".
func appendMissing(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	other := b.start(t, "other", started(), hold)
	before := c.now()
	beyond := c.view(t)
	beyond.moved(c.entry(doing(machine.KindDone, saga.Running), hold), ledger.Answer{Number: c.head}) // never stored
	rewritten := c.view(t)
	rewritten.tail[0] ^= 1
	foreign := c.view(t)
	foreign.tail = other.tail
	nowhere := c.view(t)
	nowhere.head += 1000
	for name, v := range map[string]*chain{
		"the chain is shorter than it was":   beyond,
		"the predecessor has another hash":   rewritten,
		"the predecessor is of another work": foreign,
		"the work is not there":              nowhere,
	} {
		if a := b.one(t, v.entry(doing(machine.KindDone, saga.Running), hold)); a.Result != ledger.Missing {
			b.Errorf("%s: got %+v, want missing", name, a)
		}
	}
	if n := len(c.history()); n != 1 || !sameHead(c.now(), before) {
		b.Errorf("a missing predecessor changed something: %d records, head %+v", n, c.now())
	}
}

// NoLease: "the record arms something and the session is not live; nothing was stored". A session
// is not live when it was buried, when its lease has expired although no process has buried it yet,
// or when it was never opened.
func appendNoLease(b *bench) {
	buried, expired, never := b.session(), b.session(), b.session()+1
	chains := map[machine.Token]*chain{}
	for i, t := range []machine.Token{buried, expired, never} {
		chains[t] = b.start(b.session(), order(i), started(), hold).view(t)
	}
	b.bury(buried)
	b.expire(expired)
	for t, c := range chains {
		b.want(t, c.entry(arming(doing(machine.KindDispatched, saga.Running), 1), keep), ledger.NoLease)
		if rs := c.history(); len(rs) != 1 {
			b.Errorf("%s: an arm without a lease was stored: %d records", c.id, len(rs))
		}
	}
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

// NoLease says that nothing but the lease is missing: what is there already, or is gone, is told
// first. Else a writer would record its result again on a tail that has moved.
func appendOrder(b *bench) {
	t, dead := b.session(), b.session()
	c := b.start(t, "w", started(), hold)
	stale := c.view(dead)
	c.add(doing(machine.KindDone, saga.Running), hold)
	gone := c.view(dead)
	gone.tail[3] ^= 1
	b.bury(dead)
	b.want(dead, stale.entry(arming(doing(machine.KindDispatched, saga.Running), 1), keep), ledger.Stale)
	b.want(dead, gone.entry(arming(doing(machine.KindDispatched, saga.Running), 1), keep), ledger.Missing)
	b.want(dead, b.fresh(dead, "w").entry(arming(started(), 1), hold), ledger.Exists)
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

// Ledger times of one chain never go back.
func appendTimes(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	for i := range 20 {
		c.add(arming(doing(machine.KindDispatched, saga.Running), i+1), keep)
	}
	rs := c.history()
	for i := 1; i < len(rs); i++ {
		if rs[i].At.Before(rs[i-1].At) {
			b.Errorf("record %d is of %v, before its predecessor's %v", rs[i].Seq, rs[i].At, rs[i-1].At)
		}
	}
	if n := b.clock(); rs[len(rs)-1].At.After(n) {
		b.Errorf("the last record is of %v, in the future of the ledger's clock %v", rs[len(rs)-1].At, n)
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

// sameHead compares every field of two heads.
func sameHead(a, c ledger.Instance) bool { return headDiff(a, c) == "" }

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
