package storetest

import (
	"slices"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var loadCases = []testCase{
	{name: "many works", run: loadMany},
	{name: "one moment", run: loadMoment, breaks: broken{"one-moment": func(s Store) Store { return tornLoad{s} }}},
	{name: "behind a stale answer", run: loadBehindStale, breaks: broken{"load-current": func(s Store) Store { return &lagging{Store: s} }}},
	{name: "another database since", run: loadChanged, needs: func(h Harness) bool { return h.Change != nil },
		breaks: broken{"change-marked": func(s Store) Store { return unmarked{s} }}},
	{name: "a session that is over, another database since", run: loadOverElsewhere, needs: func(h Harness) bool { return h.Change != nil }},
}

// Load returns each chain with its head.
func loadMany(b *bench) {
	t := b.session()
	want := map[saga.ID]*chain{}
	var ids []saga.ID
	for i := range 60 {
		c := b.start(t, order((i*7)%60), started(), hold)
		for range i % 4 {
			c.add(arming(doing(machine.KindDispatched, saga.Running), 1), keep)
		}
		want[c.id] = c
		ids = append(ids, c.id)
	}
	got := b.load(append(ids, id("unknown"))...)
	if len(got) != len(want) {
		b.Fatalf("loaded %d works, want %d", len(got), len(want))
	}
	for _, l := range got {
		c := want[l.Instance.ID]
		if c == nil {
			b.Fatalf("loaded %s, which was not asked for, or twice", l.Instance.ID)
		}
		delete(want, l.Instance.ID)
		if diff := headDiff(l.Instance, c.now()); diff != "" {
			b.Errorf("the loaded head of %s:%s", c.id, diff)
		}
		if rs := c.history(); !slices.EqualFunc(l.Records, rs, sameRecord) || int64(len(rs)) != c.seq {
			b.Errorf("%s: loaded %d records, history has %d, %d were written", c.id, len(l.Records), len(rs), c.seq)
		}
		if last := l.Records[len(l.Records)-1].At; l.At.Before(last) {
			b.Errorf("%s was read at %v, before its last record was stored at %v", c.id, l.At, last)
		}
	}
}

// Changed "is when the database became another one, for a chain whose latest record was written
// before". What is written since is not marked, and neither is anything while the database was
// always the same.
func loadChanged(b *bench) {
	old := b.session()
	held, released := b.start(old, "held", started(), hold), b.start(old, "released", started(), release)
	b.session()
	for _, l := range b.load(held.id, released.id) {
		if !l.Changed.IsZero() {
			b.Errorf("%s is marked at %v, and the database was always the same", l.Instance.ID, l.Changed)
		}
	}
	before := b.clock()
	b.harness.Change(b.T, b.raw)
	b.witness = 0 // it was opened on the other one
	fresh := b.session()
	for _, l := range b.load(held.id, released.id) {
		if l.Changed.Before(before) || l.Changed.After(b.clock()) {
			b.Errorf("%s is marked at %v, want the time of the first session on the new database, after %v", l.Instance.ID, l.Changed, before)
		}
	}
	b.claim(fresh, 10)
	c := released.view(fresh)
	c.add(doing(machine.KindNoted, saga.Running), hold)
	since := b.start(fresh, "since", started(), hold)
	b.session()
	for _, l := range b.load(c.id, since.id) {
		if !l.Changed.IsZero() {
			b.Errorf("%s is marked at %v, and its latest record was written since", l.Instance.ID, l.Changed)
		}
	}
	if l := b.load(held.id); len(l) != 1 || l[0].Changed.Before(before) {
		b.Errorf("a later session forgot that %s was written before the change: %+v", held.id, l)
	}
}

// "Not told where Changed is set".
func loadOverElsewhere(b *bench) {
	old := b.session()
	c := b.start(old, "w", started(), hold)
	c.add(arming(doing(machine.KindDispatched, saga.Running), 1), keep)
	b.expire(old)
	b.harness.Change(b.T, b.raw)
	b.witness = 0 // it was opened on the other one
	fresh := b.session()
	b.claim(fresh, 10)
	if l := b.load(c.id); len(l) != 1 || l[0].Changed.IsZero() || l[0].Over {
		b.Errorf("loaded %+v, want it marked as written on another database, and not as over", l)
	}
}
