package storetest

import (
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var claimCases = []testCase{
	{name: "many signalled works", run: claimManySignalled},
	{name: "once each", run: claimRace},
}

// class releases a work in a class.
func class(c ledger.Class) *ledger.Schedule { return &ledger.Schedule{Class: c} }

// However many works in hand have an unread signal, Claim names each: those that are read late hide
// no other (core.md, D4).
func claimManySignalled(b *bench) {
	t := b.session()
	const n = 1010
	var batch []ledger.Entry
	for i := range n {
		batch = append(batch, b.fresh(t, order(i)).entry(started(), hold))
	}
	b.append(t, batch...)
	for i := range n {
		b.post(id(order(i)), "hello")
	}
	seen := map[string]bool{}
	for _, h := range b.claim(t, 1) {
		seen[h.ID.Work] = true
	}
	if len(seen) != n {
		b.Errorf("named %d works, want all %d that have an unread signal", len(seen), n)
	}
}

// given remembers which session was given which work.
type given struct {
	rooms map[string]int // what each claim says of them
	mu    sync.Mutex
	works map[saga.ID]machine.Token
}

// take claims for session t, a few works at a time, until nothing is left twice in a row.
func (g *given) take(b *bench, s Store, t machine.Token) {
	for empty := 0; empty < 2 && !b.Failed(); {
		got, err := s.Claim(b.Context(), t, ledger.Claim{Limit: 7, Known: known, Rooms: g.rooms})
		if err != nil {
			b.Errorf("claim: %v", err)
			return
		}
		if len(got.Instances) == 0 {
			empty++
		}
		g.note(b, t, got.Instances)
	}
}

func (g *given) note(b *bench, t machine.Token, heads []ledger.Instance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range heads {
		if first, twice := g.works[h.ID]; twice {
			b.Errorf("%s was given to %s and to %s", h.ID, first, t)
		}
		g.works[h.ID] = t
	}
}

// However many claim at once, from however many processes, a work is given to one.
func claimRace(b *bench) {
	const n, claimers = 200, 6
	t, dead := b.session(), b.session()
	var batch []ledger.Entry
	for i := range n {
		e := b.fresh(t, order(i)).entry(started(), release)
		if i%3 == 0 {
			e = b.fresh(dead, order(i)).entry(started(), hold)
		}
		batch = append(batch, e)
	}
	b.append(t, batch...)
	b.bury(dead)
	g := given{works: map[saga.ID]machine.Token{}}
	stores := []Store{b.Store, b.again()}
	var wg sync.WaitGroup
	for i := range claimers {
		me := b.session()
		wg.Go(func() { g.take(b, stores[i%2], me) })
	}
	wg.Wait()
	g.note(b, t, b.claim(t, n)) // a skipped lock may hide a work from one claim, never for good
	if len(g.works) != n {
		b.Errorf("%d works were given, want all %d", len(g.works), n)
	}
	for _, h := range b.list(ledger.Filter{Limit: n}) {
		if h.Session != g.works[h.ID] {
			b.Errorf("%s is held by %s, but was given to %s", h.ID, h.Session, g.works[h.ID])
		}
	}
}
