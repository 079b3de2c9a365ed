package storetest

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var waitingCases = []testCase{
	{name: "lines take turns", run: waitingTurns, breaks: broken{"turns-taken": func(s Store) Store { return pushing{s} }}},
	{name: "names", run: waitingNames},
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

// claimRooms claims as a process that has room at destinations.
func (b *bench) claimRooms(t machine.Token, limit int, rooms map[string]int) []string {
	b.Helper()
	return works(b.claimAs(t, ledger.Claim{Limit: limit, Known: known, Rooms: rooms}))
}

func (b *bench) wantRooms(t machine.Token, limit int, rooms map[string]int, want ...string) {
	b.Helper()
	if got := b.claimRooms(t, limit, rooms); !slices.Equal(got, want) {
		b.Errorf("%d with rooms %v: claimed %v, want %v", limit, rooms, got, want)
	}
}

// A name is any text of at most [ledger.MaxText] bytes, given back as it is. One that cannot be
// stored is refused, "and nothing is given back".
func waitingNames(b *bench) {
	t := b.session()
	good := []string{"ö \"x\" \\ '", " ", "a\nb", strings.Repeat("x", ledger.MaxText)}
	rooms := map[string]int{"a\x00b": 9, "\xff": 9, strings.Repeat("y", ledger.MaxText+1): 9}
	for i, name := range good {
		if c := b.wait(t, name, release, order(i))[0]; c.now().WaitsFor != name {
			b.Errorf("waits for %q, want %q", c.now().WaitsFor, name)
		}
		rooms[name] = 1
	}
	held := b.start(t, "held", started(), hold)
	fine := b.start(t, "fine", started(), hold)
	for _, bad := range []string{"a\x00b", "\xff", strings.Repeat("x", ledger.MaxText+1)} {
		err := b.GiveBack(b.Context(), t, []ledger.Return{{Number: fine.head}, {Number: held.head, WaitsFor: bad}})
		b.wantError("give back for a name that cannot be stored", err, ledger.ErrInvalid)
	}
	if fine.now().Session != t || held.now().Session != t {
		b.Error("works were given back in a call that was refused")
	}
	if got := b.claimRooms(t, 9, rooms); len(got) != len(good) {
		b.Errorf("claimed %v, want the %d that wait", got, len(good))
	}
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
