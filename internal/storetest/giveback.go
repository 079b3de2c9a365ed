package storetest

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var giveBackCases = []testCase{
	{name: "stray works", run: strayWorks, breaks: broken{"stray-named": func(s Store) Store { return silent{s} }}},
	{name: "many stray works", run: strayMany},
	{name: "due when the return says", run: giveBackDue},
	{name: "only its own", run: giveBackOwn, breaks: broken{"own-returned": func(s Store) Store { return stranger{s} }}},
	{name: "released ones earlier", run: giveBackEarlier},
	{name: "works at rest", run: giveBackAtRest},
	{name: "unread signals", run: giveBackSignals},
	{name: "a claim whose answer was lost", run: giveBackLost},
}

// stray renews and returns the works that are the session's on record and not in hand.
func (b *bench) stray(t machine.Token, inHand ...int64) []string {
	b.Helper()
	lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour, InHand: inHand})
	if err != nil {
		b.Fatalf("renew: %v", err)
	}
	names := works(lease.Stray)
	slices.Sort(names)
	return names
}

func (b *bench) giveBack(t machine.Token, works ...ledger.Return) {
	b.Helper()
	if err := b.GiveBack(b.Context(), t, works); err != nil {
		b.Fatalf("give back %v: %v", works, err)
	}
}

// A renewal answers "works that the session holds on record and that the renewal did not say it has
// in hand".
func strayWorks(b *bench) {
	t, other := b.session(), b.session()
	one, two := b.start(t, "one", started(), hold), b.start(t, "two", started(), hold)
	b.start(other, "theirs", started(), hold)
	b.start(t, "released", started(), release)
	for _, c := range []struct {
		inHand []int64
		want   []string
	}{
		{nil, []string{"one", "two"}},
		{[]int64{one.head}, []string{"two"}},
		{[]int64{two.head, one.head, two.head, 1 << 40}, nil},
	} {
		if got := b.stray(t, c.inHand...); !slices.Equal(got, c.want) {
			b.Errorf("with %v in hand %v are stray, want %v", c.inHand, got, c.want)
		}
	}
	lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour, InHand: []int64{two.head}})
	if err != nil || len(lease.Stray) != 1 {
		b.Fatalf("%+v, %v", lease, err)
	}
	if diff := headDiff(lease.Stray[0], one.now()); diff != "" {
		b.Errorf("the stray head:%s", diff)
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

// "A live work becomes due at the time the return says", zero is now. Giving back twice changes
// nothing.
func giveBackDue(b *bench) {
	t, other := b.session(), b.session()
	now, later := b.start(t, "now", started(), hold), b.start(t, "later", started(), hold)
	before, at := b.clock(), b.clock().Add(time.Hour)
	for range 2 {
		b.giveBack(t, ledger.Return{Number: later.head, Due: at}, ledger.Return{Number: now.head})
		if h := later.now(); h.Session != 0 || !h.Due.Equal(at) {
			b.Errorf("given back until %v: %+v", at, h)
		}
	}
	if h := now.now(); h.Session != 0 || h.Due.Before(before) || h.Due.After(b.clock()) {
		b.Errorf("given back now, after %v: %+v", before, h)
	}
	if got := works(b.claim(other, 10)); !slices.Equal(got, []string{"now"}) {
		b.Errorf("claimed %v, want what is due", got)
	}
	past := before.Add(-time.Hour)
	b.giveBack(other, ledger.Return{Number: now.head, Due: past})
	if h := now.now(); !h.Due.Equal(past) {
		b.Errorf("given back with the place it had, %v: %+v", past, h)
	}
	now.add(arming(doing(machine.KindDispatched, saga.Running), 1), hold) // the chain is as it was
}

// What it does not hold and what is due earlier is left alone: of another session, released, ended,
// unknown.
func giveBackOwn(b *bench) {
	t, other := b.session(), b.session()
	var back []ledger.Return
	for _, c := range []*chain{
		b.start(other, "theirs", started(), hold), b.start(t, "released", due(started(), time.Hour), release),
		b.start(t, "ended", func() machine.Record { r := started(); r.Status = saga.Completed; return r }(), release),
	} {
		back = append(back, ledger.Return{Number: c.head, Due: b.clock().Add(2 * time.Hour)})
	}
	before := b.list(ledger.Filter{})
	b.giveBack(t, append(back, ledger.Return{Number: 1 << 40})...)
	b.giveBack(t)
	for i, h := range b.list(ledger.Filter{}) {
		if diff := headDiff(h, before[i]); diff != "" {
			b.Errorf("%s was not the session's and changed:%s", h.ID, diff)
		}
	}
}

// "A live work that is released already becomes due then when it would be due later", whichever
// session asks for it. "Session 0 holds none".
func giveBackEarlier(b *bench) {
	t := b.session()
	soon, now := b.start(t, "soon", due(started(), time.Hour), release), b.start(t, "now", due(started(), time.Hour), release)
	parked, theirs := b.start(t, "parked", started(), hold), b.start(t, "theirs", started(), hold)
	parked.add(reviewed(), release)
	before, at := b.clock(), b.clock().Add(time.Minute)
	for i, by := range []machine.Token{b.session(), 0} {
		b.giveBack(by, ledger.Return{Number: parked.head}, ledger.Return{Number: theirs.head}, ledger.Return{Number: now.head},
			ledger.Return{Number: soon.head, Due: at.Add(time.Duration(i) * time.Second)})
		if h := soon.now(); h.Session != 0 || !h.Due.Equal(at) {
			b.Errorf("wanted by %v: %+v", at, h)
		}
	}
	if h := now.now(); h.Due.Before(before) || h.Due.After(b.clock()) {
		b.Errorf("wanted now, after %v: %+v", before, h)
	}
	if h := parked.now(); !h.Due.IsZero() {
		b.Errorf("in review and due: %+v", h)
	}
	if h := theirs.now(); h.Session != t {
		b.Errorf("taken from its holder: %+v", h)
	}
	if got := works(b.claim(b.session(), 10)); !slices.Equal(got, []string{"now"}) {
		b.Errorf("claimed %v, want what is wanted now", got)
	}
}

// A work "that is parked or has ended is due only for an unread signal".
func giveBackAtRest(b *bench) {
	t := b.session()
	for name, r := range map[string]machine.Record{
		"review": reviewed(), "paused": doing(machine.KindPaused, saga.Paused), "ended": doing(machine.KindDone, saga.Completed),
	} {
		c := b.start(t, name, started(), hold)
		c.add(r, release)
		b.post(c.id, "k")
		if got := works(b.claim(t, 1)); !slices.Equal(got, []string{name}) {
			b.Fatalf("claimed %v, want %s for its signal", got, name)
		}
		noted := r
		noted.Kind, noted.Signals = machine.KindNoted, nil
		c.add(b.consuming(c.id, noted, 0), keep)
		b.giveBack(t, ledger.Return{Number: c.head, Due: b.clock().Add(time.Hour)})
		if h := c.now(); h.Session != 0 || !h.Due.IsZero() {
			b.Errorf("%s was given back: %+v, want released and never due", name, h)
		}
	}
}

// A work with an unread signal is due at once, whatever the return says.
func giveBackSignals(b *bench) {
	t := b.session()
	live, parked := b.start(t, "live", started(), hold), b.start(t, "parked", started(), hold)
	b.post(live.id, "k")
	parked.add(reviewed(), release)
	b.post(parked.id, "k")
	b.claim(t, 10)
	at := b.clock().Add(time.Hour)
	b.giveBack(t, ledger.Return{Number: live.head, Due: at}, ledger.Return{Number: parked.head, Due: at})
	got := works(b.claim(b.session(), 10))
	if slices.Sort(got); !slices.Equal(got, []string{"live", "parked"}) {
		b.Errorf("claimed %v, want both: their signals are unread", got)
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
