package storetest

import (
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var startCases = []testCase{
	{name: "once", run: startOnce, breaks: broken{"unique-start": func(s Store) Store { return startDoubler{s} }}},
	{name: "equal keys in one batch", run: startTwice},
	{name: "two sagas", run: startTwoSagas},
	{name: "arms", run: startArms},
	{name: "odd work ids", run: startOddIDs},
}

// Exists: "start only: the work is known". Nothing of the second start is stored.
func startOnce(b *bench) {
	t, other := b.session(), b.session()
	c := b.start(t, "w", started(), hold)
	before := c.now()
	r := started()
	r.Body, r.Revision = []byte(`{"order":2}`), "r2"
	for _, e := range []ledger.Entry{
		b.fresh(t, "w").entry(r, hold),
		b.fresh(other, "w").entry(started(), hold), // the same start in another hand is another start
	} {
		if a := b.one(t, e); a.Result != ledger.Exists {
			b.Errorf("second start: got %+v, want exists", a)
		}
	}
	if rs := c.history(); len(rs) != 1 || rs[0].Hash != c.tail {
		b.Errorf("a second start changed the chain: %+v", rs)
	}
	if diff := headDiff(c.now(), before); diff != "" {
		b.Errorf("a second start changed the head:%s", diff)
	}
	if all := b.list(ledger.Filter{}); len(all) != 1 {
		b.Errorf("a second start made another work: %v", works(all))
	}
	c.add(doing(machine.KindDone, saga.Completed), release)
	b.want(t, b.fresh(t, "w").entry(r, hold), ledger.Exists) // also when it is finished
}

// "Equal starts in one batch are answered from the first".
func startTwice(b *bench) {
	t := b.session()
	first, second := started(), started()
	second.Body = []byte(`{"order":2}`)
	one := b.fresh(t, "w").entry(first, hold)
	as := b.append(t,
		b.fresh(t, "v").entry(started(), hold),
		one,
		b.fresh(t, "w").entry(second, hold),
		one,
	)
	if as[0].Result != ledger.Appended || as[1].Result != ledger.Appended || as[2].Result != ledger.Exists {
		b.Errorf("got %s, %s and %s, want the first of each work appended, and exists", as[0].Result, as[1].Result, as[2].Result)
	}
	if a := as[3]; a.Result != ledger.Mine || a.Number != as[1].Number || !a.At.Equal(as[1].At) {
		b.Errorf("the very same start twice in a batch: got %+v, want mine with time and number of %+v", a, as[1])
	}
	if rs, err := b.History(b.Context(), id("w")); err != nil || len(rs) != 1 || rs[0].Hash != one.Record.Hash {
		b.Errorf("history: got %+v and error %v, want the first start alone", rs, err)
	}
}

// A work is named by its saga and its id together.
func startTwoSagas(b *bench) {
	t := b.session()
	b.start(t, "w", started(), hold)
	other := b.fresh(t, "w")
	other.id.Saga = "order-to-crm"
	other.add(started(), hold)
	if all := b.list(ledger.Filter{Work: "w"}); len(all) != 2 {
		b.Errorf("got %d works of this id, want one of each saga", len(all))
	}
}

// A start may arm its first step, if its session is live.
func startArms(b *bench) {
	t, dead := b.session(), b.session()
	b.bury(dead)
	b.want(dead, b.fresh(dead, "w").entry(arming(started(), 1), hold), ledger.NoLease)
	if all := b.list(ledger.Filter{}); len(all) != 0 {
		b.Errorf("a start without a lease made a work: %+v", all)
	}
	c := b.start(t, "w", arming(started(), 1), hold)
	if rs := c.history(); rs[0].Dispatch == nil || !rs[0].Deadline().Equal(rs[0].At.Add(rs[0].Dispatch.Budget)) {
		b.Errorf("the start did not arm: %+v", rs[0])
	}
}

// A work id is the customer's text: it is compared byte by byte, and any valid text is one.
func startOddIDs(b *bench) {
	t := b.session()
	for _, w := range oddTexts {
		if w == "" {
			continue
		}
		c := b.start(t, w, started(), hold)
		if h := c.now(); h.ID.Work != w {
			b.Errorf("work %q came back as %q", w, h.ID.Work)
		}
		if got := b.load(c.id); len(got) != 1 || got[0].Instance.ID != c.id {
			b.Errorf("work %q does not load: %+v", w, got)
		}
	}
}
