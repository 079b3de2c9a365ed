package storetest

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

var catchUpCases = []testCase{
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
