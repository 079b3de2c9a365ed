package machine

import (
	"strings"
	"testing"
)

// A record names the actor and the reason of the signal that it consumed, bounded as its texts are; one from
// which they were erased, or in which they could not be kept, names none.
func TestARecordNamesWhoSaidIt(t *testing.T) {
	t.Parallel()
	said := Signal{ID: 1, Actor: "anna", Reason: strings.Repeat("because ", maxText)}
	r := Record{Signals: []int64{1}, Actor: said.Actor, Why: said.Reason}
	if r.clean(); r.Why == said.Reason || !r.Names(&said) {
		t.Error("what was cut of a long reason counts")
	}
	erased := r
	if erased.Erase(Salt{}); !erased.Names(&said) {
		t.Error("what was erased counts")
	}
	for _, other := range []Signal{{ID: 1, Actor: "ben", Reason: said.Reason}, {ID: 1, Actor: "anna", Reason: "none"}, {ID: 1}} {
		if r.Names(&other) {
			t.Errorf("it names %s (%s)", other.Actor, other.Reason)
		}
	}
}
