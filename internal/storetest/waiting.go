package storetest

import (
	"maps"
	"slices"
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var waitingCases = []testCase{
	{name: "once each", run: waitingRace},
}

// The destinations of the suite.
const (
	books = "books"
	mail  = "mail"
)

// wait makes instances wait for a destination: started one after the other, and given back from the
// last to the first, so that the order in which they came to wait is not the order of their
// starting.
func (b *bench) wait(t machine.Token, destination string, s *ledger.Schedule, names ...string) (chains []*chain) {
	b.Helper()
	held := *s
	held.Hold = true
	for _, name := range names {
		chains = append(chains, b.start(t, name, started(), &held))
	}
	for _, c := range slices.Backward(chains) {
		b.until(b.clock, b.clock())
		b.giveBack(t, ledger.Return{Number: c.head, WaitsFor: destination})
	}
	b.until(b.clock, b.clock())
	return chains
}

// However many claim at once, from however many processes, one that waits is given to one, and none
// is passed over for good.
func waitingRace(b *bench) {
	const n, claimers = 120, 6
	t := b.session()
	var back []ledger.Return
	for i := range n {
		c := b.start(t, order(i), started(), hold)
		back = append(back, ledger.Return{Number: c.head, WaitsFor: []string{books, mail, ""}[i%3]})
	}
	b.giveBack(t, back...)
	rooms := map[string]int{books: 5, mail: 2}
	g := given{works: map[saga.ID]machine.Token{}, rooms: rooms}
	stores := []Store{b.Store, b.again()}
	var wg sync.WaitGroup
	for i := range claimers {
		me := b.session()
		wg.Go(func() { g.take(b, stores[i%2], me) })
	}
	wg.Wait()
	all := maps.Clone(rooms)
	for name := range all {
		all[name] = n
	}
	g.note(b, t, b.claimAs(t, ledger.Claim{Limit: n, Known: known, Rooms: all}))
	if len(g.works) != n {
		b.Errorf("%d works were given, want all %d", len(g.works), n)
	}
}
