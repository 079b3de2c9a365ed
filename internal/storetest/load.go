package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var loadCases = []testCase{
	{name: "many works", run: loadMany},
	{name: "from the latest snapshot on", run: loadBounded},
	{name: "unread signals", run: loadSignals, breaks: broken{"read-once": func(s Store) Store { return signalRepeater{s} }}},
	{name: "unknown works", run: loadUnknown},
	{name: "one moment", run: loadMoment, breaks: broken{"one-moment": func(s Store) Store { return tornLoad{s} }}},
	{name: "behind a stale answer", run: loadBehindStale, breaks: broken{"load-current": func(s Store) Store { return &lagging{Store: s} }}},
	{name: "another database since", run: loadChanged, needs: func(h Harness) bool { return h.Change != nil },
		breaks: broken{"change-marked": func(s Store) Store { return unmarked{s} }}},
	{name: "a session that is over", run: loadOver, breaks: broken{"over-told": func(s Store) Store { return everlasting{s} }}},
	{name: "a session that is over, another database since", run: loadOverElsewhere, needs: func(h Harness) bool { return h.Change != nil }},
	{name: "what is at rest", run: atRest, breaks: broken{"rest-told": func(s Store) Store { return restless{s} }}},
	{name: "signals of its own", run: loadOthers, unsound: true},
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

// Load returns a chain "from its latest snapshot on", so that a long outage does not make it slow
// to load. History returns it whole.
func loadBounded(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	snapshots := map[int64]bool{6: true, 7: true, 25: true}
	base := int64(1)
	for c.seq < 30 {
		r := arming(doing(machine.KindDispatched, saga.Running), 1)
		if snapshots[c.seq+1] {
			base = c.seq + 1
			r.Snapshot = json.RawMessage(fmt.Sprintf(`{"seq":%d}`, base))
		}
		c.add(r, keep)
		loaded := b.load(c.id)
		if len(loaded) != 1 || len(loaded[0].Records) == 0 {
			b.Fatalf("at record %d: loaded %+v", c.seq, loaded)
		}
		l := loaded[0]
		if l.Instance.Base != base || l.Records[0].Seq != base || l.Records[len(l.Records)-1].Seq != c.seq || int64(len(l.Records)) != c.seq-base+1 {
			b.Fatalf("at record %d: base %d, loaded %d records from %d; want those from %d on", c.seq, l.Instance.Base, len(l.Records), l.Records[0].Seq, base)
		}
		if rs := c.history(); int64(len(rs)) != c.seq {
			b.Fatalf("at record %d: history has %d records", c.seq, len(rs))
		}
	}
}

// Load returns chains "with the signals posted to the work that no record has consumed": what was
// said is read once (CORE-24, T8). Signals returns all of them for ever.
func loadSignals(b *bench) {
	t := b.session()
	c, other := b.start(t, "w", started(), hold), b.start(t, "other", started(), hold)
	expect := func(places ...int) {
		b.Helper()
		all := b.signals(c.id)
		for _, l := range b.load(other.id, c.id) {
			var want []int
			if l.Instance.ID == c.id {
				want = places
			}
			if len(l.Signals) != len(want) {
				b.Fatalf("loaded %d signals of %s, want %d", len(l.Signals), l.Instance.ID, len(want))
			}
			for i, s := range l.Signals {
				if w := all[want[i]]; s.ID != w.ID || s.Key != w.Key || !s.At.Equal(w.At) || s.Actor != "suite" {
					b.Errorf("loaded signal %d is %+v, want %+v", i, s, w)
				}
			}
		}
	}
	expect()
	b.post(c.id, "one")
	b.post(c.id, "two")
	b.post(c.id, "three")
	expect(0, 1, 2)
	refused := b.consuming(c.id, doing(machine.KindNoted, saga.Running), 0)
	refused.Error = "a\x00b"
	b.want(t, c.entry(refused, keep), ledger.Invalid)
	expect(0, 1, 2)
	e := c.entry(b.consuming(c.id, doing(machine.KindNoted, saga.Running), 1), keep)
	b.want(t, e, ledger.Appended)
	b.want(t, e, ledger.Mine)
	c.moved(e, ledger.Answer{Number: c.head})
	expect(0, 2)
	beside := other.entry(doing(machine.KindNoted, saga.Running), keep)
	two := c.entry(b.consuming(c.id, doing(machine.KindNoted, saga.Running), 2, 0), keep)
	b.append(t, beside, two)
	c.moved(two, ledger.Answer{Number: c.head})
	expect()
	b.post(c.id, "four")
	expect(3)
	if n := len(b.signals(c.id)); n != 4 {
		b.Errorf("%d signals are listed, want all 4", n)
	}
}

// "Works that do not exist are left out" of Load. Asked for by name, they are ErrNotFound.
func loadUnknown(b *bench) {
	c := b.start(b.session(), "w", started(), hold)
	if got := b.load(id("nowhere"), saga.ID{Saga: "other", Work: "w"}); len(got) != 0 {
		b.Errorf("loaded %+v, want nothing", got)
	}
	if got := b.load(); len(got) != 0 {
		b.Errorf("loaded %+v for no works", got)
	}
	if got := b.load(id("nowhere"), c.id); len(got) != 1 || got[0].Instance.ID != c.id {
		b.Errorf("loaded %+v, want the work that exists", got)
	}
	if _, err := b.History(b.Context(), id("nowhere")); !errors.Is(err, ledger.ErrNotFound) {
		b.Errorf("history of an unknown work: error %v, want %q", err, ledger.ErrNotFound)
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

// Load marks a chain whose latest record arms an attempt under a session that is over: buried, or
// expired and buried by a claim.
func loadOver(b *bench) {
	buried, expired, alive := b.session(), b.session(), b.session()
	arms := arming(doing(machine.KindDispatched, saga.Running), 1)
	one, two, three := b.start(buried, "one", started(), hold), b.start(expired, "two", started(), hold), b.start(alive, "three", started(), hold)
	one.add(arms, keep)
	two.add(arms, keep)
	three.add(arms, keep)
	idle := b.start(buried, "idle", started(), hold)
	told := func(when string, want ...bool) {
		b.Helper()
		for i, l := range b.load(one.id, two.id, three.id, idle.id) {
			if l.Over != want[i] {
				b.Errorf("%s: the session that armed %s is over: %t", when, l.Instance.ID, l.Over)
			}
		}
	}
	told("all are live", false, false, false, false)
	b.bury(buried)
	told("one is buried", true, false, false, false)
	b.expire(expired)
	b.claim(alive, 10)
	told("one has expired, and a claim has buried it", true, true, false, false)
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

// AtRest returns works "that have ended, are in review or paused", and no others.
func atRest(b *bench) {
	t := b.session()
	ids := []saga.ID{id("unknown"), id("just started")}
	b.start(t, "just started", started(), hold)
	var want []saga.ID
	for _, s := range []saga.Status{saga.Running, saga.Retrying, saga.Compensating, saga.Review, saga.Paused, saga.Completed, saga.Compensated} {
		r := doing(machine.KindNoted, s)
		switch {
		case s == saga.Review:
			r = reviewed()
		case s.Live():
			r.Wait = time.Minute
		}
		c := b.start(t, string(s), started(), hold)
		c.add(r, release)
		if ids = append(ids, c.id); !s.Live() {
			want = append(want, c.id)
		}
	}
	got, err := b.AtRest(b.Context(), append(ids, ids...))
	if err != nil {
		b.Fatal(err)
	}
	for _, id := range ids {
		if is := slices.Contains(got, id); is != slices.Contains(want, id) {
			b.Errorf("%s is at rest: %t", id, is)
		}
	}
}

// A record that names a signal of another work, as no machine writes it, leaves it unread there
// (CORE-24).
func loadOthers(b *bench) {
	token := b.session()
	c, other := b.start(token, "w", started(), hold), b.start(token, "other", started(), hold)
	b.post(c.id, "one")
	b.post(other.id, "two")
	r := doing(machine.KindNoted, saga.Running)
	r.Signals = []int64{b.signals(other.id)[0].ID}
	c.add(r, keep)
	if got := b.load(other.id); len(got) != 1 || len(got[0].Signals) != 1 {
		b.Errorf("loaded %+v, want the signal that its own work has not read", got)
	}
}
