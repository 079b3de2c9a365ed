package intake_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/spin"
)

// The model of asking the source of truth. The head of fetch.pml says what is modelled and what
// each switch means.
var fetching = spin.Model{
	File: "fetch.pml",
	Scenes: []spin.Scene{
		{Name: "versions", Full: "-DCHANGES=3 -DCOPIES=0"},
		{Name: "no versions", Switches: "-DNOVERSION", Full: "-DNOVERSION -DCHANGES=3"},
		{Name: "no copies, more crashes", Switches: "-DCOPIES=0 -DCRASHES=2", Full: "-DCRASHES=2 -DEARLY=2"},
		{Name: "no copies, hints without end", Switches: "-DCOPIES=0 -DHASTY=1", Full: "-DHASTY=2"},
		{Name: "three changes, no faults", Switches: "-DCHANGES=3 -DCOPIES=0 -DCRASHES=0 -DEARLY=0", Full: "-DCHANGES=3 -DCOPIES=0 -DCRASHES=0 -DHASTY=1"},
	},
	Mutants: []spin.Mutant{
		{Name: "LATETICKET", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "STAMPNOW", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "NOBEHIND", Scene: "-DCOPIES=0 -DHASTY=1", Breaks: "cleanIsCurrent"},
		{Name: "NOSECOND", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "EARLYLOOK", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "FORGETHINT", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "SAMETICKET", Scene: "-DNOVERSION -DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "LATELOOK", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "UNCOUNTED", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "STALENAME", Scene: "-DCHANGES=3 -DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "ATONCE", Scene: "-DCOPIES=0", Breaks: "neverBack"},
		{Name: "NOTHIRD", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "YOUNG", Scene: "-DCOPIES=0", Breaks: "neverBack"},
		{Name: "DROPLOOK", Scene: "-DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "ONESIGHT", Scene: "-DCOPIES=0", Breaks: "neverBack"},
		{Name: "NOFENCE", Scene: "-DNOVERSION -DCOPIES=0", Breaks: "cleanIsCurrent"},
		{Name: "KEEPLEASE", Scene: "-DCOPIES=0", Breaks: "endsClean"},
		{Name: "LASTWINS", Scene: "-DCOPIES=0", Breaks: "neverBack"},
	},
}

// Rule: an entry that is clean is not older than anything that was heard, whatever crashed, and
// becomes clean; then what it says of the object is what the source says, be it there or gone.
func TestModelHolds(t *testing.T) {
	spin.Asked(t)
	t.Parallel()
	fetching.Holds(t)
}

// Rule: no rule of fetching is idle. Without it, something that must hold breaks.
func TestModelMutants(t *testing.T) {
	spin.Asked(t)
	t.Parallel()
	fetching.Breaks(t)
}

// Rule: every mutant that fetch.pml names is run, and every one that is run is explained there.
func TestModelNamesItsMutants(t *testing.T) { t.Parallel(); fetching.Explains(t) }
