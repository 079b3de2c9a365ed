package storetest

import (
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
)

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
