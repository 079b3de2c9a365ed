package storetest

import (
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
)

// Works stand in line "in the order of their class, and within one in that of their starting". The
// order in which they came to wait does not matter.
func waitingOrder(b *bench) {
	t := b.session()
	b.wait(t, books, class(ledger.ClassUnbegun), "unbegun 1", "unbegun 2")
	b.wait(t, books, class(ledger.ClassBegun), "begun 1", "begun 2")
	b.wait(t, books, class(ledger.ClassCompensating), "compensating 1", "compensating 2")
	b.wantRooms(t, 9, map[string]int{books: 3}, "compensating 1", "compensating 2", "begun 1")
	b.wantRooms(t, 9, map[string]int{books: 2}, "begun 2", "unbegun 1")
	b.wantRooms(t, 9, map[string]int{books: 2}, "unbegun 2")
}

// A destination has one line and one room, whatever sagas and versions stand in it.
func waitingDefinitions(b *bench) {
	t := b.session()
	wait := func(name, work string, version int, c ledger.Class) {
		r, w := started(), b.fresh(t, work)
		r.Version, w.id.Saga = version, name
		w.add(r, &ledger.Schedule{Hold: true, Class: c})
		b.giveBack(t, ledger.Return{Number: w.head, WaitsFor: books})
	}
	wait("a", "1", 1, ledger.ClassBegun)
	wait("b", "2", 1, ledger.ClassBegun)
	wait("a", "3", 2, ledger.ClassBegun)
	wait("a", "4", 1, ledger.ClassBegun)
	wait("b", "undo", 1, ledger.ClassCompensating)
	wait("b", "5", 1, ledger.ClassUnbegun)
	wait("a", "6", 2, ledger.ClassBegun)
	b.until(b.clock, b.clock())
	all := []ledger.Version{{Saga: "a", Version: 1}, {Saga: "a", Version: 2}, {Saga: "b", Version: 1}}
	for _, want := range [][]string{{"undo", "1"}, {"2", "3"}, {"4", "6"}, {"5"}} {
		got := works(b.claimAs(t, ledger.Claim{Limit: 9, Known: all, Rooms: map[string]int{books: 2}}))
		if !slices.Equal(got, want) {
			b.Errorf("with two places claimed %v, want %v", got, want)
		}
	}
}

// "What is to be undone goes before all else, whichever line it stands in", all of it before any
// that is in turn.
func waitingUndo(b *bench) {
	t := b.session()
	b.start(t, "free 1", started(), class(ledger.ClassBegun)) // for longer than the others
	b.start(t, "free 2", started(), class(ledger.ClassBegun))
	b.wait(t, books, class(ledger.ClassBegun), "b1", "b2")
	b.start(t, "undo free", started(), class(ledger.ClassCompensating))
	b.until(b.clock, b.clock())
	b.wait(t, mail, class(ledger.ClassCompensating), "undo 1", "undo 2", "undo 3")
	rooms := map[string]int{books: 9, mail: 2}
	b.wantRooms(t, 3, rooms, "undo free", "undo 1", "undo 2")
	b.wantRooms(t, 2, rooms, "undo 3", "free 1")
	b.wantRooms(t, 9, rooms, "free 2", "b1", "b2")
}

// "The lines take turns": those of each destination, and those that wait for nothing. What is to be
// undone counts as a turn of its line.
func waitingTurns(b *bench) {
	t := b.session()
	for i := range 6 {
		b.start(t, order(i), started(), class(ledger.ClassBegun))
	}
	b.until(b.clock, b.clock())
	b.wait(t, books, class(ledger.ClassUnbegun), "b1", "b2", "b3", "b4", "b5", "b6")
	b.wait(t, mail, class(ledger.ClassBegun), "m1", "m2", "m3", "m4", "m5", "m6")
	b.wait(t, mail, class(ledger.ClassCompensating), "undo")
	plenty := map[string]int{books: 100, mail: 100}
	got := b.claimRooms(t, 6, plenty)
	if slices.Sort(got); !slices.Equal(got, []string{"b1", "b2", "m1", order(0), order(1), "undo"}) {
		b.Errorf("of six places %v were given, want what is to be undone, and two to each line", got)
	}
	b.wantRooms(t, 1, plenty, order(2)) // the longest due of the heads of the lines
	got = b.claimRooms(t, 6, map[string]int{books: 1, mail: 100})
	if slices.Sort(got); !slices.Equal(got, []string{"b3", "m2", "m3", order(3), order(4), order(5)}) {
		b.Errorf("of six places %v were given, want one for which there is room, and the others in turn", got)
	}
	got = b.claimRooms(t, 100, plenty)
	if slices.Sort(got); !slices.Equal(got, []string{"b4", "b5", "b6", "m4", "m5", "m6"}) {
		b.Errorf("of a hundred places %v were given, want all that are left", got)
	}
}

// With one place at a time no line waits for ever: "those that are passed over become the longest
// due".
func waitingAlone(b *bench) {
	t := b.session()
	b.wait(t, books, release, "waits 1")
	b.start(t, "free 1", started(), release)
	b.until(b.clock, b.clock())
	b.wait(t, books, release, "waits 2")
	b.start(t, "free 2", started(), release)
	for _, want := range []string{"waits 1", "free 1", "waits 2", "free 2"} {
		b.wantRooms(t, 1, map[string]int{books: 100}, want)
	}
}

// Of the places "up to this many go first to works that have not begun and wait for no
// destination".
func waitingFresh(b *bench) {
	t := b.session()
	b.wait(t, books, class(ledger.ClassUnbegun), "waits 1", "waits 2")
	b.wait(t, books, class(ledger.ClassCompensating), "undo")
	b.start(t, "begun", started(), class(ledger.ClassBegun))
	b.start(t, "unbegun 1", started(), class(ledger.ClassUnbegun))
	b.start(t, "unbegun 2", started(), class(ledger.ClassUnbegun))
	got := works(b.claimAs(t, ledger.Claim{Limit: 3, Fresh: 2, Known: known, Rooms: map[string]int{books: 9}}))
	if slices.Sort(got); !slices.Equal(got, []string{"unbegun 1", "unbegun 2", "undo"}) {
		b.Errorf("with two places for what has not begun %v were given", got)
	}
}
