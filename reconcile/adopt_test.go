package reconcile

import (
	"testing"

	"github.com/amends-dev/amends/reconcile/inbox"
)

// What a document says of its version dates the effects when the document is behind, or when it was
// made once more at the present version: the keys of that run must not be used again. What is
// unknown or was not done has no date.
func TestDate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shows string
		exact bool
		want  string
	}{
		{"", false, ""},
		{"16", false, "16"},
		{"16", true, ""},
		{"17", true, ""},
		{"17+1", true, "17+1"},
		{"17+1", false, "17+1"},
		{"18", false, ""}, // a version that the source does not have
		{"18+1", true, ""},
	} {
		a := adoptee{change: inbox.Snapshot{Revision: "17"}, effects: map[string]Effect{
			"invoice": {ExternalID: "inv_1"}, "dated": {Revision: "3"}, "mail": {Unknown: true}, "mark": {NotDone: true},
		}}
		a.date(c.shows, c.exact)
		if got := a.effects["invoice"].Revision; got != c.want {
			t.Errorf("a document that shows %q (exact: %t): dated %q, want %q", c.shows, c.exact, got, c.want)
		}
		if a.effects["dated"].Revision != "3" || a.effects["mail"].Revision != "" || a.effects["mark"].Revision != "" {
			t.Errorf("others were dated: %+v", a.effects)
		}
	}
}
