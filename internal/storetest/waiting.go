package storetest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var waitingCases = []testCase{
	{name: "only where there is room", run: waitingRoom, breaks: broken{"room-asked": func(s Store) Store { return crowding{s} }}},
	{name: "in the order of starting", run: waitingOrder, breaks: broken{"start-order": func(s Store) Store { return newcomer{s} }}},
	{name: "one line for all definitions", run: waitingDefinitions},
	{name: "what is to be undone goes first", run: waitingUndo},
	{name: "lines take turns", run: waitingTurns, breaks: broken{"turns-taken": func(s Store) Store { return pushing{s} }}},
	{name: "one place goes to the longest due", run: waitingAlone},
	{name: "places for works that have not begun", run: waitingFresh},
	{name: "not before its time", run: waitingDue},
	{name: "unknown definitions", run: waitingUnknown},
	{name: "a signal ends it", run: waitingSignal, breaks: broken{"wait-ends": func(s Store) Store { return patient{s} }}},
	{name: "a given back signal ends it", run: waitingSignalled},
	{name: "a record ends it", run: waitingRecord},
	{name: "given back again", run: waitingReturned, breaks: broken{"line-kept": func(s Store) Store { return caller{s} }}},
	{name: "at rest", run: waitingAtRest},
	{name: "deadlines", run: waitingDeadlines},
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

// "Those that wait for one that is not named, or has no room, are left alone", and of the others no
// more are given than there is room for. What is taken waits for nothing.
func waitingRoom(b *bench) {
	t, other := b.session(), b.session()
	waiting := b.wait(t, books, release, "b1", "b2", "b3")
	b.wait(t, mail, release, "m1", "m2")
	for _, rooms := range []map[string]int{nil, {books: 0}, {books: -1, mail: 0}, {"": 9, "book": 9, "books2": 9, "Books": 9}} {
		b.wantRooms(other, 10, rooms)
	}
	before := waiting[0].now()
	if before.WaitsFor != books || before.Due.IsZero() || before.Session != 0 {
		b.Fatalf("the head of what waits is %+v", before)
	}
	got := b.claimAs(other, ledger.Claim{Limit: 10, Known: known, Rooms: map[string]int{books: 1}})
	if len(got) != 1 || got[0].ID != waiting[0].id {
		b.Fatalf("claimed %v, want the first that waits for %s", works(got), books)
	}
	want := before
	want.Session, want.Due, want.WaitsFor = other, time.Time{}, ""
	for what, h := range map[string]ledger.Instance{"as Claim returns it": got[0], "as it is stored": waiting[0].now()} {
		if diff := headDiff(h, want); diff != "" {
			b.Errorf("the claimed head, %s:%s", what, diff)
		}
	}
	b.wantRooms(other, 1, map[string]int{books: 9}, "b2")
	b.wantRooms(other, 0, map[string]int{mail: 9})
	b.wantRooms(other, 10, map[string]int{books: 9, mail: 1}, "b3", "m1")
	waiting[0].view(other).add(arming(doing(machine.KindDispatched, saga.Running), 1), hold) // the chain is as it was
}

// One that waits for a destination is due at its time, too: it is claimed when both are there, and
// those behind it go on.
func waitingDue(b *bench) {
	t := b.session()
	c := b.start(t, "later", started(), hold)
	b.giveBack(t, ledger.Return{Number: c.head, Due: b.clock().Add(time.Hour), WaitsFor: books})
	b.wait(t, books, release, "now")
	b.wantRooms(t, 9, map[string]int{books: 1}, "now")
	b.wantRooms(t, 9, map[string]int{books: 1})
}

// Works of definitions that a process does not know are left alone, also where there is room, and
// take no place of others.
func waitingUnknown(b *bench) {
	t := b.session()
	for i := range 3 {
		c := b.fresh(t, order(i))
		c.id.Saga = "order-to-crm"
		c.add(started(), hold)
		b.giveBack(t, ledger.Return{Number: c.head, WaitsFor: books})
	}
	newer := started()
	newer.Version = 2
	c := b.start(t, "of a newer version", newer, hold)
	b.giveBack(t, ledger.Return{Number: c.head, WaitsFor: books})
	b.wait(t, books, release, "known")
	b.wantRooms(t, 9, map[string]int{books: 2}, "known")
	got := works(b.claimAs(t, ledger.Claim{Limit: 9, Rooms: map[string]int{books: 9},
		Known: []ledger.Version{{Saga: theSaga, Version: 2}, {Saga: "order-to-crm", Version: 1}}}))
	if slices.Sort(got); !slices.Equal(got, []string{"of a newer version", order(0), order(1), order(2)}) {
		b.Errorf("claimed %v, want the others", got)
	}
}

// "One that waits for a destination waits for it no more: a signal reaches a process whatever the
// destination's state", also one that was to wait for an hour more. A signal that it has received
// already changes nothing.
func waitingSignal(b *bench) {
	t, other := b.session(), b.session()
	now := b.wait(t, books, release, "now")[0]
	later := b.start(t, "later", started(), hold)
	b.giveBack(t, ledger.Return{Number: later.head, Due: b.clock().Add(time.Hour), WaitsFor: books})
	b.post(now.id, "hello")
	b.post(later.id, "hello")
	for _, c := range []*chain{now, later} {
		if h := c.now(); h.WaitsFor != "" || h.Due.IsZero() || h.Due.After(b.clock()) {
			b.Errorf("%s has a signal: %+v", c.id, h)
		}
	}
	if got := works(b.claim(other, 9)); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"later", "now"}) {
		b.Errorf("claimed %v, want both: they have a signal", got)
	}
	c := now.view(other)
	c.add(b.consuming(now.id, doing(machine.KindNoted, saga.Running), 0), keep)
	b.giveBack(other, ledger.Return{Number: c.head, WaitsFor: books})
	b.post(c.id, "hello") // again
	if h := c.now(); h.WaitsFor != books {
		b.Errorf("a signal that came before: %+v, want waiting as before", h)
	}
}

// "With an unread signal it is due at once and waits for nothing": one that came while the work was
// held.
func waitingSignalled(b *bench) {
	t, other := b.session(), b.session()
	held := b.start(t, "held", started(), hold)
	b.post(held.id, "hello")
	b.giveBack(t, ledger.Return{Number: held.head, Due: b.clock().Add(time.Hour), WaitsFor: books})
	if h := held.now(); h.WaitsFor != "" || h.Session != 0 || h.Due.After(b.clock()) {
		b.Errorf("given back with an unread signal: %+v", h)
	}
	if got := works(b.claim(other, 9)); !slices.Equal(got, []string{"held"}) {
		b.Errorf("claimed %v, want the work that has a signal", got)
	}
}

// A record with a schedule releases a work until its time, and for nothing else; a record without
// one leaves the wait.
func waitingRecord(b *bench) {
	t := b.session()
	b.wait(t, books, release, "w")
	c := b.wait(t, books, release, "released")[0]
	c.add(doing(machine.KindNoted, saga.Running), keep)
	snapshot := doing(machine.KindNoted, saga.Running)
	snapshot.Snapshot = []byte(`{}`)
	c.add(snapshot, keep)
	if h := c.now(); h.WaitsFor != books || h.Base != 3 {
		b.Errorf("after a record without a schedule: %+v", h)
	}
	c.add(doing(machine.KindNoted, saga.Running), release)
	if h := c.now(); h.WaitsFor != "" || h.Due.IsZero() {
		b.Errorf("after a record that released it: %+v", h)
	}
	for name, end := range map[string]struct {
		r machine.Record
		s *ledger.Schedule
	}{
		"held": {doing(machine.KindNoted, saga.Running), hold}, "parked": {reviewed(), release},
		"ended": {doing(machine.KindDone, saga.Completed), release},
	} {
		c := b.wait(t, books, release, name)[0]
		c.add(end.r, end.s)
		if h := c.now(); h.WaitsFor != "" || !h.Due.IsZero() {
			b.Errorf("%s: %+v", name, h)
		}
	}
	b.wantRooms(t, 9, map[string]int{books: 9}, "w", "released")
}

// A released work "becomes due at that time when it would be due later, and waits for what it
// waited for before, whatever the return says". So a return whose answer was lost changes nothing
// when it is given again.
func waitingReturned(b *bench) {
	t, other := b.session(), b.session()
	c, free := b.start(t, "waits", started(), hold), b.start(t, "free", due(started(), time.Hour), release)
	at := b.clock().Add(time.Hour)
	l := ledgertest.Faulty(b.Store, ledgertest.LoseAnswer(1, ledgertest.GiveBack))
	back := []ledger.Return{{Number: c.head, Due: at, WaitsFor: books}}
	b.wantError("give back", l.GiveBack(b.Context(), t, back), ledgertest.ErrInjected)
	for range 2 {
		if h := c.now(); h.WaitsFor != books || !h.Due.Equal(at) || h.Session != 0 {
			b.Errorf("given back: %+v", h)
		}
		b.giveBack(t, back...)
	}
	for _, by := range []machine.Token{other, 0} {
		for _, destination := range []string{"", mail} {
			at = at.Add(-time.Minute)
			b.giveBack(by, ledger.Return{Number: c.head, Due: at, WaitsFor: destination}, ledger.Return{Number: free.head, Due: at, WaitsFor: destination})
			if h := c.now(); h.WaitsFor != books || !h.Due.Equal(at) {
				b.Errorf("wanted by %v, with %q: %+v, want due then and waiting as before", at, destination, h)
			}
			if h := free.now(); h.WaitsFor != "" || !h.Due.Equal(at) {
				b.Errorf("wanted by %v, with %q: %+v, want due then and waiting for nothing", at, destination, h)
			}
		}
	}
	b.giveBack(other, ledger.Return{Number: c.head})
	b.wantRooms(other, 9, map[string]int{mail: 9})
	b.wantRooms(other, 9, map[string]int{books: 9}, "waits")
}

// What is parked or has ended waits for no destination, as it is not due either.
func waitingAtRest(b *bench) {
	t := b.session()
	for name, r := range map[string]machine.Record{
		"review": reviewed(), "paused": doing(machine.KindParked, saga.Paused), "ended": doing(machine.KindDone, saga.Completed),
	} {
		c := b.start(t, name, started(), hold)
		c.add(r, release)
		b.post(c.id, "k")
		b.claim(t, 9)
		noted := r
		noted.Kind = machine.KindNoted
		c.add(b.consuming(c.id, noted, 0), keep)
		b.giveBack(t, ledger.Return{Number: c.head, WaitsFor: books})
		if h := c.now(); h.Session != 0 || h.WaitsFor != "" || !h.Due.IsZero() {
			b.Errorf("%s was given back: %+v, want released, never due, and waiting for nothing", name, h)
		}
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

// "What waits for a destination is due when its deadline has passed, whatever room there is: a renewal sees to
// it", once. What has no deadline, or one that is still to come, stays in its line.
func waitingDeadlines(b *bench) {
	t := b.session()
	in := func(d time.Duration) machine.Record {
		r := started()
		r.Limit = d
		return r
	}
	begin := func(name string, r machine.Record) *chain {
		c := b.start(t, name, r, hold)
		b.giveBack(t, ledger.Return{Number: c.head, WaitsFor: books})
		return c
	}
	passed, later := begin("passed", in(time.Millisecond)), begin("later", in(time.Hour))
	begin("none", started())
	missed := b.start(t, "missed", in(time.Millisecond), hold)
	over := doing(machine.KindOverdue, saga.Review)
	over.Reason = saga.ReasonDeadline
	missed.add(over, release)
	if h := later.now(); h.Deadline.IsZero() {
		b.Errorf("the head does not show its deadline: %+v", h)
	}
	b.until(b.clock, b.clock().Add(2*time.Millisecond))
	if _, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour}); err != nil {
		b.Fatal(err)
	}
	if h := passed.now(); h.WaitsFor != "" || h.Due.IsZero() {
		b.Errorf("its deadline has passed, and its head is %+v", h)
	}
	b.wantRooms(t, 9, nil, "passed")
	if h := missed.now(); !h.Deadline.IsZero() {
		b.Errorf("that it was missed is on record, and its head is %+v", h)
	}
}
