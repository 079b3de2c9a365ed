package intake_test

import (
	"cmp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/saga"
)

// A revision is how sagas name a version: one they accept, in the very order the gate has, or the
// saga would call a newer state stale.
func TestRevisionsAreInTheOrderOfVersions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		clock := rapid.SampledFrom([]intake.Clock{intake.CounterClock, intake.ObjectClock}).Draw(r, "clock")
		draw := func(label string) intake.Version {
			v := intake.Version{Epoch: rapid.Int64Range(0, 2).Draw(r, label+" epoch"), Clock: clock}
			if clock == intake.CounterClock {
				v.N = rapid.Int64Range(0, 12).Draw(r, label)
			} else {
				v.N = rapid.Int64Range(0, 3).Draw(r, label+" seconds")*int64(time.Second) + rapid.Int64Range(0, 11).Draw(r, label+" nanoseconds")
			}
			return v
		}
		a, b := draw("a"), draw("b")
		if err := saga.CheckRevision(a.Revision()); err != nil {
			r.Fatal(err)
		}
		if got, want := saga.CompareRevisions(a.Revision(), b.Revision()), a.Compare(b); cmp.Compare(got, 0) != cmp.Compare(want, 0) {
			r.Fatalf("as revisions %q and %q compare as %d, as versions as %d", a.Revision(), b.Revision(), got, want)
		}
	})
}
