package scan_test

import (
	"context"
	"testing"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/store/memory"
)

// Where Want leaves the revision to the object's version, a listing has it, too: otherwise a
// comparison would take every newer version of the source for somebody's doing at the destination,
// and refuse the plan when there are many.
func TestListedRevisionIsTheVersion(t *testing.T) {
	t.Parallel()
	store := memory.New(nil)
	s, err := scan.New(scan.Config{Name: "orders", Store: store, Source: scan.Source{
		Object: intake.Object{Source: "shop", Type: "order"},
		All: func(context.Context, scan.Query) (scan.Page, error) {
			return scan.Page{Objects: []scan.Listed{{ID: "1", Version: intake.Counter(3), Body: []byte(`{}`)}}}, nil
		},
		Want: func(*scan.Listed) (plan.Truth, error) { return plan.Truth{Key: "shop:order:1", Wanted: true}, nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context(), scan.SourceSide); err != nil {
		t.Fatal(err)
	}
	rows, err := store.Sightings(t.Context(), scan.SightingQuery{Name: "orders", Side: scan.SourceSide})
	if err != nil || len(rows) != 1 || rows[0].Revision != "3" {
		t.Errorf("the listing has %+v, %v; want one row of revision 3", rows, err)
	}
}
