package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// CatchesUp tests what becomes of works and leases after the ledger's clock has gone back by a day (T5, CORE-18): set sets
// the clock of s, an empty ledger. They are named, and [ledger.Ledger.CatchUp] makes the works due and lets the lease of
// a session that died meanwhile end in its own time. What waits for a reason stays as it is.
func CatchesUp(t *testing.T, s Store, set func(time.Time)) {
	t.Helper()
	b := &bench{T: t, Store: s, raw: s}
	ahead := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	now := ahead.Add(-24 * time.Hour)
	set(now)
	b.start(0, "patient", due(started(), 48*time.Hour), release)
	set(ahead)
	lease, err := b.OpenSession(b.Context(), time.Minute, "dies", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.start(lease.Token, "held", started(), hold)
	late := b.start(lease.Token, "late", due(started(), time.Hour), release)
	waits := b.start(lease.Token, "waits", started(), hold)
	b.giveBack(lease.Token, ledger.Return{Number: waits.head, Due: ahead, WaitsFor: books})
	set(now)
	live, err := b.OpenSession(b.Context(), time.Hour, "lives", known)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.claim(live.Token, 10); len(got) != 0 {
		t.Fatalf("claimed %v", works(got))
	}
	o := b.overview()
	if len(o.Ahead.Works) != 2 || o.Ahead.Works[0].ID != late.id || o.Ahead.Works[1].ID != waits.id || len(o.Ahead.Sessions) != 1 || o.Ahead.Sessions[0].Token != lease.Token {
		t.Errorf("ahead of %v are %+v, want the works and the session of a day later", o.At, o.Ahead)
	}
	if works, sessions, err := b.CatchUp(b.Context()); err != nil || works != 2 || sessions != 1 {
		t.Errorf("caught up with %d works and %d sessions, %v, want two works and the session", works, sessions, err)
	}
	if got := works(b.claim(live.Token, 10)); len(got) != 1 || got[0] != "late" {
		t.Errorf("claimed %v, want what was ahead", got)
	}
	if got := b.claimRooms(live.Token, 10, map[string]int{books: 1}); len(got) != 1 || got[0] != "waits" {
		t.Errorf("claimed %v with room, want what waited and was ahead", got)
	}
	set(now.Add(time.Minute))
	if got := works(b.claim(live.Token, 10)); len(got) != 1 || got[0] != "held" {
		t.Errorf("claimed %v a minute later, want what the dead session held", got)
	}
	if o := b.overview(); len(o.Ahead.Works)+len(o.Ahead.Sessions) != 0 {
		t.Errorf("still ahead are %+v", o.Ahead)
	}
	if _, err := ledger.Check(b.Context(), s, &ledger.CheckOptions{ChainsOnly: true}); err != nil {
		t.Error(err)
	}
	if at := late.view(live.Token).add(doing(saga.KindNoted, saga.Completed), release).At; at.Before(ahead) {
		t.Errorf("the chain went back to %v", at)
	}
	catchesUpWithMany(b, set, ahead)
}

// catchesUpWithMany tests that what is named of works ahead of the clock is "at most [ledger.MaxAhead]", wherever in the
// order of claims they wait, and that all of them move.
func catchesUpWithMany(b *bench, set func(time.Time), ahead time.Time) {
	b.Helper()
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
		set(now)
		if o := b.overview(); len(o.Ahead.Works) != min(works, ledger.MaxAhead) {
			b.Errorf("of %d works ahead of the clock %d are named, want at most %d", works, len(o.Ahead.Works), ledger.MaxAhead)
		}
		set(ahead)
	}
	set(ahead)
	for i, works := range [][]ledger.Entry{
		place("begun", 1, ledger.ClassBegun), place("unbegun", 1, ledger.ClassUnbegun), place("version", 2, ledger.ClassBegun),
	} {
		b.append(0, works...)
		named((i + 1) * each)
	}
	set(now)
	if works, _, err := b.CatchUp(b.Context()); err != nil || works != 3*each {
		b.Errorf("caught up with %d works, %v, want all %d", works, err, 3*each)
	}
	named(0)
}
