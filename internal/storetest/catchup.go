package storetest

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var catchUpCases = []testCase{
	{name: "what was ahead", run: catchUpAhead, needs: hasClock, breaks: broken{"ahead-told": func(s Store) Store { return unaware{s} }}},
	{name: "many works", run: catchUpMany, needs: hasClock},
}

// hasClock reports whether the clock of a ledger can be set.
func hasClock(h Harness) bool { return h.SetClock != nil }

// ahead is the time that the ledger's clock goes back from, by a day.
var ahead = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// setClock sets the ledger's clock.
func (b *bench) setClock(at time.Time) {
	b.Helper()
	b.harness.SetClock(b.T, b.raw, at)
}

// What is ahead of a clock that has gone back by a day (T5, CORE-18) is named, and
// [ledger.Ledger.CatchUp] makes works due and lets the lease of a session that died meanwhile end
// in its own time. What waits for a reason stays as it is.
func catchUpAhead(b *bench) {
	now := ahead.Add(-24 * time.Hour)
	b.setClock(now)
	b.start(0, "patient", due(started(), 48*time.Hour), release)
	b.setClock(ahead)
	lease, err := b.OpenSession(b.Context(), time.Minute, "dies", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.start(lease.Token, "held", started(), hold)
	late := b.start(lease.Token, "late", due(started(), time.Hour), release)
	waits := b.start(lease.Token, "waits", started(), hold)
	b.giveBack(lease.Token, ledger.Return{Number: waits.head, Due: ahead, WaitsFor: books})
	b.setClock(now)
	live, err := b.OpenSession(b.Context(), time.Hour, "lives", known)
	if err != nil {
		b.Fatal(err)
	}
	if got := b.claim(live.Token, 10); len(got) != 0 {
		b.Fatalf("claimed %v", works(got))
	}
	o := b.overview()
	if len(o.Ahead.Works) != 2 || o.Ahead.Works[0].ID != late.id || o.Ahead.Works[1].ID != waits.id || len(o.Ahead.Sessions) != 1 || o.Ahead.Sessions[0].Token != lease.Token {
		b.Errorf("ahead of %v are %+v, want the works and the session of a day later", o.At, o.Ahead)
	}
	if works, sessions, err := b.CatchUp(b.Context()); err != nil || works != 2 || sessions != 1 {
		b.Errorf("caught up with %d works and %d sessions, %v, want two works and the session", works, sessions, err)
	}
	if got := works(b.claim(live.Token, 10)); len(got) != 1 || got[0] != "late" {
		b.Errorf("claimed %v, want what was ahead", got)
	}
	if got := b.claimRooms(live.Token, 10, map[string]int{books: 1}); len(got) != 1 || got[0] != "waits" {
		b.Errorf("claimed %v with room, want what waited and was ahead", got)
	}
	b.setClock(now.Add(time.Minute + b.Limits().Skew))
	if got := works(b.claim(live.Token, 10)); len(got) != 1 || got[0] != "held" {
		b.Errorf("claimed %v a minute later, want what the dead session held", got)
	}
	if o := b.overview(); len(o.Ahead.Works)+len(o.Ahead.Sessions) != 0 {
		b.Errorf("still ahead are %+v", o.Ahead)
	}
	if at := late.view(live.Token).add(doing(machine.KindNoted, saga.Completed), release).At; at.Before(ahead) {
		b.Errorf("the chain went back to %v", at)
	}
}

// What is named of works ahead of the clock is "at most [ledger.MaxAhead]", wherever in the order
// of claims they wait, and all of them move.
func catchUpMany(b *bench) {
	now := ahead.Add(-24 * time.Hour)
	const each = ledger.MaxAhead/2 + 10
	place := func(name string, version int, c ledger.Class) (works []ledger.Entry) {
		for i := range each {
			r := due(started(), time.Hour)
			r.Version = version
			work := b.fresh(0, fmt.Sprint(name, i))
			works = append(works, work.entry(r, class(c)))
		}
		return works
	}
	named := func(works int) {
		b.Helper()
		b.setClock(now)
		if o := b.overview(); len(o.Ahead.Works) != min(works, ledger.MaxAhead) {
			b.Errorf("of %d works ahead of the clock %d are named, want at most %d", works, len(o.Ahead.Works), ledger.MaxAhead)
		}
		b.setClock(ahead)
	}
	b.setClock(ahead)
	for i, works := range [][]ledger.Entry{
		place("begun", 1, ledger.ClassBegun), place("unbegun", 1, ledger.ClassUnbegun), place("version", 2, ledger.ClassBegun),
	} {
		b.append(0, works...)
		named((i + 1) * each)
	}
	b.setClock(now)
	if works, _, err := b.CatchUp(b.Context()); err != nil || works != 3*each {
		b.Errorf("caught up with %d works, %v, want all %d", works, err, 3*each)
	}
	named(0)
}
